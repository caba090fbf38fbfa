"""One review: what it begins with, and how it ended. It runs in a job's thread, on frozen values.

Owns the order: range, reason to skip, list of memories, the fork, what was written. Invariant: only a review that ended well, or one
that is not needed because the conversation wrote to memory itself, moves the cursor (X4). A run that is killed leaves whole files and
the old cursor; the next one covers the same messages, and what was saved is found in the list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from ...core.effects import Flow
from ...core.errors import Aborted
from ...core.settings import Settings
from ...core.view import Item
from ...fork.fork import ForkOutcome, run_fork
from ...fork.handover import Handover, PrefixChanged
from ...memory.recall.library import Look
from ...memory.recall.selection import line_of
from ...memory.store.scan import MOST_IN_MANIFEST, Header, manifest
from ...memory.store.scopes import Place
from ...memory.tool_writes import spot
from .directive import ROUNDS, directive
from .due import WROTE, begins, skips
from .guard import Known
from .sources import Sources, sources
from .writer import Outcome, Store, Writer

PURPOSE = "extraction"


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """All that a review works with: a turn's end, as it was then."""

    items: tuple[Item, ...]
    handover: Handover
    place: Place
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
    written: Outcome


class Skipped(NamedTuple):
    cursor: str | None
    why: str


class Failed(NamedTuple):
    cursor: str | None
    why: str
    outcome: ForkOutcome | None = None
    written: Outcome | None = None
    error: PrefixChanged | None = None
    stopped: bool = False  # by a person or a closing session: no fault


Ran: TypeAlias = Reviewed | Skipped | Failed

# Drives a fork's flow with this keeper at its desk.
Performs: TypeAlias = Callable[[Flow[ForkOutcome], Writer], ForkOutcome]


def is_memory(place: Place, cwd: Path) -> Callable[[str], bool]:
    return lambda path: spot(place, cwd / path) is not None


def skipped(order: Order, cursor: str | None) -> Skipped | None:
    """Why no model is asked about this range."""
    why = skips(order.items[begins(order.items, cursor) :], is_memory(order.place, order.cwd))
    if why is None:
        return None
    return Skipped(order.last if why == WROTE else cursor, why)


def review(order: Order, cursor: str | None, perform: Performs) -> Ran:
    """Whatever goes wrong is a reason, never an error."""
    writer: Writer | None = None
    try:
        if (passed := skipped(order, cursor)) is not None:
            return passed
        heard = sources(order.items, begins(order.items, cursor))
        there = _there(order, heard)
        writer = Writer(order.place, order.store, order.session, heard, there.known, order.cwd)
        asked = directive(heard.said, there.listed, order.place, today=order.today)
        outcome = perform(run_fork(order.handover, asked, purpose=PURPOSE, rounds=ROUNDS), writer)
    except Exception as error:  # noqa: BLE001  # a review that comes to nothing is nobody's problem
        changed, stopped = error if isinstance(error, PrefixChanged) else None, isinstance(error, Aborted)
        why = "it was stopped" if stopped else str(error) or type(error).__name__
        return Failed(cursor, why, written=writer.outcome if writer is not None else None, error=changed, stopped=stopped)
    if not outcome.done and outcome.rounds < ROUNDS:
        return Failed(cursor, "the answer was cut off or declined", outcome, writer.outcome)
    return Reviewed(order.last, outcome, writer.outcome)


class _There(NamedTuple):
    known: list[Known]
    listed: list[str]  # the lines of the list


def _there(order: Order, heard: Sources) -> _There:
    """The memories there are; none where the directory is not there yet. Of many the newest, and those about what was said (S11)."""
    with Look.at(order.place, settings=order.settings, project=order.project) as memory:
        headers = memory.headers()
        words = "\n".join(one.words for one in heard.said)
        listed = manifest(headers, lambda rest, room: _best(memory, headers, rest, words, room))
    return _There([Known(header.file, header.description) for header in headers], [line_of(header) for header in listed])


def _best(memory: Look, headers: list[Header], rest: Sequence[Header], words: str, room: int) -> list[Header]:
    left = {header.file for header in rest}
    ranked = [header for header, _ in memory.ranked(headers, words, room + MOST_IN_MANIFEST) if header.file in left]
    chosen = {header.file for header in ranked}
    return [*ranked, *(header for header in rest if header.file not in chosen)][:room]
