"""Following a dream that runs, and ending it: all that is known of it is its record and who holds the lock.

Owns the words for what is seen. Whoever follows changes nothing; whoever ends it leaves a request that the dream itself carries out, so
that it puts back what it holds. Only a dream whose process is gone is put right from here, as the start of a session would do it.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep
from typing import TYPE_CHECKING

from ..core.errors import DiskError
from ..disk.locks.dream_lock import DreamLock
from ..layers.l6_dream.record import DreamRecord, read_record, read_records, request_kill
from ..layers.l6_dream.run import recover_memory
from .dream_status import describe_outcome, find_running
from .safe_text import counted, sentence
from .start import MemorySource

if TYPE_CHECKING:
    from ..disk.trees.rootdir import RootDir

# How often a running dream is looked at: a person sees each answer as it comes, and a look is one small file.
LOOK_SECONDS = 0.2
# A dream looks twice a second whether it is to end, then leaves the call under way and puts back what it holds.
ENDING_SECONDS = 30.0
NONE_RUNS = "no dream runs here"
STILL_RUNS = "dream {id} was told to end and has not yet: lamina dream --watch shows when it has"


class DreamNarrator:
    """Says each answer of a dream once, as it comes."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said = 0
        self._phase = "starting"

    def __call__(self, record: DreamRecord) -> None:
        for number, turn in enumerate(record.turns[self._said :], self._said + 1):
            calls = f" ({counted(turn.calls, 'call')})" if turn.calls else ""
            self._say(f"{number:>3}  {sentence(turn.text) or '…'}{calls}")
        self._said = max(self._said, len(record.turns))
        if record.phase != self._phase and record.status == "running":
            self._phase = record.phase
            self._say(f"     {record.phase}")


def find_running_dream(root: RootDir) -> DreamRecord | None:
    return find_running(tuple(read_records(root)), DreamLock(root).holder())


def follow_dream(
    root: RootDir, record: DreamRecord, *, heard: Callable[[DreamRecord], None], seconds: float | None = None
) -> DreamRecord:
    """The record when the dream has ended, or its process is gone, or after so many seconds."""
    began = monotonic()
    while True:
        # Asked before the record is read: who lets go of the lock has written it.
        holder = DreamLock(root).holder()
        record = read_record(root, record.id) or record
        heard(record)
        gone = holder is None or not holder.alive
        if record.status != "running" or gone or (seconds is not None and monotonic() - began > seconds):
            return record
        sleep(LOOK_SECONDS)


def end_dream(source: MemorySource, *, seconds: float = ENDING_SECONDS) -> tuple[DreamRecord, list[str]]:
    """Ends the dream that runs, DiskError where none does; with what had to be put right, in sentences. A record that still says
    "running" is of a dream that did not listen in time."""
    with source.open() as memory:
        root = memory.store("private").store.root
        record = find_running_dream(root)
        if record is None:
            raise DiskError(str(memory.path), NONE_RUNS, "lamina dream --status tells of those there were")
        if request_kill(root, record.id):
            record = follow_dream(root, record, heard=lambda _: None, seconds=seconds)
        if record.status != "running":
            return record, []
    said = recover_memory(*source)  # a living one is left alone
    with source.open() as memory:
        return read_record(memory.store("private").store.root, record.id) or record, said


def describe_end(record: DreamRecord) -> str:
    if record.status == "completed":
        return f"It was done before it could be ended: {describe_outcome(record)}."
    return f"Dream {record.id} is ended; memory is as it was before it."
