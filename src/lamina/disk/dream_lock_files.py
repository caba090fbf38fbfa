"""The three files of the consolidation lock: how they are read, and the changes made to them.

Owns their names and their form. Invariants: the lock changes only by rename or unlink, so its process id and its time appear
together; a record counts only beside the lock it speaks of; whoever changes either holds the guard.

A crash at any line leaves the lock as it was or as it was to be. A record without its lock says nothing, and the next holder
replaces it.
"""

from __future__ import annotations

import os
from contextlib import suppress

import msgspec

from ..core.errors import DiskError, LockHeld, LockUnsupported
from . import oslock
from .dirfd import READ, READ_WRITE, Dir, open_plain
from .faults import reporting
from .files import DREAM_LOCK, read_head, remove_at
from .lock_owner import Info, State, pid_in
from .oslock import Held
from .temp_files import Temp, staged_at

LOCK = DREAM_LOCK
GUARD = f"{LOCK}.guard"
INFO = f"{LOCK}.info"

# flock takes any descriptor, also on a read-only disk; other lock calls may want one that can write.
_TO_LOOK = READ_WRITE if oslock.fcntl is None else READ
# A process id and a line end; and a record with the longest host name there is.
_LOCK_BYTES = 64
_INFO_BYTES = 4_096


def read(where: Dir, *, shared: bool) -> State:
    """The record is read only for a lock that names somebody, and counts only if it speaks of that lock."""
    with reporting(where.full(LOCK)):
        try:
            fd = open_plain(where, LOCK, READ, shared=shared)
        except FileNotFoundError:
            return State()
        try:
            mtime_ns, pid = os.fstat(fd).st_mtime_ns, pid_in(read_head(fd, _LOCK_BYTES))
        finally:
            os.close(fd)
    info, locked = (None, None) if pid is None else _read_record(where, shared)
    if info is None or (info.pid, info.mtime_ns) != (pid, mtime_ns):
        return State(mtime_ns, pid)
    return State(mtime_ns, pid, info, locked)


def _read_record(where: Dir, shared: bool) -> tuple[Info | None, bool | None]:
    full = where.full(INFO)
    with reporting(full):
        try:
            looking = Held(open_plain(where, INFO, _TO_LOOK, shared=shared), full)
        except FileNotFoundError:
            return None, None
        try:
            return msgspec.json.decode(read_head(looking.fd, _INFO_BYTES), type=Info), _is_locked(looking)
        except msgspec.DecodeError:
            return None, None
        finally:
            looking.release()


def _is_locked(looking: Held) -> bool | None:
    """Whether the record's holder lives: it keeps the file locked, so asking for the lock is asking the kernel."""
    try:
        return not looking.try_lock(shared=True)
    except LockUnsupported:
        return None


def free(where: Dir, state: State) -> int | None:
    """Rolls back for a holder that is gone, so that there is one kind of lock to take; the time of the last dream."""
    if state.info is None:
        return state.mtime_ns
    settle(where, state.info.prior_ns)
    remove_record(where)
    return state.info.prior_ns


def settle(where: Dir, mtime_ns: int | None) -> None:
    """Nobody's lock, with the time of the last dream; no lock at all for never."""
    if mtime_ns is None:
        remove_at(where, LOCK)
        return
    with staged_at(where, LOCK, b"", durability="full", mtime_ns=mtime_ns) as lock:
        lock.publish()


def remove_record(where: Dir) -> None:
    """A record that stays says nothing without its lock, and the next holder replaces it."""
    with suppress(DiskError):
        remove_at(where, INFO)


def publish(where: Dir, record: Temp, lock: Temp, prior_ns: int | None) -> Held:
    """The record first: the lock is won by its own rename, and by then its holder can be asked about."""
    held: Held | None = None
    try:
        record.publish()
        held = _kept(where, record)
        lock.publish()
    except BaseException:
        # The rename may have happened before the error. A lock that can't be put back keeps its record, which nobody locks now: that
        # is a dead holder's lock, for `recover`.
        if held is not None:
            held.release()
        with suppress(DiskError):
            settle(where, prior_ns)
            remove_record(where)
        raise
    return held


def _kept(where: Dir, record: Temp) -> Held:
    """The record's lock. Windows must let it go for the rename, so there it is taken again; without locks this raises."""
    held = record.keep()
    if not held.locked:
        held.release()
        with reporting(held.path):
            held = Held(open_plain(where, INFO, READ_WRITE), where.full(INFO))
        if not held.try_lock():
            held.release()
            raise LockHeld(where.full(INFO))
    return held
