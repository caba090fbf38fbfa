"""The consolidation lock: allows at most one dream in a memory directory, and stores the time of the last one.

Owns three files. `.consolidate-lock` (the lock) contains a process id or nothing, and its mtime is the time of the last dream. It
changes only by rename or unlink, so both appear together. `.consolidate-lock.guard` is empty, never removed, and flocked around
each change. `.consolidate-lock.info` is the owner's record: a new inode for each owner, which keeps it flocked as long as it
lives.

Invariants: the lock and the record change only under the guard. An owner is replaced only if it is dead or has held the lock for
an hour. A replaced owner can change neither file, and its `fence` refuses its writes.

A crash before the rename of the lock leaves the previous state: the new record does not match the lock and is ignored. A crash
after it leaves a lock with a dead owner, which `recover` or the next `acquire` resets to the previous time. So a crashed dream
never counts as one. docs/design/dream-lock.md explains why this is correct.

Weaker on Windows: an owner that still runs after an hour is not replaced, because its record cannot be replaced while it is open.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple, Self

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError, Fenced, LockHeld, LockUnsupported
from ...language.text import Text
from ..dirfd import READ, READ_WRITE, Dir, open_plain, reading, refuse_unless_plain
from ..faults import AbsentIsFine, reporting
from ..files import DREAM_LOCK as LOCK
from ..files import read_head, remove_at
from ..temp_files import Temp, staged_at
from ..trees.rootdir import RootDir
from . import kernel_lock
from .dream_lock_owner import (
    DreamLockHolder,
    DreamLockState,
    HolderRecord,
    ThisMachine,
    boottime,
    is_alive,
    is_held,
    known_time,
    pid_in,
    start_ticks,
    this_machine,
)
from .kernel_lock import LockDescriptor, kernel_locks

GUARD = f"{LOCK}.guard"
INFO = f"{LOCK}.info"

# flock accepts any descriptor, even on a read-only disk; other lock calls may need a writable one.
_TO_LOOK = READ_WRITE if kernel_lock.fcntl is None else READ
# Enough for a process id with a line end, and for a record with the longest possible host name.
_LOCK_BYTES = 64
_INFO_BYTES = 4_096

# The owner stops five minutes before others may replace it, which leaves time to roll everything back.
OVERDUE_NS = 55 * 60 * 1_000_000_000
# A retry is needed only if a dream began or ended within these microseconds.
_ROUNDS = 5

Clock = Callable[[], int]


class NotWon(NamedTuple):
    """The lock was not acquired. `why` is a sentence for the user.

    held: a dream is running; since: another dream finished after the caller checked; busy: the guard was not free; unsupported:
    this file system has no locks.
    """

    reason: Literal["held", "since", "busy", "unsupported"]
    why: str


class DreamLock:
    """The lock of the memory directory `root`, which stays open while the lock is held. Each method reads the files afresh."""

    __slots__ = ("_boottime", "_clock", "_root")

    def __init__(self, root: RootDir, *, clock: Clock = time.time_ns, boottime: Clock = boottime) -> None:
        self._root = root
        self._clock = clock
        self._boottime = boottime

    def last_ns(self) -> int | None:
        """Return the time of the last dream, for `acquire`. None means never, or a time more than an hour in the future."""
        with self._root.directory() as where:
            if (info := where.stat(LOCK)) is None:
                return None
            refuse_unless_plain(info, where.full(LOCK), shared=self._root.shared)
        return known_time(info.st_mtime_ns, self._clock())

    def holder(self) -> DreamLockHolder | None:
        """Return the process that holds the lock, or died holding it. Takes no lock and creates no file."""
        with self._root.directory() as where:
            state = self._read(where)
            for _ in range(_ROUNDS):
                before, state = state, self._read(where)
                if before[:2] == state[:2]:
                    break
        if state.pid is None or state.mtime_ns is None:
            return None
        now = self._here()
        lives = is_alive(state, now)
        # Other programs leave their process id in the file when they are done.
        if state.info is None and not is_held(state, now):
            return None
        return DreamLockHolder(state.pid, state.mtime_ns / 1e9, is_held(state, now) if lives is None else lives)

    def acquire(self, expected_ns: int | None) -> HeldDreamLock | NotWon:
        """Acquire the lock if it is free and the time of the last dream is still `expected_ns`, as returned by `last_ns`."""
        if not kernel_locks():
            return _unsupported(str(self._root.path))
        try:
            with self._root.guard(GUARD) as where:
                state, now = self._read(where), self._here()
                if (lost := _refusal(state, now, expected_ns)) is not None:
                    return lost
                return self._take(where, _prior(_free(where, state), now.now_ns), now)
        except LockUnsupported as error:
            return _unsupported(error.path)
        except LockHeld as error:
            return NotWon("busy", Text("{path} is in use: another dream is starting or writing.", path=error.path))

    def recover(self) -> bool:
        """Reset the lock after a dream whose owner died. Returns whether it did. A live owner is left alone."""
        with self._root.directory() as where:
            if not self._is_dead(self._read(where)):
                return False
        with suppress(LockUnsupported, LockHeld), self._root.guard(GUARD) as where:
            state = self._read(where)
            if self._is_dead(state):
                _free(where, state)
                return True
        return False

    def _is_dead(self, state: DreamLockState) -> bool:
        now = self._here()
        return state.info is not None and not is_held(state, now) and not is_alive(state, now)

    def _here(self) -> ThisMachine:
        return this_machine(self._clock(), self._boottime())

    def _read(self, where: Dir) -> DreamLockState:
        return _read(where, shared=self._root.shared)

    def _take(self, where: Dir, prior_ns: int | None, now: ThisMachine) -> HeldDreamLock:
        pid = os.getpid()
        with staged_at(where, LOCK, b"%d\n" % pid, durability="full", mtime_ns=now.now_ns) as lock:
            # The file system may store the time with less precision.
            mtime_ns = os.fstat(lock.fd).st_mtime_ns
            info = HolderRecord(
                pid, mtime_ns, prior_ns, os.urandom(16).hex(), now.host, now.boot, start_ticks(pid), now.boottime_ns
            )
            with staged_at(where, INFO, msgspec.json.encode(info), durability="full") as record:
                return HeldDreamLock(self, info, _publish(where, record, lock, prior_ns))


class HeldDreamLock:
    """An acquired lock. Leaving the block without `commit` rolls back. A copy in a forked child can do nothing."""

    __slots__ = ("_held", "_info", "_lock", "acquired_ns", "prior_ns")

    def __init__(self, lock: DreamLock, info: HolderRecord, held: LockDescriptor) -> None:
        self._lock = lock
        self._info = info
        self._held = held
        self.acquired_ns = info.mtime_ns
        self.prior_ns = info.prior_ns

    @contextmanager
    def fence(self) -> Iterator[None]:
        """Guard a write of the dream: no other process can take the lock meanwhile. Not reentrant.

        Raises Fenced if another process has taken the lock already.
        """
        with self._lock._root.guard(GUARD) as where:
            if not self._is_ours(where):
                raise Fenced(where.full(LOCK))
            yield

    def commit(self) -> bool:
        """Record the dream, with its start as the time. Returns False, and does nothing, if the lock is no longer ours."""
        return self._end(self.acquired_ns)

    def rollback(self) -> bool:
        """Restore the time before the dream. Returns False, and does nothing, if the lock is no longer ours."""
        return self._end(self.prior_ns)

    def leave(self) -> None:
        """Leave the lock as if the process had died, because the next session must clean up: it will see a dead owner's lock."""
        self._held.release()

    def overdue(self) -> bool:
        """Return whether the owner must stop now, before others may take the lock from it."""
        return self._lock._boottime() - self._info.boottime_ns >= OVERDUE_NS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.rollback()
        except DiskError:
            # The block's own exception matters more. The lock stays with a dead owner, which `recover` resets.
            if kind is None:
                raise
        finally:
            self._held.release()

    def _is_ours(self, where: Dir) -> bool:
        if self._held.fd < 0:
            return False
        return self._lock._read(where).info == self._info

    def _end(self, mtime_ns: int | None) -> bool:
        if self._held.fd < 0:
            return False
        with self._lock._root.guard(GUARD) as where:
            if ours := self._is_ours(where):
                _settle(where, mtime_ns)
            self._held.release()
            if ours:
                _remove_record(where)
        return ours


