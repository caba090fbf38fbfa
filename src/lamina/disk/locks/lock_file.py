"""Locks: a guard for microseconds, and a lock that lives as long as its holder.

Owns the lock files. Invariants: a lock file is never unlinked, and after locking its inode is compared with the one at the path,
so two processes can never hold "the same" lock on two inodes; a lock file is never truncated on opening and never a link, so a
planted one harms nothing.

A crash anywhere frees the lock: the kernel does it. What is written into a life lock's file only names its holder for a message.

Not reentrant: taking a guard that this thread already holds waits for its timeout. Weaker without fcntl: see `kernel_lock`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...core.errors import DiskError, LockHeld
from .. import crash_points as crash
from ..crash_points import point
from ..dirfd import OPEN_OR_CREATE, READ_WRITE, Closable, Dir, open_parent, open_plain, reading
from ..faults import AbsentIsFine, reporting
from .kernel_lock import LockDescriptor

# Guards are held for a few system calls, one of them an fsync; ten seconds of that is a sick disk or a stopped process.
GUARD_TIMEOUT = 10.0
# The first wait is about as long as an update takes; the longest is short against the timeout, for fairness among many waiters.
_SHORTEST_WAIT = 0.000_5
_LONGEST_WAIT = 0.01
# Each lost round means that somebody swapped the lock file in that very microsecond.
_ROUNDS = 20
_HOLDER_BYTES = 200
_NOBODY_KNOWN = "another process"


@contextmanager
def guard(path: str | os.PathLike[str], *, timeout: float = GUARD_TIMEOUT) -> Iterator[None]:
    """Holds the lock file `path` exclusively; LockHeld when it is still taken after `timeout` seconds."""
    with open_parent(path, create=True) as (where, name), guard_at(where, name, timeout=timeout):
        yield


@contextmanager
def guard_at(where: Dir, name: str, *, timeout: float = GUARD_TIMEOUT) -> Iterator[None]:
    for _ in _waits(timeout):
        if (held := _try(where, name)) is not None:
            break
    else:
        raise LockHeld(where.full(name))
    try:
        yield
    finally:
        held.release()


def _waits(timeout: float) -> Iterator[None]:
    """Once at once, then after longer and longer waits until `timeout` seconds are over."""
    deadline = time.monotonic() + timeout
    wait = _SHORTEST_WAIT
    yield
    while time.monotonic() < deadline:
        # Between half of it and all of it, so that many waiters do not ask in step.
        time.sleep(wait * (0.5 + time.monotonic_ns() % 1_000 / 2_000))
        wait = min(wait * 2, _LONGEST_WAIT)
        yield


def _try(where: Dir, name: str) -> LockDescriptor | None:
    """The lock, or None while somebody has it. The lock counts only if its file still stands at the path."""
    full = where.full(name)
    for _ in range(_ROUNDS):
        with reporting(full):
            held = LockDescriptor(open_plain(where, name, OPEN_OR_CREATE), full)
        keep = False
        try:
            if not held.try_lock():
                return None
            there = where.stat(name)
            if keep := there is not None and os.path.samestat(os.fstat(held.fd), there):
                return held
        finally:
            if not keep:
                held.release()
    raise DiskError(full, "the lock file is replaced again and again", "find the program that does it")


class LifeLock(Closable):
    """A lock held until `close` or the end of the process. A forked child does not hold it, whatever its parent does."""

    __slots__ = ("_held",)

    def __init__(self, held: LockDescriptor) -> None:
        self._held = held

    @classmethod
    def acquire(cls, path: str | os.PathLike[str]) -> LifeLock | None:
        """None while another live holder has it, in this process or any other; `holder(path)` names it then."""
        with open_parent(path, create=True) as (where, name):
            # Somebody who only looks has it for microseconds, or longer where their process waits for its turn.
            for _ in _waits(GUARD_TIMEOUT):
                if (held := _try(where, name)) is not None:
                    _sign(held)
                    return cls(held)
                if _is_exclusive(where, name):
                    return None
        return None

    @property
    def held(self) -> bool:
        return self._held.fd >= 0

    def close(self) -> None:
        self._held.release()


def _sign(held: LockDescriptor) -> None:
    """Write into the file who holds it. Only read for messages, so a file system with no space left is no reason to fail."""
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "this computer")
    with suppress(OSError):
        point("lock.truncate")
        os.ftruncate(held.fd, 0)
        os.lseek(held.fd, 0, os.SEEK_SET)
        crash.write("lock.sign", held.fd, f"process {os.getpid()} on {host}\n".encode("utf-8", "replace"))


def _is_exclusive(where: Dir, name: str) -> bool:
    """Whether a holder, and not only somebody who looks (`live_holder`), has the lock at this moment."""
    with reporting(where.full(name)):
        try:
            looking = LockDescriptor(open_plain(where, name, READ_WRITE), where.full(name))
        except FileNotFoundError:
            return False
    try:
        return not looking.try_lock(shared=True)
    finally:
        looking.release()


def live_holder(path: str | os.PathLike[str]) -> str | None:
    """Return who holds the life lock `path` now; None when nobody does. Takes nothing and makes no file."""
    with AbsentIsFine(), open_parent(path) as (where, name):
        return holder(path) if _is_exclusive(where, name) else None
    return None


def holder(path: str | os.PathLike[str]) -> str:
    """Return what the last holder wrote into the life lock's file, for a message."""
    with suppress(DiskError), open_parent(path) as (where, name), reading(where, name) as fd:
        text = os.read(fd, _HOLDER_BYTES).decode("utf-8", "replace").strip()
        return text if text.isprintable() and text else _NOBODY_KNOWN
    return _NOBODY_KNOWN
