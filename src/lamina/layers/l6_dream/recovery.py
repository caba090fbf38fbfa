"""What a dream that was stopped left behind, put right (Z5, Z12): at the start of a session and before a dream.

Owns no files. A dream that only worked on its copy is over and changed nothing; one that was stopped while memories changed is taken
back as a whole; one whose undo was stopped is undone. Invariants: only under the lock, so a living dream is never touched; everything
done is said in one sentence; what fails is said too and tried again next time. A crash at any line is put right by the next call.
"""

from __future__ import annotations

from contextlib import nullcontext

import msgspec

from ...core.errors import DiskError
from ...disk.locks.dream_lock import DreamLock, HeldDreamLock, NotWon
from ...memory.store.contract import ChangeReason
from ...memory.store.modes import GatedStore
from .record import DIRECTORY, Record, dreams, home, is_open, records, write_record
from .rollback import Undone, finished, returned, take_back
from .stage import WORK, drop_work, prune


def recover(gated: GatedStore, lock: DreamLock, *, now: float, hold: HeldDreamLock | None = None) -> list[str]:
    """What was done, in sentences. With `hold` under that hold; else the lock is taken for it, and where a dream lives nothing is done."""
    try:
        return _recovered(gated, lock, now, hold)
    except DiskError as error:
        return [f"What dreams left in {gated.store.root.path} could not be looked at: {error}"]


def _recovered(gated: GatedStore, lock: DreamLock, now: float, hold: HeldDreamLock | None) -> list[str]:
    root = gated.store.root
    if root.stat(DIRECTORY) is None:
        return []
    known = records(root)
    unfinished = [record for record in known if is_open(record)]
    copies = [record.id for record in known if root.stat(f"{home(record.id)}/{WORK}") is not None]
    if not unfinished and not copies and len(known) == len(dreams(root)):
        return []
    won = lock.acquire(lock.last_ns()) if hold is None else hold
    if isinstance(won, NotWon):
        return []
    with won if hold is None else nullcontext():
        # Newest first: what rests on what.
        said = [_put_right(gated, record, now) for record in unfinished]
        for dream in copies:
            drop_work(root, dream)
        prune(root)
        if hold is None and any(is_open(record) for record in records(root)):
            won.leave()  # the next session sees that there is something to do
    return said


def _put_right(gated: GatedStore, record: Record, now: float) -> str:
    try:
        said = _undone(gated, record, now) if record.phase in ("applying", "undoing") else _over(gated, record, now)
    except DiskError as error:
        return f"Dream {record.id} was stopped half way and could not be put right yet: {error}"
    return said


def _over(gated: GatedStore, record: Record, now: float) -> str:
    ended = msgspec.structs.replace(record, status="failed", ended=now, why="its process ended before it did")
    write_record(gated.store.root, ended)
    return f"Dream {record.id} was stopped before it changed anything; its copy was removed."


def _undone(gated: GatedStore, record: Record, now: float) -> str:
    if record.phase == "undoing":
        done = returned(gated.store, record, why=ChangeReason("user", f"undid dream {record.id}", dream=record.id))
        finished(gated, record, now=now)
        return f"The undo of dream {record.id} was stopped half way and is finished now{_left(done)}."
    done = take_back(gated, record, now=now, why="it was stopped while it changed memories")
    return f"Dream {record.id} was stopped while it changed memories; {len(done.back)} of them are as they were{_left(done)}."


def _left(done: Undone) -> str:
    return f"; somebody changed {', '.join(skipped.file for skipped in done.left[:5])} since, which stay" if done.left else ""
