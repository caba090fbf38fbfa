"""Undoes and redoes a dream, on request and after a crash: which dream, and what its record says. The store undoes the change set.

On request, a dream is undone as a whole, or some of its changes. Changes of this dream that still need approval are withdrawn, because
they depend on what is undone; the user can let them wait again, and a redo does. Newer dreams are undone before the ones they build on.

An undo holds the dream lock, so that no dream begins on files that are being restored. It needs no lock against a dream that works on its
copy: that dream will find the restored files changed and leave them alone. `recover` works only under the lock, so it never touches a
running dream. It closes a dream that only worked on its copy, undoes one that was stopped before its record was complete, and finishes
an interrupted undo or redo. It describes each action in one sentence; failures are reported and retried next time.

A crash or an error at any line leaves a record that shows it and a lock whose owner is dead. The next session notices, and `recover`
finishes the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError, InputError, UndoOrder
from ...core.settings.resolution import Settings
from ...disk.locks.dream_lock import DreamLock, HeldDreamLock, NotWon
from ...language.text import Text
from ...memory.memory import Memory
from ...memory.store.change_sets import UndoneSet, find_changes, find_runs, new_act
from ...memory.store.contract import ChangeReason
from ...memory.store.modes import GatedStore
from .record import (
    DIRECTORY,
    DreamRecord,
    SkippedChange,
    dream_home,
    dream_ids,
    is_open,
    is_real,
    read_record,
    read_records,
    write_record,
)
from .stage import KEPT, WORK, prune_dreams, remove_copy

# A merge of more files names the first ones. The journal has a line for each.
MOST_FILES_NAMED = 3
DIED = "A dream was stopped before it began. Nothing was changed."
_LIST = "run `lamina dream --status` to see which dreams are kept"
_RUNS = "run `lamina dream --kill` to stop it; nothing is changed then"


class UndoneDream(NamedTuple):
    """The result of an undo or a redo: the files that changed, those left with the reason, and sentences about a crashed dream recovered
    before.

    `undo` is the act of an undo, for a redo; empty if nothing was changed. `waiting` counts the proposals that a redo lets wait again.
    """

    record: DreamRecord
    back: tuple[str, ...]
    left: tuple[SkippedChange, ...]
    said: tuple[str, ...] = ()
    undo: str = ""
    withdrawn: int = 0
    waiting: int = 0


def _undone(record: DreamRecord, undone: UndoneSet) -> UndoneDream:
    skipped = tuple(SkippedChange(change.file, change.problem) for change in undone.left)
    back = tuple(change.file for change in undone.back)
    return UndoneDream(record, back, skipped, (), undone.act, undone.withdrawn, undone.waiting)


def take_back(gated: GatedStore, record: DreamRecord, *, now: float, why: str) -> UndoneDream:
    """Undo what a dream has applied, and mark its record as failed."""
    undone = gated.undo([record.id], why=ChangeReason("dream", f"reverted dream {record.id}: {why}"))
    ended = msgspec.structs.replace(record, status="failed", phase="applied", ended=now, why=why, files=(), waiting=())
    ended = msgspec.structs.replace(ended, removed=(), merged=(), added=())
    write_record(gated.store.root, ended)
    return _undone(ended, undone)


def _switch(gated: GatedStore, record: DreamRecord) -> UndoneDream:
    """Undo a dream, or redo one that is undone, and record it. The same call finishes what a crash interrupted."""
    root = gated.store.root
    if record.status == "undone":
        write_record(root, msgspec.structs.replace(record, phase="undoing"))
        undone = gated.undo([record.undo], why=ChangeReason("user", f"applied dream {record.id} again"), whole=True)
        if not undone.left:
            record = msgspec.structs.replace(record, status="completed", undo="")
    else:
        # The set of an interrupted undo may be finished already: then it is the one that a redo undoes.
        finished = record.phase == "undoing" and not find_changes(gated.store, [record.id])
        record = msgspec.structs.replace(record, phase="undoing", undo=record.undo if finished and record.undo else new_act())
        write_record(root, record)
        undone = gated.undo([record.id], why=ChangeReason("user", f"undid dream {record.id}", act=record.undo))
        record = msgspec.structs.replace(record, status="undone", undo=record.undo if undone.act or finished else "")
    record = msgspec.structs.replace(record, phase="applied")
    write_record(root, record)
    return _undone(record, undone)


def undo_changes(gated: GatedStore, dream: str, files: Collection[str]) -> UndoneDream:
    """Undo the changes that a dream made to these files. The other changes stay, and so does the dream's record."""
    gated.check("user")
    record = read_record(gated.store.root, dream)
    if record is None or record.status != "completed":
        raise InputError(Text("dream {id}", id=dream), "has no changes to undo", _LIST)
    changed = {run[-1].file for run in find_runs(gated.store.history.lines(), [dream])}
    changed |= {proposal.file for proposal in gated.inbox.waiting() if proposal.why.dream == dream}
    for file in files:
        if file not in changed:
            raise InputError(file, Text("was not changed by dream {dream}", dream=dream), _LIST)
    named = ", ".join(sorted(files)[:MOST_FILES_NAMED])
    with hold_dreams(gated, Text("dream {id}", id=dream), CANNOT_UNDO):
        why = ChangeReason("user", f"undid the change of {named} by dream {dream}")
        return _undone(record, gated.undo([dream], why=why, files=files))


