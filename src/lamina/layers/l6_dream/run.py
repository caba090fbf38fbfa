"""One dream, from the lock to its end (D1-D5). It runs in a job's thread, or in a person's by hand, on frozen values.

Owns the order: what a dead dream left is put right, the lock, the copy, the run, the difference applied, the lock committed. Invariants:
memory changes only in `apply`, under the lock's fence; whatever ends a dream before that leaves memory and the time of the last dream as
they were; nothing is raised for what a model, a provider or a disk does: it is a reason in the record.

A dream that is killed at any line leaves a lock with a dead holder and a copy; the next session, or the next dream, puts both right.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

from ...core.effects import Ask, Effect, RunTools, drive
from ...core.errors import Aborted, DiskError
from ...core.settings import Settings
from ...disk.dream_lock import Hold, Lock, NotWon
from ...fork.fork import ForkOutcome, run_fork
from ...fork.handover import Handover, PrefixChanged, altered
from ...memory.memory import Memory
from ...memory.store.modes import GatedStore
from ...memory.store.scopes import Place
from .apply import conclude
from .bounds import Bounds, Copy
from .directive import ROUNDS, directive
from .distil import NEW_A_LOG
from .gates import Stop
from .inputs import about_person, scene_of
from .plan import NEW_BEYOND_REMOVED
from .progress import Heard, Progress, Watch, unheard
from .record import Record, Status, is_open, new_id, read_record
from .recovery import recover
from .stage import Stage, begin, end

PURPOSE: Literal["dream"] = "dream"
DIED = "A dream was stopped before it began; nothing was changed."


class End(NamedTuple):
    status: Status
    why: str


# How a dream that was told to end has ended, by who told it: a session that closes tells it without a reason.
ENDED: Mapping[str, End] = {
    "": End("killed", "its session stopped it"),
    "killed": End("killed", "somebody stopped it"),
    "overdue": End("failed", "it took longer than a dream may"),
}

Perform: TypeAlias = Callable[[Effect], Any]
# What carries out what a dream asks for, at a desk with these bounds.
AtDesk: TypeAlias = Callable[[Bounds, Copy, Event], Perform]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """All that a dream works with, as it was when it was started."""

    handover: Handover
    place: Place
    settings: Settings
    home: Path | None
    project: Path
    cwd: Path
    today: str
    by: Literal["session", "hand"]
    session: str | None = None
    transcripts: tuple[Path, ...] = ()
    too_soon: Callable[[int | None], Stop | None] = lambda _: None  # the time gate, asked again where a dead dream was put right
    spent: Callable[[], str | None] = lambda: None  # why no more is asked of a model; None: there is something left


class DreamOutcome(NamedTuple):
    """`stop`: the gate it did not pass; then there is no record. `fork`: what the run used, where it came that far."""

    record: Record | None
    stop: Stop | None = None
    fork: ForkOutcome | None = None
    recovered: tuple[str, ...] = ()
    error: PrefixChanged | None = None


def dream(order: Order, at_desk: AtDesk, abort: Event, heard: Heard = unheard) -> DreamOutcome:
    with Memory.open(order.cwd, home=order.home, settings=order.settings) as memory:
        gated = memory.store("private")
        lock = Lock(gated.store.root)
        recovered = tuple(_recovered(gated, lock))
        last = lock.last_ns()
        if (stop := order.too_soon(last)) is not None:
            return DreamOutcome(None, stop, recovered=recovered)
        hold = lock.acquire(last)
        if isinstance(hold, NotWon):
            return DreamOutcome(None, Stop("lock", hold.why), recovered=recovered)
        with hold:
            # Once more, now that nobody else can: an undo may have died while the dream before this one had the lock.
            recovered += tuple(recover(gated, lock, now=time.time(), hold=hold))
            return _Dream(order, gated, hold, heard).run(at_desk, abort)._replace(recovered=recovered)


def put_right(cwd: Path, home: Path | None, settings: Settings) -> list[str]:
    """What a dream left whose process died; for the beginning of a session."""
    with Memory.open(cwd, home=home, settings=settings) as memory:
        gated = memory.store("private")
        return _recovered(gated, Lock(gated.store.root))


def _recovered(gated: GatedStore, lock: Lock) -> list[str]:
    said = recover(gated, lock, now=time.time())
    # One that died before it had a copy left only the lock.
    return [*said, DIED] if lock.recover() and not said else said


def beginning(handover: Handover) -> Handover:
    """What a dream begins with: the tools and the system prompt of the conversation, which are cached, and nothing that was said. It
    has no use for that, would pay for it with every answer, and what tools returned there is not to speak to it."""
    return altered(handover, (), "branch")


class _Dream:
    """One dream that holds the lock."""

    def __init__(self, order: Order, gated: GatedStore, hold: Hold, heard: Heard) -> None:
        self._order = order
        self._gated = gated
        self._root = gated.store.root
        self._hold = hold
        now = time.time()
        record = Record(id=new_id(now), started=now, pid=os.getpid(), by=order.by, session=order.session)
        self._progress = Progress(self._root, record, heard)
        self._cut = ""  # why it was cut short
        self._new = NEW_BEYOND_REMOVED

    def run(self, at_desk: AtDesk, abort: Event) -> DreamOutcome:
        """Whatever goes wrong is a reason, never an error; the lock is the caller's to put back."""
        fork, watch = None, Watch(self._root, self._progress.record.id, self._hold, abort)
        status: Status = "failed"
        why, changed = "", None
        try:
            with watch:
                stage = begin(self._gated, self._progress.record)
                fork = self._asked(stage, at_desk, abort)
            if not fork.done and not self._cut:
                why = "the answer was cut off or declined"
            elif not abort.is_set():
                self._progress.record = replace(self._progress.record, why=self._cut)
                self._progress.record = conclude(
                    self._gated, stage, self._progress.record, self._hold, now=time.time(), new=self._new
                )
                status = self._progress.record.status
                why = ENDED["killed"].why if status == "killed" else ""
        except Aborted:
            pass
        except KeyboardInterrupt:
            self._ended(*ENDED["killed"])
            raise
        except Exception as error:  # noqa: BLE001  # a dream that comes to nothing is nobody's problem
            why, changed = str(error) or type(error).__name__, error if isinstance(error, PrefixChanged) else None
        if abort.is_set() and status != "completed":
            status, why = ENDED[watch.why]
        record = self._ended(status, why)
        return DreamOutcome(record, fork=fork, error=changed)

    def _asked(self, stage: Stage, at_desk: AtDesk, abort: Event) -> ForkOutcome:
        order = self._order
        scene = scene_of(
            self._gated.store,
            order.place,
            stage.path,
            project=order.project,
            today=order.today,
            transcripts=order.transcripts,
            since=self._hold.prior_ns / 1e9 if self._hold.prior_ns is not None else None,
            by_hand=order.by == "hand",
        )
        self._new = NEW_BEYOND_REMOVED + NEW_A_LOG * len(scene.unseen)
        copy = Copy(stage.path, order.place.path, order.transcripts, stage.listing is not None, bool(stage.base))
        bounds = Bounds(copy, order.cwd, about_person(self._gated.store, order.place, scene))
        carry_out = at_desk(bounds, copy, abort)

        def perform(effect: Effect) -> Any:
            if isinstance(effect, Ask):
                bounds.asked()
            came = carry_out(effect)
            if isinstance(effect, Ask):
                self._progress.said(came, str(order.handover.head["model"]))
            elif isinstance(effect, RunTools):
                self._progress.touched(tuple(bounds.touched))
            return came

        flow = run_fork(order.handover, directive(scene), purpose=PURPOSE, rounds=ROUNDS, enough=self._enough)
        outcome = drive(flow, perform)
        if not outcome.done and not self._cut and outcome.rounds >= ROUNDS:
            self._cut = f"its {ROUNDS} answers were used up"
        return outcome

    def _enough(self) -> bool:
        self._cut = self._order.spent() or ""
        return bool(self._cut)

    def _ended(self, status: Status, why: str) -> Record:
        """The copy goes however it ended. Where that fails, or memories are half changed and could not be put back, the lock stays as a
        dead dream's: by that the next session sees that there is something to put right."""
        record = self._progress.record
        try:
            record = end(self._root, record, status=status, now=time.time(), why=why)
            if record.status == "completed":
                self._hold.commit()
        except DiskError as error:
            self._hold.leave()
            record, why = read_record(self._root, record.id) or record, why or str(error)
        if is_open(record):
            self._hold.leave()
            record = replace(record, status="failed", why=why)
        self._progress.heard(record)
        return record
