"""Part of dream_lock.py: the lock of a dream, stopped before each call that changes the disk, by SIGKILL, ENOSPC and EIO.

Four actions: a dream that is given up, one that is finished, one that begins over a dead holder's lock and is given up, a recovery. A
violation: afterwards no dream can begin, or the time of the last dream is neither the one before nor that of a dream that was finished.
"""

from __future__ import annotations

import errno
import os
import signal
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lamina.core.errors import DiskError
from lamina.disk import crash_points as crash
from lamina.disk.files import DREAM_LOCK as LOCK
from lamina.disk.locks.dream_lock import DreamLock, HeldDreamLock
from lamina.disk.trees.rootdir import RootDir

BEFORE = 1_700_000_000_000_000_123
# No action makes nearly as many calls.
MOST_CALLS = 500
# What ends the call: an error, or None for SIGKILL.
FAULTS = (None, errno.ENOSPC, errno.EIO)

Tell = Callable[[int], None]
Action = Callable[[DreamLock, Tell], object]


def _taken(lock: DreamLock) -> HeldDreamLock:
    got = lock.acquire(lock.last_ns())
    if not isinstance(got, HeldDreamLock):
        raise SystemExit(got.why)
    return got


def _give_up(lock: DreamLock, tell: Tell) -> None:
    with _taken(lock) as hold, hold.fence():
        pass


def _finish(lock: DreamLock, tell: Tell) -> None:
    hold = _taken(lock)
    tell(hold.acquired_ns)
    hold.commit()


def _recover(lock: DreamLock, tell: Tell) -> None:
    lock.recover()


def faults(base: Path) -> dict[str, int]:
    tries = violations = 0
    cases: list[tuple[Action, bool]] = [(_give_up, False), (_finish, False), (_give_up, True), (_recover, True)]
    for place, (action, crashed) in enumerate(cases):
        for fault in FAULTS:
            for number in range(1, MOST_CALLS):
                directory = base / f"{place}-{fault}-{number}"
                _prepare(directory, crashed)
                met, began = _stopped(directory, action, fault, number)
                if not met:
                    break
                tries += 1
                violations += not _is_right(directory, {BEFORE, *began})
    return {"tries": tries, "violations": violations}


def _prepare(directory: Path, crashed: bool) -> None:
    directory.mkdir()
    (directory / LOCK).touch()
    os.utime(directory / LOCK, ns=(BEFORE, BEFORE))
    if crashed:
        # The child ends with the lock in its hands.
        os.waitpid(_child(directory, lambda lock, tell: _taken(lock), None, 0, -1), 0)


def _stopped(directory: Path, action: Action, fault: int | None, number: int) -> tuple[bool, list[int]]:
    """Whether the fault was met, and the time of the dream that may have been finished."""
    reader, writer = os.pipe()
    pid = _child(directory, action, fault, number, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = [value for (value,) in struct.iter_unpack("q", pipe.read())]
    os.waitpid(pid, 0)
    return 0 in told, [value for value in told if value]


def _child(directory: Path, action: Action, fault: int | None, number: int, writer: int) -> int:
    if pid := os.fork():
        return pid
    calls = 0

    def tell(value: int) -> None:
        os.write(writer, struct.pack("q", value))

    def watch(name: str, size: int) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            tell(0)
            if fault is None:
                os.kill(os.getpid(), signal.SIGKILL)
            else:
                raise OSError(fault, os.strerror(fault))

    try:
        with RootDir.open(directory) as root, crash.watched(watch), suppress(DiskError):
            action(DreamLock(root), tell)
    finally:
        os._exit(0)


def _is_right(directory: Path, allowed: set[int]) -> bool:
    with RootDir.open(directory) as root:
        lock = DreamLock(root)
        lock.recover()
        last = lock.last_ns()
        hold = lock.acquire(last)
        return last in allowed and isinstance(hold, HeldDreamLock) and hold.rollback() and lock.last_ns() == last