def redo(gated: GatedStore, dream: str | None = None, undo: str = "") -> UndoneDream:
    """Apply again what the undo of this dream, or of the one undone last, took back. `undo` is the act of an undo of some changes.

    Every file becomes as it was before the undo, and withdrawn proposals wait again. If a file was changed since, nothing is applied,
    because a memory that the dream merged into that file would be lost.
    """
    gated.check("user")
    root, what = gated.store.root, Text("dream {id}", id=dream) if dream else "dream"
    if (recovered := _recover_change(gated, dream)) is not None:
        return recovered
    if dream is None:
        dream = next((record.id for record in reversed(read_records(root)) if record.status == "undone" and record.undo), "")
    with hold_dreams(gated, what, CANNOT_REDO) as hold:
        record = read_record(root, dream)
        if record is not None and undo and record.status == "undone" and undo != record.undo:
            raise InputError(what, "was undone as a whole since", "apply that again first")
        if record is None or is_open(record) or not (record.undo if record.status == "undone" else undo):
            raise InputError(what, "has nothing to apply again", "look at the dream to see its changes")
        if record.status == "undone":
            redone = _leaving(hold, lambda: _switch(gated, record))
        else:
            why = ChangeReason("user", f"applied dream {record.id} again")
            redone = _undone(record, gated.undo([undo], why=why, whole=True))
    if redone.left:
        raise InputError(redone.left[0].file, redone.left[0].why, "nothing was applied again")
    if not (redone.undo or redone.waiting or redone.said):
        raise InputError(what, "has nothing to apply again", "look at the dream to see its changes")
    return redone


def _leaving(hold: object, change: Callable[[], UndoneDream]) -> UndoneDream:
    """Make a change of memory; if it fails, leave the lock so that the next session finishes it."""
    try:
        return change()
    except BaseException:
        if isinstance(hold, HeldDreamLock):
            hold.leave()
        raise


CANNOT_UNDO = Text("cannot be undone while another dream changes memories")
CANNOT_REDO = Text("cannot be applied again while another dream changes memories")


def hold_dreams(gated: GatedStore, what: str, problem: str) -> AbstractContextManager[object]:
    """Hold the dream lock, so that no dream begins. A dream that works on its copy goes on; raises InputError if one changes memories."""
    root = gated.store.root
    lock = DreamLock(root)
    hold = lock.acquire(lock.last_ns())
    if isinstance(hold, HeldDreamLock):
        return hold
    if any(record.phase in ("applying", "undoing") for record in read_records(root) if is_open(record)):
        raise InputError(what, problem, "try again in a moment")
    return nullcontext()


def recover_memory(cwd: Path, home: Path | None, settings: Settings) -> list[str]:
    """Recover from a crashed dream at the start of a session, and return what was done as sentences."""
    with Memory.open(cwd, home=home, settings=settings) as memory:
        gated = memory.store("private")
        return recover_dead(gated, DreamLock(gated.store.root))


def recover_dead(gated: GatedStore, lock: DreamLock) -> list[str]:
    """Recover from crashed dreams, also from one that left nothing but the lock, and describe it in sentences."""
    sentences = recover(gated, lock, now=time.time())
    return [*sentences, DIED] if lock.recover() and not sentences else sentences


