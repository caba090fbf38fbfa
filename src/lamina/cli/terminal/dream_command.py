"""/dream: put memory in order now, see how it stands, end a dream or take one back.

A dream that is started here is waited for, as a compaction is; Ctrl-C ends it. One that runs in the background goes on by itself.
"""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING

from ..dream_status import details, done, outcome, status_lines, status_of, taken_back
from ..dream_watch import STILL_RUNS, Telling, end_of, ended

if TYPE_CHECKING:
    from ...layers.l6_dream.record import DreamRecord
    from .loop import Chat

TAKES = "[status|kill|undo [ID]]"
WORDS = {"status": "how it stands", "kill": "end the one that runs", "undo": "take back the last one"}


def dream(chat: Chat, rest: str) -> None:
    word, _, more = rest.partition(" ")
    match word:
        case "":
            _now(chat)
        case "status":
            _status(chat)
        case "kill":
            _kill(chat)
        case "undo":
            _undo(chat, more.strip() or None)
        case _:
            chat.screen.note(f"There is no /dream {word}; there is /dream {TAKES}.", "red")


def _now(chat: Chat) -> None:
    from ...agent.manual_dream import run_by_hand
    from .input_line import quiet

    abort = Event()
    with quiet(), chat.stop.turn(abort.set):
        came = run_by_hand(
            chat.provider,
            cwd=chat.wish.cwd,
            home=chat.home,
            settings=chat.settings,
            abort=abort,
            heard=Telling(lambda text: chat.screen.note(text, "dim")),
        )
    for text in came.recovered:
        chat.screen.note(f"lamina: {text}", "yellow")
    if came.record is not None:
        _tell(chat, came.record)
    elif came.stop is not None:
        chat.screen.note(f"No dream: {came.stop.why}.", "yellow")


def _tell(chat: Chat, record: DreamRecord) -> None:
    if record.status != "completed":
        chat.screen.note(f"The dream {outcome(record)}.", "yellow")
        return
    back = " /dream undo takes it back." if done(record) else ""
    chat.screen.note(f"Dreamt: {outcome(record)}.{back}")
    for line in details(record):
        chat.screen.note(line, "dim", indent="  ")


def _status(chat: Chat) -> None:
    from ...memory.memory import Memory

    with Memory.open(chat.wish.cwd, home=chat.home, settings=chat.settings) as memory:
        found = status_of(memory, chat.settings, cwd=chat.wish.cwd, home=chat.home)
    for line in status_lines(found):
        chat.screen.note(line, indent="  ")


def _kill(chat: Chat) -> None:
    record, said = ended(chat.wish.cwd, chat.home, chat.settings)
    for text in said:
        chat.screen.note(f"lamina: {text}", "yellow")
    chat.screen.note(STILL_RUNS.format(id=record.id) if record.status == "running" else end_of(record))


def _undo(chat: Chat, which: str | None) -> None:
    from ...layers.l6_dream.undo import undo
    from ...memory.memory import Memory

    with Memory.open(chat.wish.cwd, home=chat.home, settings=chat.settings) as memory:
        undone = undo(memory.store("private"), which, now=time.time())
    for text in undone.said:
        chat.screen.note(f"lamina: {text}", "yellow")
    if undone.back or not undone.said:
        chat.screen.note(taken_back(undone))
    for one in undone.left:
        chat.screen.note(f"{one.file} {one.why}", "dim", indent="  ")
