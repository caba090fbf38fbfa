"""Runs a dream, from the lock to its end. It runs in a job's thread, or in the user's if started by hand, on frozen values.

Owns the order: recover a dead dream, take the lock, copy, run, apply the difference, commit the lock. This thread alone replaces the
record after each answer. `DreamWatch` checks from its own thread whether the dream should stop, or has held the lock for too long, and
then sets the one Event that ends it. Invariants: memory changes only in `apply`, under the lock's fence; a dream that ends earlier
leaves memory and the time of the last dream unchanged; failures of a model, a provider or a disk are never raised, but become a reason
in the record.

A dream killed at any line leaves a copy and a lock whose owner is dead. The next session or the next dream cleans up both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import msgspec
from msgspec.structs import replace

from ...core.effects import Ask, Effect, RunTools, drive
from ...core.errors import Aborted, DiskError
from ...core.reply import Reply
from ...core.settings.resolution import Settings
from ...core.usage import Usage
from ...disk.locks.dream_lock import DreamLock, HeldDreamLock, NotWon
from ...disk.trees.rootdir import RootDir
from ...fork.background import LOCAL
from ...fork.fork import ForkOutcome, run_fork
from ...fork.handover import Handover, PrefixChanged
from ...language.text import Text
from ...memory.memory import Memory
from ...memory.store.modes import GatedStore
from ...memory.store.scopes import MemoryLocation
from ...memory.store.secrets import redact
from ...memory.store.topic import one_line
from ...providers.models import cost
from .apply import apply_dream
from .bounds import DreamBounds, DreamCopy
from .directive import ROUNDS, read_about_person, read_scene, render_directive
from .gates import DreamStop
from .plan import NEW_A_LOG, NEW_BEYOND_REMOVED
from .record import (
    MOST_NAMED,
    MOST_TURNS,
    TURN_CHARS,
    DreamRecord,
    DreamTurn,
    Phase,
    Status,
    is_kill_requested,
    is_open,
    new_id,
    read_record,
    write_record,
)
from .stage import DreamStage, end_dream, stage_copy
from .trigger import DREAM
from .undo import recover, recover_dead

# The longest wait after a stop request. A check costs one stat.
LOOK_SECONDS = 0.5

Heard: TypeAlias = Callable[[DreamRecord], None]


class DreamProgress:
    def __init__(self, root: RootDir, record: DreamRecord, heard: Heard) -> None:
        self._root = root
        self.heard = heard
        self._usage = Usage()
        self.record = record

    def said(self, reply: Reply, model: str) -> None:
        """Record an answer of the model."""
        self._usage += reply.usage if reply.usage is not None and reply.model != LOCAL else Usage()
        spent = cost(reply.model or model, self._usage)
        turn = DreamTurn(one_line(redact(reply.text[: 10 * TURN_CHARS]).text, TURN_CHARS), len(reply.tool_uses))
        turns = (*self.record.turns, turn)[-MOST_TURNS:]
        self._keep(replace(self.record, turns=turns, tokens=self._usage.total, usage=self._usage, cost=spent.usd or 0.0))

    def touched(self, files: Collection[str]) -> None:
        """Record the files of the copy changed so far, after the calls have run. The first one sets the phase "updating"."""
        phase: Phase = "updating" if files and self.record.phase == "starting" else self.record.phase
        named = tuple(dict.fromkeys((*self.record.files, *files)))[:MOST_NAMED]
        if (record := replace(self.record, files=named, phase=phase)) != self.record:
            self._keep(record)

    def _keep(self, record: DreamRecord) -> None:
        self.record = record
        write_record(self._root, record)
        self.heard(record)


class DreamWatch:
    """While the block runs, sets `abort` when the dream must end; `why` holds the reason."""

    def __init__(self, root: RootDir, dream: str, hold: HeldDreamLock, abort: Event) -> None:
        self._root = root
        self._dream = dream
        self._hold = hold
        self._abort = abort
        self._over = Event()
        self._thread = Thread(target=self._watch, name="lamina-dream-watch", daemon=True)
        self.why: Literal["", "killed", "overdue"] = ""

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                killed = is_kill_requested(self._root, self._dream)
            except DiskError:
                continue  # not a valid stop request
            self.why = "killed" if killed else "overdue" if self._hold.overdue() else ""
            if self.why:
                self._abort.set()
                return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class DreamEnd(NamedTuple):
    status: Status
    why: str


# How a dream ended, by the reason it was stopped for. A closing session gives no reason, nor does Ctrl-C by hand.
ENDED: Mapping[str, DreamEnd] = {
    "": DreamEnd("killed", "its session ended"),
    "killed": DreamEnd("killed", "stopped on request"),
    "overdue": DreamEnd("failed", "it exceeded the time limit for dreams"),
}

# Returns the function that performs a dream's effects within these bounds, until the Event is set.
PerformWith: TypeAlias = Callable[[DreamBounds, Event], Callable[[Effect], Any]]


class DreamOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a dream: a snapshot from the moment it was started."""

    handover: Handover
    place: MemoryLocation
    settings: Settings
    home: Path | None
    project: Path
    cwd: Path
    today: str
    by: Literal["session", "hand"]
    session: str | None = None
    transcripts: tuple[Path, ...] = ()
    # The time gate, checked again after a dead dream was recovered.
    too_soon: Callable[[int | None], DreamStop | None] = lambda _: None
    spent: Callable[[], str | None] = lambda: None  # why no more model calls are allowed; None: budget is left