def recover(gated: GatedStore, lock: DreamLock, *, now: float, hold: HeldDreamLock | None = None) -> list[str]:
    """Recover from crashed dreams and describe it in sentences. Takes the lock unless `hold` is given; a running dream is left alone."""
    root = gated.store.root
    try:
        if root.stat(DIRECTORY) is None:
            return []
        records = read_records(root)
        unfinished = [record for record in records if is_open(record)]
        copies = [record.id for record in records if root.stat(f"{dream_home(record.id)}/{WORK}") is not None]
        if not unfinished and not copies and len(records) == len(dream_ids(root)):
            return []
        won = lock.acquire(lock.last_ns()) if hold is None else hold
        if isinstance(won, NotWon):
            return []
        with won if hold is None else nullcontext():
            # Newest first, because later dreams depend on earlier ones.
            sentences = [_recover_dream(gated, record, now) for record in unfinished]
            for dream in copies:
                remove_copy(root, dream)
            prune_dreams(root)
            if hold is None and any(is_open(record) for record in read_records(root)):
                won.leave()  # the next session sees that there is something to do
        return sentences
    except DiskError as error:
        return [f"Could not check {root.path} for interrupted dreams: {error}"]


def _recover_dream(gated: GatedStore, record: DreamRecord, now: float) -> str:
    try:
        if record.phase == "undoing":
            undone = _switch(gated, record)
            form = Text("The undo of dream {id} was interrupted and has now been finished{left}.")
            if record.status == "undone":
                form = Text("The redo of dream {id} was interrupted and has now been finished{left}.")
            return Text(form, id=record.id, left=_describe_left(undone))
        if record.phase == "applying":
            undone = take_back(gated, record, now=now, why="it was stopped while changing memories")
            form = Text("Dream {id} was stopped while changing memories; its changes were undone{left}.")
            return Text(form, id=record.id, left=_describe_left(undone))
        ended = msgspec.structs.replace(record, status="failed", ended=now, why="its process ended early")
        write_record(gated.store.root, ended)
        return Text("Dream {id} was stopped before it changed anything. Its copy was removed.", id=record.id)
    except DiskError as error:
        return Text("Dream {id} was interrupted and could not be recovered yet: {error}", id=record.id, error=error)


def _describe_left(undone: UndoneDream) -> str:
    if not undone.left:
        return ""
    files = ", ".join(skipped.file for skipped in undone.left[:5])
    form = Text("; not restored, because it was changed since: {files}")
    if len(undone.left) > 1:
        form = Text("; not restored, because they were changed since: {files}")
    return Text(form, files=files)


def undo(gated: GatedStore, dream: str | None = None) -> UndoneDream:
    """Undo this dream, or the newest. Raises UndoOrder if a later dream depends on it, and InputError if there is nothing to undo or
    another dream is changing memories. If the dream was interrupted, recovering it is all that is done."""
    gated.check("user")
    if (recovered := _recover_change(gated, dream)) is not None:
        return recovered
    record = _choose_dream(read_records(gated.store.root), dream)
    with hold_dreams(gated, Text("dream {id}", id=record.id), CANNOT_UNDO) as hold:
        return _leaving(hold, lambda: _switch(gated, record))


def _recover_change(gated: GatedStore, dream: str | None) -> UndoneDream | None:
    """Recover an interrupted dream first. Return the result if that was the change of memory which is asked for."""
    root = gated.store.root
    half = next((record for record in read_records(root) if is_open(record)), None)
    sentences = tuple(recover(gated, DreamLock(root), now=time.time())) if half is not None else ()
    if half is None or not sentences or half.phase not in ("applying", "undoing") or dream not in (None, half.id):
        return None
    return UndoneDream(read_record(root, half.id) or half, (), (), sentences)


def _choose_dream(records: list[DreamRecord], dream: str | None) -> DreamRecord:
    undoable = [record for record in records if record.status == "completed" and is_real(record)]
    if dream is None:
        if not undoable:
            raise InputError("dream", Text("there is nothing to undo (the last {limit} dreams are kept)", limit=KEPT), _LIST)
        return undoable[0]
    record = next((record for record in records if record.id == dream), None)
    if record is None:
        raise InputError(Text("dream {id}", id=dream), Text("not found (the last {limit} dreams are kept)", limit=KEPT), _LIST)
    if record.status == "undone":
        raise InputError(Text("dream {id}", id=dream), "is already undone", _LIST)
    if record.status == "running":
        raise InputError(Text("dream {id}", id=dream), "is still running", _RUNS)
    if record not in undoable:
        raise InputError(
            Text("dream {id}", id=dream), Text("has no changes to undo (status: {status})", status=record.status), _LIST
        )
    if undoable[0] != record:
        raise UndoOrder(Text("dream {id}", id=dream), Text("dream {id}", id=undoable[0].id))
    return record