# The rules of one acquisition


def _refusal(state: DreamLockState, now: ThisMachine, expected_ns: int | None) -> NotWon | None:
    if is_held(state, now):
        return NotWon(
            "held", Text("Process {pid} is already running a dream on this memory. Wait for it, or stop it first.", pid=state.pid)
        )
    if known_time(state.mtime_ns, now.now_ns) != expected_ns:
        return NotWon("since", "Another session has run a dream on this memory in the meantime.")
    return None


def _unsupported(path: str) -> NotWon:
    return NotWon("unsupported", f"{path}: this file system does not support file locks, so no dream is started.")


def _prior(mtime_ns: int | None, now_ns: int) -> int | None:
    """Return the time that a rollback restores. A time far in the future becomes now, so a wrong clock costs at most a day."""
    return now_ns if mtime_ns is not None and known_time(mtime_ns, now_ns) is None else mtime_ns


# The files


def _read(where: Dir, *, shared: bool) -> DreamLockState:
    """Read the lock's files. The record is read only if the lock names a process, and counts only if it belongs to that lock."""
    mtime_ns, pid = None, None
    with AbsentIsFine(), reading(where, LOCK, shared=shared) as fd:
        mtime_ns, pid = os.fstat(fd).st_mtime_ns, pid_in(read_head(fd, _LOCK_BYTES))
    info, locked = (None, None) if pid is None else _read_record(where, shared)
    if info is None or (info.pid, info.mtime_ns) != (pid, mtime_ns):
        return DreamLockState(mtime_ns, pid)
    return DreamLockState(mtime_ns, pid, info, locked)