class DreamOutcome(NamedTuple):
    """The result of a dream. `stop` is the gate that stopped it; then there is no record. `fork` is what the run used, if it ran."""

    record: DreamRecord | None
    stop: DreamStop | None = None
    fork: ForkOutcome | None = None
    recovered: tuple[str, ...] = ()
    error: PrefixChanged | None = None
    on_disk: bool = False  # a disk error ended it
    notices: tuple[str, ...] = ()  # what hooks told the user


def run_dream(order: DreamOrder, perform_with: PerformWith, abort: Event, heard: Heard = lambda _: None) -> DreamOutcome:
    with Memory.open(order.cwd, home=order.home, settings=order.settings) as memory:
        gated = memory.store("private")
        lock = DreamLock(gated.store.root)
        recovered = tuple(recover_dead(gated, lock))
        last = lock.last_ns()
        if (stop := order.too_soon(last)) is not None:
            return DreamOutcome(None, stop, recovered=recovered)
        hold = lock.acquire(last)
        if isinstance(hold, NotWon):
            return DreamOutcome(None, DreamStop("lock", hold.why), recovered=recovered)
        with hold:
            # Again, now under the lock: an undo may have died while the previous dream held it.
            recovered += tuple(recover(gated, lock, now=time.time(), hold=hold))
            return _Dream(order, gated, hold, heard).run(perform_with, abort)._replace(recovered=recovered)


class _Dream:
    """A dream that holds the lock."""

    def __init__(self, order: DreamOrder, gated: GatedStore, hold: HeldDreamLock, heard: Heard) -> None:
        self._order = order
        self._gated = gated
        self._root = gated.store.root
        self._hold = hold
        now = time.time()
        record = DreamRecord(id=new_id(now), started=now, pid=os.getpid(), by=order.by, session=order.session)
        self._progress = DreamProgress(self._root, record, heard)
        self._cut = ""  # why the dream was cut short
        self._on_disk = False
        self._new = NEW_BEYOND_REMOVED

    def run(self, perform_with: PerformWith, abort: Event) -> DreamOutcome:
        """Run the dream. Every problem becomes a reason in the record; nothing is raised. The caller restores the lock."""
        fork, watch = None, DreamWatch(self._root, self._progress.record.id, self._hold, abort)
        status: Status = "failed"
        why, changed = "", None
        try:
            with watch:
                stage = stage_copy(self._gated, self._progress.record)
                self._progress.heard(self._progress.record)
                fork = self._run_fork(stage, perform_with, abort)
            if not fork.done and not self._cut:
                why = "the answer was cut off or declined"
            elif not abort.is_set():
                self._progress.record = replace(self._progress.record, why=self._cut)
                self._progress.record = apply_dream(
                    self._gated,
                    stage,
                    self._progress.record,
                    self._hold,
                    now=time.time(),
                    new=self._new,
                    by_rules=self._order.handover.head["model"] == LOCAL,
                )
                status = self._progress.record.status
                why = ENDED["killed"].why if status == "killed" else ""
        except Aborted:
            pass
        except KeyboardInterrupt:
            self._finish(*ENDED["killed"])
            raise
        except Exception as error:  # noqa: BLE001  # a failed dream must not disturb the conversation
            why, changed = str(error) or type(error).__name__, error if isinstance(error, PrefixChanged) else None
            self._on_disk = isinstance(error, DiskError | OSError)
        if abort.is_set() and status != "completed":
            status, why = ENDED[watch.why or ("killed" if self._order.by == "hand" else "")]
        record = self._finish(status, why)
        return DreamOutcome(record, fork=fork, error=changed, on_disk=self._on_disk)

    def _run_fork(self, stage: DreamStage, perform_with: PerformWith, abort: Event) -> ForkOutcome:
        order = self._order
        scene = read_scene(
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
        copy = DreamCopy(stage.path, order.place.path, order.transcripts, stage.listing is not None, bool(stage.base))
        bounds = DreamBounds(copy, order.cwd, read_about_person(self._gated.store, order.place, scene))
        carry_out = perform_with(bounds, abort)

        def perform(effect: Effect) -> Any:
            if isinstance(effect, Ask):
                bounds.asked()
            came = carry_out(effect)
            if isinstance(effect, Ask):
                self._progress.said(came, str(order.handover.head["model"]))
            elif isinstance(effect, RunTools):
                self._progress.touched(bounds.touched)
                if bounds.unwritten:
                    # A copy without one of its changes must not replace the memories: a merged one may be missing.
                    raise DiskError(
                        str(stage.path),
                        Text("the copy could not be changed ({unwritten})", unwritten=bounds.unwritten.rstrip(".")),
                    )
            return came

        flow = run_fork(order.handover, render_directive(scene), purpose=DREAM, rounds=ROUNDS, enough=self._enough)
        outcome = drive(flow, perform)
        if not outcome.done and not self._cut and outcome.rounds >= ROUNDS:
            self._cut = Text("the limit of {limit} answers was reached", limit=ROUNDS)
        return outcome

    def _enough(self) -> bool:
        self._cut = self._order.spent() or ""
        return bool(self._cut)

    def _finish(self, status: Status, why: str) -> DreamRecord:
        """Remove the copy and record the end. If that fails, or half-changed memories could not be restored, the lock is left as a dead
        dream's. The next session then sees that there is something to recover."""
        record = self._progress.record
        try:
            record = end_dream(self._root, record, status=status, now=time.time(), why=why)
            if record.status == "completed":
                self._hold.commit()
        except DiskError as error:
            self._hold.leave()
            self._on_disk = True
            record, why = read_record(self._root, record.id) or record, why or str(error)
        if is_open(record):
            self._hold.leave()
            record = replace(record, status="failed", why=why)
        self._progress.heard(record)
        return record
