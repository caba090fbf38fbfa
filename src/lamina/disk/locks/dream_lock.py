"""The consolidation lock: at most one dream in a memory directory, and when the last one was (D2).

Owns three files. `.consolidate-lock` (the lock): a process id or nothing, and its mtime is the time of the last dream; it changes
only by rename or unlink, so both appear together. `.consolidate-lock.guard`: empty, never removed, flocked around each change.
`.consolidate-lock.info`: the holder's record, a new inode for each holder, which keeps it flocked as long as it lives.

Invariants: the lock and the record change only under the guard; a holder is replaced only when it is dead or has held for an hour;
a holder that was replaced can change neither, and its `fence` refuses its writes.

A crash before the lock's rename leaves the state before; the new record alone does not match the lock and says nothing. A crash
behind it leaves a lock with a dead holder, which `recover` or the next `acquire` puts back to the time before. So a dream that
crashed never counts as one. docs/design/dream-lock.md says why this holds.

Weaker on Windows: a holder of more than an hour that still runs is not replaced, because its record can't be while it is open.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal, NamedTuple, Self

import msgspec

from ...core.errors import DiskError, Fenced, LockHeld, LockUnsupported
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

# flock takes any descriptor, also on a read-only disk; other lock calls may want one that can write.
_TO_LOOK = READ_WRITE if kernel_lock.fcntl is None else READ
# A process id and a line end; and a record with the longest host name there is.
_LOCK_BYTES = 64
_INFO_BYTES = 4_096

# The holder ends itself five minutes before others may replace it: time enough to put everything back.
OVERDUE_NS = 55 * 60 * 1_000_000_000
# Each lost round means that a dream began or ended in those microseconds.
_ROUNDS = 5

Clock = Callable[[], int]


class NotWon(NamedTuple):
    """No lock this time. held: somebody dreams; since: somebody dreamt since the gate looked; busy: the guard was not free;
    unsupported: this file system has no locks. `why` is a sentence for the user."""

    reason: Literal["held", "since", "busy", "unsupported"]
    why: str


class DreamLock:
    """The lock of the memory directory `root`, which stays open as long as a hold on it. Every question reads the files anew."""

    __slots__ = ("_boottime", "_clock", "_root")

    def __init__(self, root: RootDir, *, clock: Clock = time.time_ns, boottime: Clock = boottime) -> None:
        self._root = root
        self._clock = clock
        self._boottime = boottime

    def last_ns(self) -> int | None:
        """Return when the last dream was, by one stat; None: never, or more than an hour ahead. This is what `acquire` expects."""
        with self._root.directory() as where:
            if (found := where.stat(LOCK)) is None:
                return None
            refuse_unless_plain(found, where.full(LOCK), shared=self._root.shared)
        return known_time(found.st_mtime_ns, self._clock())

    def holder(self) -> DreamLockHolder | None:
        """Return the process that holds it, or died holding it. Takes nothing and makes no file."""
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
        # Other programs leave their process id behind when they are done.
        if state.info is None and not is_held(state, now):
            return None
        return DreamLockHolder(state.pid, state.mtime_ns / 1e9, is_held(state, now) if lives is None else lives)

    def acquire(self, expected_ns: int | None) -> HeldDreamLock | NotWon:
        """The lock, if nobody holds it and the last dream is still the one of `expected_ns`, the answer of `last_ns`."""
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
            return NotWon("busy", f"{error.path} is in use; a dream is about to begin or to write.")

    def recover(self) -> bool:
        """Puts back the time before a dream whose holder died; True if it did. A holder that lives is left alone."""
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
            # The file system may keep less of a time than it was given.
            kept = os.fstat(lock.fd).st_mtime_ns
            info = HolderRecord(pid, kept, prior_ns, os.urandom(16).hex(), now.host, now.boot, start_ticks(pid), now.boottime_ns)
            with staged_at(where, INFO, msgspec.json.encode(info), durability="full") as record:
                return HeldDreamLock(self, info, _publish(where, record, lock, prior_ns))


class HeldDreamLock:
    """The lock, won. Leaving the block unresolved rolls back. A forked child has only a copy that can do nothing."""

    __slots__ = ("_held", "_info", "_lock", "acquired_ns", "prior_ns")

    def __init__(self, lock: DreamLock, info: HolderRecord, held: LockDescriptor) -> None:
        self._lock = lock
        self._info = info
        self._held = held
        self.acquired_ns = info.mtime_ns
        self.prior_ns = info.prior_ns

    @contextmanager
    def fence(self) -> Iterator[None]:
        """Around each write of a dream: nobody can take the lock meanwhile. Fenced when somebody has; not reentrant."""
        with self._lock._root.guard(GUARD) as where:
            if not self._is_ours(where):
                raise Fenced(where.full(LOCK))
            yield

    def commit(self) -> bool:
        """The dream counts, from the moment it began; False: the lock was not ours any more, and nothing was done."""
        return self._end(self.acquired_ns)

    def rollback(self) -> bool:
        """The dream never was; False as in `commit`."""
        return self._end(self.prior_ns)

    def leave(self) -> None:
        """As if its process had died here: something is left to put right, so the next session must see a dead holder's lock."""
        self._held.release()

    def overdue(self) -> bool:
        """Whether the holder must end now, before others may take the lock from it."""
        return self._lock._boottime() - self._info.boottime_ns >= OVERDUE_NS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.rollback()
        except DiskError:
            # What ended the block matters more; the lock stays with a dead holder, which `recover` puts right.
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
        return NotWon("held", f"Process {state.pid} is dreaming on this memory already; wait for it, or end it first.")
    if known_time(state.mtime_ns, now.now_ns) != expected_ns:
        return NotWon("since", "Another session has dreamt on this memory in the meantime.")
    return None


