"""A single review: its input and its result. It runs in a job's thread and works on frozen values.

Owns the order: range, reason to skip, list of memories, the fork, what was written. Invariant: the cursor moves only after a review that
succeeded, or one that was skipped because the conversation wrote to memory itself. A killed run leaves complete files and the old
cursor. The next run covers the same messages and finds the saved memories in the list.

`ReviewSlot` holds one turn that ended while a review ran. The latest turn wins, and the review picks it up when it finishes. Either the
running job takes the turn, or `put` returns False and the caller starts another job, so no turn is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from ...memory.guard.sources import UserWords, read_sources
from ...memory.recall.library import MemoryLibrary
from ...memory.recall.selection import best_of, manifest_line
from ...memory.store.scopes import MemoryLocation
from ...memory.store.topic_files import choose_manifest
from ...memory.tool_writes import find_memory_file
from .answer import memories_shown, read_memories, render_shown, write_answered
from .guard import ExistingMemory
from .plan import ROUNDS, WROTE, range_start, render_answer_directive, render_directive, skip_reason
from .trigger import EXTRACTION
from .writer import MemoriesWritten, ReviewWriter, Store


class ExtractionOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a review: a snapshot of the conversation at the end of a turn."""

    items: tuple[Item, ...]
    handover: Handover
    place: MemoryLocation
    settings: Settings
    project: Path
    cwd: Path
    session: str
    today: str
    store: Store
    calls_tools: bool = True  # False: the model has no file tools, and the review is one answer

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
    stopped: bool = False  # by the user or a closing session: not a failure


ReviewResult: TypeAlias = Reviewed | ReviewSkipped | ReviewFailed

# Drives a fork's flow with this writer as the keeper of its tool runner.
Performs: TypeAlias = Callable[[Flow[ForkOutcome], ReviewWriter], ForkOutcome]


def find_skip(order: ExtractionOrder, cursor: str | None) -> ReviewSkipped | None:
    """Return why this range needs no model call."""
    why = skip_reason(
        order.items[range_start(order.items, cursor) :], lambda path: find_memory_file(order.place, order.cwd / path) is not None
    )
    return ReviewSkipped(order.last if why == WROTE else cursor, why) if why is not None else None


def _for_last(store: Store, said: Sequence[UserWords]) -> Store:
    """Name the last message of the range where no sentence backs a memory, so that undoing that turn finds the memory."""
    last = said[-1].message if said else None
    return lambda change, why: store(change, why if why.message is not None else msgspec.structs.replace(why, message=last))


def run_review(order: ExtractionOrder, cursor: str | None, perform: Performs) -> ReviewResult:
    """Run a review. Every problem becomes a reason in the result; nothing is raised."""
    writer: ReviewWriter | None = None
    try:
        if (passed := find_skip(order, cursor)) is not None:
            return passed
        heard = read_sources(order.items, range_start(order.items, cursor))
        words = "\n".join(one.words for one in heard.said)
        with MemoryLibrary.open(order.place, settings=order.settings, project=order.project) as memory:
            headers = memory.headers()
            # If there are many memories, list the newest and the ones closest to the user's words.
            listed = choose_manifest(headers, lambda rest, room: best_of(memory, rest, words, room))
            shown = memories_shown(memory, words) if not order.calls_tools else {}
        there = [ExistingMemory(header.file, header.description) for header in headers]
        writer = ReviewWriter(order.place, _for_last(order.store, heard.said), order.session, heard, there, order.cwd)
        manifest = [manifest_line(header) for header in listed]
        if not order.calls_tools:
            return _review_answer(order, cursor, perform, writer, heard.said, manifest, shown)
        asked = render_directive(heard.said, manifest, order.place, today=order.today)
        outcome = perform(run_fork(order.handover, asked, purpose=EXTRACTION, rounds=ROUNDS), writer)
    except Exception as error:  # noqa: BLE001  # a failed review must not disturb the conversation
        changed, stopped = error if isinstance(error, PrefixChanged) else None, isinstance(error, Aborted)
        why = "it was stopped" if stopped else str(error) or type(error).__name__
        return ReviewFailed(cursor, why, written=writer.outcome if writer is not None else None, error=changed, stopped=stopped)
    if not outcome.done and outcome.rounds < ROUNDS:
        return ReviewFailed(cursor, "the answer was cut off or declined", outcome, writer.outcome)
    return Reviewed(order.last, outcome, writer.outcome)


def _review_answer(
    order: ExtractionOrder,
    cursor: str | None,
    perform: Performs,
    writer: ReviewWriter,
    said: Sequence[UserWords],
    manifest: Sequence[str],
    shown: Mapping[str, str],
) -> ReviewResult:
    """Ask for one answer, and write the memories it lists."""
    asked = render_answer_directive(said, manifest, order.place, today=order.today, shown=render_shown(shown))
    outcome = perform(run_fork(order.handover, asked, purpose=EXTRACTION), writer)
    if not outcome.done:
        return ReviewFailed(cursor, "the answer was cut off or declined", outcome, writer.outcome)
    wanted = read_memories(outcome.reply.text)
    if isinstance(wanted, str):
        return ReviewFailed(cursor, wanted, outcome, writer.outcome)
    write_answered(wanted, order.place, shown, writer)
    return Reviewed(order.last, outcome, writer.outcome)


class ReviewSlot:
    def __init__(self) -> None:
        self._lock = Lock()
        self._order: ExtractionOrder | None = None
        self._open = False
        self._abort = Event()  # of the job that runs
        self.reached: str | None = None  # the cursor after the last review, also before its result has landed

    def open(self, cursor: str | None) -> None:
        with self._lock:
            self._open, self._order, self.reached = True, None, cursor
            self._abort = Event()

    def watch(self, abort: Event) -> None:
        """Watch the job's abort flag: an aborted job takes no more orders."""
        with self._lock:
            self._abort = abort

    def put(self, order: ExtractionOrder) -> bool:
        """Offer an order to the running job. Returns whether the job will take it."""
        with self._lock:
            if self._abort.is_set():
                self._open, self._order = False, None
            if self._open:
                self._order = order
            return self._open

    def take(self, cursor: str | None) -> ExtractionOrder | None:
        """Return the next order after a review that reached `cursor`. None closes the slot."""
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
