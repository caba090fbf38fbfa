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

from ..core.errors import DiskError, Fenced, LockHeld, LockUnsupported
from .dirfd import Dir, refuse_unless_plain
from .dream_lock_files import GUARD, INFO, LOCK, free, publish, read, remove_record, settle
from .lock import guard_at
from .lock_owner import Here, Holder, Info, State, alive, boottime, held, here, known, start_ticks
from .oslock import Held, kernel_locks
from .rootdir import RootDir
from .temp_files import staged_at

__all__ = ["Hold", "Holder", "Lock", "NotWon"]

# The holder ends itself five minutes before others may replace it: time enough to put everything back.
OVERDUE_NS = 55 * 60 * 1_000_000_000
# Each lost round means that a dream began or ended in those microseconds.
_ROUNDS = 5

Clock = Callable[[], int]


class NotWon(NamedTuple):
    """No lock this time. held: somebody dreams; since: somebody dreamt since the gate looked; busy: the guard was not free;
    unsupported: this file system has no locks. `why` is a sentence for a person."""

    reason: Literal["held", "since", "busy", "unsupported"]
    why: str


class Lock:
    """The lock of the memory directory `root`, which stays open as long as a hold on it. Every question reads the files anew."""

    __slots__ = ("_boottime", "_clock", "_root")

    def __init__(self, root: RootDir, *, clock: Clock = time.time_ns, boottime: Clock = boottime) -> None:
        self._root = root
        self._clock = clock
        self._boottime = boottime

    def last_ns(self) -> int | None:
        """When the last dream was, by one stat; None: never, or more than an hour ahead. This is what `acquire` expects."""
        with self._root._directory("") as where:
            if (found := where.stat(LOCK)) is None:
                return None
            refuse_unless_plain(found, where.full(LOCK), shared=self._root.shared)
        return known(found.st_mtime_ns, self._clock())

    def holder(self) -> Holder | None:
        """Who holds it, or died holding it. Takes nothing and makes no file."""
        with self._root._directory("") as where:
            state = self._read(where)
            for _ in range(_ROUNDS):
                before, state = state, self._read(where)
                if before[:2] == state[:2]:
                    break
        if state.pid is None or state.mtime_ns is None:
            return None
        now = self._here()
        lives = alive(state, now)
        # Other programs leave their process id behind when they are done.
        if state.info is None and not held(state, now):
            return None
        return Holder(state.pid, state.mtime_ns / 1e9, held(state, now) if lives is None else lives)

    def acquire(self, expected_ns: int | None) -> Hold | NotWon:
        """The lock, if nobody holds it and the last dream is still the one of `expected_ns`, the answer of `last_ns`."""
        if not kernel_locks():
            return _unsupported(str(self._root.path))
        try:
            with self._guarded() as where:
                state, now = self._read(where), self._here()
                if (lost := _refusal(state, now, expected_ns)) is not None:
                    return lost
                return self._take(where, _prior(free(where, state), now.now_ns), now)
        except LockUnsupported as error:
            return _unsupported(error.path)
        except LockHeld as error:
            return NotWon("busy", f"{error.path} is in use; a dream is about to begin or to write.")

    def recover(self) -> bool:
        """Puts back the time before a dream whose holder died; True if it did. A holder that lives is left alone."""
        with self._root._directory("") as where:
            if not self._is_dead(self._read(where)):
                return False
        with suppress(LockUnsupported, LockHeld), self._guarded() as where:
            state = self._read(where)
            if self._is_dead(state):
                free(where, state)
                return True
        return False

    def _is_dead(self, state: State) -> bool:
        now = self._here()
        return state.info is not None and not held(state, now) and not alive(state, now)

    def _here(self) -> Here:
        return here(self._clock(), self._boottime())

    @contextmanager
    def _guarded(self) -> Iterator[Dir]:
        with self._root._directory("") as where, guard_at(where, GUARD):
            yield where

    def _read(self, where: Dir) -> State:
        return read(where, shared=self._root.shared)

    def _take(self, where: Dir, prior_ns: int | None, now: Here) -> Hold:
        pid = os.getpid()
        with staged_at(where, LOCK, b"%d\n" % pid, durability="full", mtime_ns=now.now_ns) as lock:
            # The file system may keep less of a time than it was given.
            kept = os.fstat(lock.fd).st_mtime_ns
            info = Info(pid, kept, prior_ns, os.urandom(16).hex(), now.host, now.boot, start_ticks(pid), now.boottime_ns)
            with staged_at(where, INFO, msgspec.json.encode(info), durability="full") as record:
                return Hold(self, info, publish(where, record, lock, prior_ns))


class Hold:
    """The lock, won. Leaving the block unresolved rolls back. A forked child has only a copy that can do nothing."""

    __slots__ = ("_held", "_info", "_lock", "acquired_ns", "nonce", "prior_ns")

    def __init__(self, lock: Lock, info: Info, held: Held) -> None:
        self._lock = lock
        self._info = info
        self._held = held
        self.nonce = info.nonce
        self.acquired_ns = info.mtime_ns
        self.prior_ns = info.prior_ns

    @contextmanager
    def fence(self) -> Iterator[None]:
        """Around each write of a dream: nobody can take the lock meanwhile. Fenced when somebody has; not reentrant."""
        with self._lock._guarded() as where:
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
        with self._lock._guarded() as where:
            if ours := self._is_ours(where):
                settle(where, mtime_ns)
            self._held.release()
            if ours:
                remove_record(where)
        return ours


# The rules of one acquisition


def _refusal(state: State, now: Here, expected_ns: int | None) -> NotWon | None:
    if held(state, now):
        return NotWon("held", f"Process {state.pid} is dreaming on this memory already; wait for it, or end it first.")
    if known(state.mtime_ns, now.now_ns) != expected_ns:
        return NotWon("since", "Another session has dreamt on this memory in the meantime.")
    return None


def _unsupported(path: str) -> NotWon:
    return NotWon("unsupported", f"{path}: this file system has no usable file locks, so no dream is started here.")


def _prior(mtime_ns: int | None, now_ns: int) -> int | None:
    """The time a rollback goes back to; one far ahead becomes now, so that a wrong clock delays a dream by a day at most."""
    return now_ns if mtime_ns is not None and known(mtime_ns, now_ns) is None else mtime_ns