def _read_record(where: Dir, shared: bool) -> tuple[HolderRecord | None, bool | None]:
    full = where.full(INFO)
    with reporting(full):
        try:
            looking = LockDescriptor(open_plain(where, INFO, _TO_LOOK, shared=shared), full)
        except FileNotFoundError:
            return None, None
        try:
            return msgspec.json.decode(read_head(looking.fd, _INFO_BYTES), type=HolderRecord), _is_locked(looking)
        except UNDECODABLE:
            return None, None
        finally:
            looking.release()


def _is_locked(looking: LockDescriptor) -> bool | None:
    """Return whether the owner is alive. It keeps the record locked, so trying the lock asks the kernel."""
    try:
        return not looking.try_lock(shared=True)
    except LockUnsupported:
        return None


def _free(where: Dir, state: DreamLockState) -> int | None:
    """Roll back for a dead owner, so that there is only one kind of free lock. Returns the time of the last dream."""
    if state.info is None:
        return state.mtime_ns
    _settle(where, state.info.prior_ns)
    _remove_record(where)
    return state.info.prior_ns


def _settle(where: Dir, mtime_ns: int | None) -> None:
    """Write a free lock with the time of the last dream, or remove the lock if there was none."""
    if mtime_ns is None:
        remove_at(where, LOCK)
        return
    with staged_at(where, LOCK, b"", durability="full", mtime_ns=mtime_ns) as lock:
        lock.publish()


def _remove_record(where: Dir) -> None:
    """Remove the record. If that fails, it does no harm: without its lock it is ignored, and the next owner replaces it."""
    with suppress(DiskError):
        remove_at(where, INFO)


def _publish(where: Dir, record: Temp, lock: Temp, prior_ns: int | None) -> LockDescriptor:
    """Publish the record first: the rename of the lock wins it, and by then the record must identify its owner."""
    held: LockDescriptor | None = None
    try:
        record.publish()
        held = _kept(where, record)
        lock.publish()
    except BaseException:
        # The rename may have happened before the error. If the lock cannot be reset, it keeps its record, which is no longer
        # locked: it looks like a dead owner's lock, and `recover` resets it.
        if held is not None:
            held.release()
        with suppress(DiskError):
            _settle(where, prior_ns)
            _remove_record(where)
        raise
    return held


def _kept(where: Dir, record: Temp) -> LockDescriptor:
    """Return the locked record. On Windows the lock must be released for the rename and is taken again here."""
    held = record.keep()
    if not held.locked:
        held.release()
        with reporting(held.path):
            held = LockDescriptor(open_plain(where, INFO, READ_WRITE), where.full(INFO))
        if not held.try_lock():
            held.release()
            raise LockHeld(where.full(INFO))
    return held
