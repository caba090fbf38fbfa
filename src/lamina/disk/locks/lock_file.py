"""Lock files: a guard that is held for microseconds, and a lock that lasts as long as its owner.

Owns the lock files. Invariants: a lock file is never unlinked, and after locking, its inode is compared with the one at the path,
so two processes can never hold "the same" lock on two inodes. A lock file is never truncated on opening and never a link, so a
planted link does no harm.

After a crash, the kernel releases the lock. The content of a life lock's file only names its owner, for messages.

Locks are not reentrant: taking a guard that this thread already holds waits until the timeout. Without fcntl they are weaker, see
`kernel_lock`.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ...core.errors import DiskError, LockHeld
from ...language.text import Text
from .. import crash_points as crash
from ..crash_points import point
from ..dirfd import OPEN_OR_CREATE, READ_WRITE, Closable, Dir, open_parent, open_plain, reading
from ..faults import AbsentIsFine, reporting
from .kernel_lock import LockDescriptor

# Guards are held for a few system calls, including an fsync. Ten seconds mean a failing disk or a stopped process.
GUARD_TIMEOUT = 10.0
# The first wait is about as long as an update; the longest is short compared with the timeout, for fairness among many waiters.
_SHORTEST_WAIT = 0.000_5
_LONGEST_WAIT = 0.01
# A retry is needed only if a program swapped the lock file in that very microsecond.
_ROUNDS = 20
_HOLDER_BYTES = 200
_NOBODY_KNOWN = Text("another process")
# What an owner writes into its lock.
_HOLDER = re.compile(r"process (?P<pid>\d{1,10}) on (?P<host>.*)")


@contextmanager
def guard(path: str | os.PathLike[str], *, timeout: float = GUARD_TIMEOUT) -> Iterator[None]:
    """Hold the lock file `path` exclusively. Raises LockHeld if it is still taken after `timeout` seconds."""
    with open_parent(path, create=True) as (where, name), guard_at(where, name, timeout=timeout):
        yield


@contextmanager
def guard_at(where: Dir, name: str, *, timeout: float = GUARD_TIMEOUT) -> Iterator[None]:
    for _ in _waits(timeout):
        if (lock := _try(where, name)) is not None:
            break
    else:
        raise LockHeld(where.full(name))
    try:
        yield
    finally:
        lock.release()


def _waits(timeout: float) -> Iterator[None]:
    """Yield immediately, then after increasingly long waits until `timeout` seconds have passed."""
    deadline = time.monotonic() + timeout
    wait = _SHORTEST_WAIT
    yield
    while time.monotonic() < deadline:
        # Jitter between half and all of the wait keeps many waiters from trying in step.
        time.sleep(wait * (0.5 + time.monotonic_ns() % 1_000 / 2_000))
        wait = min(wait * 2, _LONGEST_WAIT)
        yield


def _try(where: Dir, name: str) -> LockDescriptor | None:
    """Return the lock, or None while another holds it. A lock counts only if its file is still the one at the path."""
    full = where.full(name)
    for _ in range(_ROUNDS):
        with reporting(full):
            lock = LockDescriptor(open_plain(where, name, OPEN_OR_CREATE), full)
        keep = False
        try:
            if not lock.try_lock():
                return None
            info = where.stat(name)
            if keep := info is not None and os.path.samestat(os.fstat(lock.fd), info):
                return lock
        finally:
            if not keep:
                lock.release()
    raise DiskError(full, "another program keeps replacing the lock file", "find and stop that program")


class LifeLock(Closable):
    """A lock held until `close` or the end of the process. A forked child never holds it."""

    __slots__ = ("_held",)

    def __init__(self, held: LockDescriptor) -> None:
        self._held = held

    @classmethod
    def acquire(cls, path: str | os.PathLike[str]) -> LifeLock | None:
        """Acquire the lock. Returns None while another owner, in this or another process, has it; `holder(path)` names it."""
        with open_parent(path, create=True) as (where, name):
            # A process that only checks the lock holds it for microseconds, or longer if it is waiting for a CPU.
            for _ in _waits(GUARD_TIMEOUT):
                if (lock := _try(where, name)) is not None:
                    with suppress(OSError):  # it is used in messages, and the disk may be full
                        point("lock.truncate")
                        os.ftruncate(lock.fd, 0)
                        os.lseek(lock.fd, 0, os.SEEK_SET)
                        crash.write("lock.sign", lock.fd, f"process {os.getpid()} on {_host()}\n".encode("utf-8", "replace"))
                    return cls(lock)
                if _is_exclusive(where, name):
                    return None
        return None

    @property
    def held(self) -> bool:
        return self._held.fd >= 0

    def close(self) -> None:
        self._held.release()


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "this computer")


def _is_exclusive(where: Dir, name: str) -> bool:
    """Return whether an owner has the lock now, as opposed to a process that only checks it (`live_holder`)."""
    with reporting(where.full(name)):
        try:
            looking = LockDescriptor(open_plain(where, name, READ_WRITE), where.full(name))
        except FileNotFoundError:
            return False
    try:
        return not looking.try_lock(shared=True)
    finally:
        looking.release()


def live_holder(path: str | os.PathLike[str]) -> Text | None:
    """Return the current owner of the life lock `path`, or None. Takes no lock and creates no file."""
    with AbsentIsFine(), open_parent(path) as (where, name):
        return holder(path) if _is_exclusive(where, name) else None
    return None


def holder(path: str | os.PathLike[str]) -> Text:
    """Return the name of the life lock's last owner, for messages."""
    with suppress(DiskError), open_parent(path) as (where, name), reading(where, name) as fd:
        text = os.read(fd, _HOLDER_BYTES).decode("utf-8", "replace").strip()
        if not text or not text.isprintable():
            return _NOBODY_KNOWN
        match = _HOLDER.fullmatch(text)
        return Text.whole(text) if match is None else Text("process {pid} on {host}", **match.groupdict())
    return _NOBODY_KNOWN


def live_process(path: str | os.PathLike[str]) -> int:
    """Return the id of the process that has the life lock `path`; 0 if none has, -1 for a process of another machine."""
    owner = live_holder(path)
    match = _HOLDER.fullmatch(owner) if owner is not None else None
    return 0 if owner is None else int(match["pid"]) if match is not None and match["host"] == _host() else -1
