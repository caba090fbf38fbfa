"""/dream: tidy up memory now, or show, stop and undo dreams.

The chat waits for a dream started here, as for a compaction, and Ctrl-C stops it. A dream in the background keeps running.
"""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

from ...agent.manual_dream import run_by_hand
from ...language.text import Text
from ...session.base import working
from ..dream_actions import DreamNarrator, describe_end, end_dream, still_runs
from ..dream_status import describe_outcome, describe_undo, list_changes, list_remarks, read_status, status_lines, undo_dream
from .commands import DREAM_TAKES
from .input_line import suppress_echo

if TYPE_CHECKING:
    from .loop import Chat


TIDYING = Text("tidying up memory")


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
            chat.screen.report(still_runs(record) if record.status == "running" else describe_end(record))
        case "undo" | "redo":
            _undo(chat, more.strip() or None, again=word == "redo")
        case _:
            chat.screen.report(Text("Unknown command /dream {word}. Usage: /dream {usage}", word=word, usage=DREAM_TAKES), "red")


def _now(chat: Chat) -> None:
    abort, words = Event(), chat.screen.words
    telling = DreamNarrator(lambda text: chat.screen.note(text, "dim"), words)
    chat.screen.wait(chat.screen.words(TIDYING))
    try:
        with suppress_echo(), chat.stop.turn(abort.set):
            came = run_by_hand(chat.provider, **chat.memory_source._asdict(), abort=abort, heard=telling)
    finally:
        chat.screen.calm()
    chat.warn((*came.recovered, *came.notices))
    record = came.record
    if record is None:
        if came.stop is not None:
            chat.screen.report(Text("No dream was started: {why}.", why=came.stop.why), "yellow")
    elif record.status != "completed":
        chat.screen.report(Text("The dream {outcome}.", outcome=describe_outcome(record)), "yellow")
    else:
        form = Text("Dream completed: {outcome}.")
        if list_changes(record):
            form = Text("Dream completed: {outcome}. Use /dream undo to revert it.")
        chat.screen.report(Text(form, outcome=describe_outcome(record)))
        chat.screen.reports(list_remarks(record), "dim", indent="  ")


def _undo(chat: Chat, which: str | None, *, again: bool) -> None:
    undone = undo_dream(chat.memory_source, which, again=again)
    chat.warn(undone.said)
    if undone.back or not undone.said:
        chat.screen.report(describe_undo(undone, again=again))
    left = (Text("{path} {problem}", path=one.file, problem=Text.whole(one.why)) for one in undone.left)
    chat.screen.reports(left, "dim", indent="  ")
