"""/dream: tidy up memory now, or show, stop and undo dreams.

The chat waits for a dream started here, as for a compaction, and Ctrl-C stops it. A dream in the background keeps running.
"""

from __future__ import annotations

from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from ...agent.manual_dream import run_by_hand
from ...session.base import working
from ..dream_actions import STILL_RUNS, DreamNarrator, describe_end, end_dream
from ..dream_status import describe_outcome, describe_undo, list_changes, list_remarks, read_status, status_lines, undo_dream
from .commands import DREAM_TAKES
from .input_line import suppress_echo
from .texts import translate_line

if TYPE_CHECKING:
    from .loop import Chat


TIDYING = "tidying up memory"


def run_dream_command(chat: Chat, rest: str) -> None:
    word, _, more = rest.partition(" ")
    match word:
        case "":
            _now(chat)
        case "status":
            chat.tell_news()  # a dream that has just finished is not running
            with working(chat.agent.session) as conversation:
                found = read_status(chat.memory_source, conversation)
            chat.screen.reports(status_lines(found), indent="  ")
        case "kill":
            record, recovered = end_dream(chat.memory_source)
            chat.warn(recovered)
            chat.screen.report(f"{STILL_RUNS.format(id=record.id)}." if record.status == "running" else describe_end(record))
        case "undo" | "redo":
            _undo(chat, more.strip() or None, again=word == "redo")
        case _:
            chat.screen.report(f"Unknown command /dream {word}. Usage: /dream {DREAM_TAKES}", "red")


def _now(chat: Chat) -> None:
    abort, tell = Event(), partial(translate_line, chat.screen.language)
    telling = DreamNarrator(lambda text: chat.screen.note(text, "dim"), tell)
    chat.screen.wait(chat.screen.text(TIDYING))
    try:
        with suppress_echo(), chat.stop.turn(abort.set):
            came = run_by_hand(chat.provider, **chat.memory_source._asdict(), abort=abort, heard=telling)
    finally:
        chat.screen.calm()
    chat.warn((*came.recovered, *came.notices))
    record = came.record
    if record is None:
        if came.stop is not None:
            chat.screen.report(f"No dream was started: {came.stop.why}.", "yellow")
    elif record.status != "completed":
        chat.screen.report(f"The dream {describe_outcome(record)}.", "yellow")
    else:
        back = " Use /dream undo to revert it." if list_changes(record) else ""
        chat.screen.report(f"Dream completed: {describe_outcome(record)}.{back}")
        chat.screen.reports(list_remarks(record), "dim", indent="  ")


def _undo(chat: Chat, which: str | None, *, again: bool) -> None:
    undone = undo_dream(chat.memory_source, which, again=again)
    chat.warn(undone.said)
    if undone.back or not undone.said:
        chat.screen.report(describe_undo(undone, again=again))
    chat.screen.reports((f"{one.file} {one.why}" for one in undone.left), "dim", indent="  ")