def _unsupported(path: str) -> NotWon:
    return NotWon("unsupported", f"{path}: this file system has no usable file locks, so no dream is started here.")


def _prior(mtime_ns: int | None, now_ns: int) -> int | None:
    """The time a rollback goes back to; one far ahead becomes now, so that a wrong clock delays a dream by a day at most."""
    return now_ns if mtime_ns is not None and known_time(mtime_ns, now_ns) is None else mtime_ns


# The files


def _read(where: Dir, *, shared: bool) -> DreamLockState:
    """The record is read only for a lock that names somebody, and counts only if it speaks of that lock."""
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
        except msgspec.DecodeError:
            return None, None
        finally:
            looking.release()


def _is_locked(looking: LockDescriptor) -> bool | None:
    """Whether the record's holder lives: it keeps the file locked, so asking for the lock is asking the kernel."""
    try:
        return not looking.try_lock(shared=True)
    except LockUnsupported:
        return None


def _free(where: Dir, state: DreamLockState) -> int | None:
    """Rolls back for a holder that is gone, so that there is one kind of lock to take; the time of the last dream."""
    if state.info is None:
        return state.mtime_ns
    _settle(where, state.info.prior_ns)
    _remove_record(where)
    return state.info.prior_ns


def _settle(where: Dir, mtime_ns: int | None) -> None:
    """Nobody's lock, with the time of the last dream; no lock at all for never."""
    if mtime_ns is None:
        remove_at(where, LOCK)
        return
    with staged_at(where, LOCK, b"", durability="full", mtime_ns=mtime_ns) as lock:
        lock.publish()


def _remove_record(where: Dir) -> None:
    """A record that stays says nothing without its lock, and the next holder replaces it."""
    with suppress(DiskError):
        remove_at(where, INFO)


def _publish(where: Dir, record: Temp, lock: Temp, prior_ns: int | None) -> LockDescriptor:
    """The record first: the lock is won by its own rename, and by then its holder can be asked about."""
    held: LockDescriptor | None = None
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
            _settle(where, prior_ns)
            _remove_record(where)
        raise
    return held


def _kept(where: Dir, record: Temp) -> LockDescriptor:
    """The record's lock. Windows must let it go for the rename, so there it is taken again; without locks this raises."""
    held = record.keep()
    if not held.locked:
        held.release()
        with reporting(held.path):
            held = LockDescriptor(open_plain(where, INFO, READ_WRITE), where.full(INFO))
        if not held.try_lock():
            held.release()
            raise LockHeld(where.full(INFO))
    return held
