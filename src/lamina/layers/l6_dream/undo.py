"""A dream taken back on a person's word (B4, D5).

Owns the choice, and the order: what a dead dream left is put right first, then the newest dream goes before those it rests on. It holds
the lock of dreams meanwhile, so that none begins on what is going back; beside one that works on its copy it needs none, since whatever
goes back is then no longer what that dream has copied, and stays as it is.

A crash at any line leaves a record that says so and a lock whose holder is dead: the next session sees it, and `recover` finishes it.
So does an error in the middle.
"""

from __future__ import annotations

from contextlib import nullcontext

import msgspec

from ...core.errors import InputError, UndoOrder
from ...disk.locks.dream_lock import DreamLock, HeldDreamLock, NotWon
from ...memory.store.contract import ChangeReason
from ...memory.store.modes import GatedStore
from .record import Record, is_open, is_real, read_record, records, write_record
from .recovery import recover
from .rollback import Undone, finished, returned
from .stage import KEPT

_LIST = "`lamina dream --status` lists those that are kept"
_RUNS = "`lamina dream --kill` ends it, and nothing is changed then"


def undo(gated: GatedStore, dream: str | None = None, *, now: float) -> Undone:
    """Takes back this dream, or the newest. UndoOrder where a later one rests on it; InputError where there is nothing to take back,
    or another dream changes memories. Where the one that is meant was stopped half way, putting that right is all."""
    gated.check("user")
    root = gated.store.root
    lock, half = DreamLock(root), next((record for record in records(root) if is_open(record)), None)
    said = tuple(recover(gated, lock, now=now)) if half is not None else ()
    if half is not None and half.phase in ("applying", "undoing") and said and dream in (None, half.id):
        return Undone(read_record(root, half.id) or half, (), (), said)
    record = _asked(records(root), dream)
    hold = lock.acquire(lock.last_ns())
    if isinstance(hold, NotWon) and half is not None and half.phase == "applying":
        raise InputError(f"dream {record.id}", "cannot be taken back while another one changes memories", "try again in a moment")
    with hold if isinstance(hold, HeldDreamLock) else nullcontext():
        write_record(root, msgspec.structs.replace(record, phase="undoing"))
        try:
            done = returned(gated.store, record, why=ChangeReason("user", f"undid dream {record.id}", dream=record.id))
            return done._replace(record=finished(gated, record, now=now), said=said)
        except BaseException:
            if isinstance(hold, HeldDreamLock):
                hold.leave()
            raise


def _asked(known: list[Record], dream: str | None) -> Record:
    undoable = [record for record in known if record.status == "completed" and is_real(record)]
    if dream is None:
        if not undoable:
            raise InputError("dream", f"there is none to undo (the last {KEPT} are kept)", _LIST)
        return undoable[0]
    record = next((record for record in known if record.id == dream), None)
    if record is None:
        raise InputError(f"dream {dream}", f"is not kept (the last {KEPT} are)", _LIST)
    if record.status == "undone":
        raise InputError(f"dream {dream}", "was undone already", _LIST)
    if record.status == "running":
        raise InputError(f"dream {dream}", "still runs", _RUNS)
    if record not in undoable:
        raise InputError(f"dream {dream}", f"{record.status} and changed nothing", _LIST)
    if undoable[0] != record:
        raise UndoOrder(f"dream {dream}", f"dream {undoable[0].id}")
    return record
