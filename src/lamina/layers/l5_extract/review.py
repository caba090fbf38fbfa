"""One review: what it begins with, and how it ended. It runs in a job's thread, on frozen values.

Owns the order: range, reason to skip, list of memories, the fork, what was written. Invariant: only a review that ended well, or one
that is not needed because the conversation wrote to memory itself, moves the cursor (X4). A run that is killed leaves whole files and
the old cursor; the next one covers the same messages, and what was saved is found in the list.

`ReviewSlot` is room for one turn that ended meanwhile: the latest wins, and the review takes it when it is done. What was put in is
taken by the job that runs, or `put` says no and the caller starts another; nothing falls between.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock
from typing import NamedTuple, TypeAlias

import msgspec

from ...core.effects import Flow
from ...core.errors import Aborted
from ...core.settings.resolution import Settings
from ...core.view import Item
from ...fork.fork import ForkOutcome, run_fork
from ...fork.handover import Handover, PrefixChanged
from ...memory.recall.library import MemoryLibrary
from ...memory.recall.selection import best_of, manifest_line
from ...memory.store.scopes import MemoryLocation
from ...memory.store.topic_files import choose_manifest
from ...memory.tool_writes import find_memory_file
from .guard import ExistingMemory
from .plan import ROUNDS, WROTE, range_start, render_directive, skip_reason
from .sources import read_sources
from .trigger import EXTRACTION
from .writer import MemoriesWritten, ReviewWriter, Store


class ExtractionOrder(msgspec.Struct, frozen=True, kw_only=True):
    """All that a review works with: a turn's end, as it was then."""

    items: tuple[Item, ...]
    handover: Handover
    place: MemoryLocation
    settings: Settings
    project: Path
    cwd: Path
    session: str
    today: str
    store: Store

    @property
    def last(self) -> str:
        return self.items[-1].uuid


class Reviewed(NamedTuple):
    cursor: str
    outcome: ForkOutcome
    written: MemoriesWritten


class ReviewSkipped(NamedTuple):
    cursor: str | None
    why: str


class ReviewFailed(NamedTuple):
    cursor: str | None
    why: str
    outcome: ForkOutcome | None = None
    written: MemoriesWritten | None = None
    error: PrefixChanged | None = None
    stopped: bool = False  # by a person or a closing session: no fault


ReviewResult: TypeAlias = Reviewed | ReviewSkipped | ReviewFailed

# Drives a fork's flow with this keeper in its tool runner.
Performs: TypeAlias = Callable[[Flow[ForkOutcome], ReviewWriter], ForkOutcome]


def find_skip(order: ExtractionOrder, cursor: str | None) -> ReviewSkipped | None:
    """Why no model is asked about this range."""
    why = skip_reason(
        order.items[range_start(order.items, cursor) :], lambda path: find_memory_file(order.place, order.cwd / path) is not None
    )
    return ReviewSkipped(order.last if why == WROTE else cursor, why) if why is not None else None


def run_review(order: ExtractionOrder, cursor: str | None, perform: Performs) -> ReviewResult:
    """Whatever goes wrong is a reason, never an error."""
    writer: ReviewWriter | None = None
    try:
        if (passed := find_skip(order, cursor)) is not None:
            return passed
        heard = read_sources(order.items, range_start(order.items, cursor))
        words = "\n".join(one.words for one in heard.said)
        with MemoryLibrary.open(order.place, settings=order.settings, project=order.project) as memory:
            headers = memory.headers()
            # Of many memories the newest are listed, and those about what was said (S11).
            listed = choose_manifest(headers, lambda rest, room: best_of(memory, headers, rest, words, room))
        there = [ExistingMemory(header.file, header.description) for header in headers]
        writer = ReviewWriter(order.place, order.store, order.session, heard, there, order.cwd)
        asked = render_directive(heard.said, [manifest_line(header) for header in listed], order.place, today=order.today)
        outcome = perform(run_fork(order.handover, asked, purpose=EXTRACTION, rounds=ROUNDS), writer)
    except Exception as error:  # noqa: BLE001  # a review that comes to nothing is nobody's problem
        changed, stopped = error if isinstance(error, PrefixChanged) else None, isinstance(error, Aborted)
        why = "it was stopped" if stopped else str(error) or type(error).__name__
        return ReviewFailed(cursor, why, written=writer.outcome if writer is not None else None, error=changed, stopped=stopped)
    if not outcome.done and outcome.rounds < ROUNDS:
        return ReviewFailed(cursor, "the answer was cut off or declined", outcome, writer.outcome)
    return Reviewed(order.last, outcome, writer.outcome)


class ReviewSlot:
    def __init__(self) -> None:
        self._lock = Lock()
        self._order: ExtractionOrder | None = None
        self._open = False
        self._abort = Event()  # of the job that runs
        self.reached: str | None = None  # the cursor behind the last review, before it has landed

    def open(self, cursor: str | None) -> None:
        with self._lock:
            self._open, self._order, self.reached = True, None, cursor
            self._abort = Event()

    def watch(self, abort: Event) -> None:
        """A job that was told to end takes nothing more."""
        with self._lock:
            self._abort = abort

    def put(self, order: ExtractionOrder) -> bool:
        """Whether a job will take it."""
        with self._lock:
            if self._abort.is_set():
                self._open, self._order = False, None
            if self._open:
                self._order = order
            return self._open

    def take(self, cursor: str | None) -> ExtractionOrder | None:
        """The next one, after a review that came as far as `cursor`; None closes the slot."""
        with self._lock:
            self.reached = cursor
            order, self._order = self._order, None
            if self._abort.is_set():
                order = None
            self._open = order is not None
            return order

    def close(self) -> None:
        with self._lock:
            self._open, self._order = False, None
