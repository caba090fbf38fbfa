"""Temporary files: complete before they get their final name, and recognisable as abandoned if their writer died.

Owns every file named `.lamina-*.tmp`. Invariants: the target changes only by the rename of a file that is complete, checked and
(durability "full") on stable storage. The writer locks a temporary file as long as it has its temporary name, so a sweep asks the
kernel, not a clock or a process id, whether it is abandoned.

A crash at any line leaves the target old or new, and at most one temporary file, which the next sweep removes.

Without kernel locks, a sweep goes by age. On Windows, a file that another program is reading is replaced once it is closed,
within a second.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from ..core.errors import DiskError, LockUnsupported, PathRefused
from .crash_points import point, write_all
from .dirfd import CREATE_NEW, READ_WRITE, Dir, open_plain, refuse_unless_plain, set_private, sync_fd
from .faults import AbsentIsFine, reporting
from .locks.kernel_lock import LockDescriptor, kernel_locks

# "full": acknowledged content survives a power loss; "process": it survives the end of the process.
Durability = Literal["full", "process"]

_TEMP_PREFIX = ".lamina-"
_TEMP_SUFFIX = ".tmp"
# A try fails only if a sweep removes the file in the microsecond between creating and locking it.
_TEMP_TRIES = 20

# Age of an abandoned file, if no lock can tell whether its writer is alive: no write takes an hour.
_ABANDONED_AFTER = 3_600.0
# Windows refuses to replace a file that is open elsewhere, but readers are quick.
_RENAME_WAIT = 1.0 if os.name == "nt" else 0.0
# It also refuses to rename or unlink a file that we have open, so the lock is released first there, and kept to the end
# elsewhere.
_CLOSE_FIRST = os.name == "nt"
_RENAME_PAUSE = 0.01


class Temp:
    """A complete file under a temporary name, locked by its writer so that no sweep removes it."""

    __slots__ = ("_durability", "_held", "_kept", "_name", "_published", "_target", "_where")

    def __init__(self, where: Dir, name: str, held: LockDescriptor, target: str, durability: Durability) -> None:
        self._where = where
        self._name = name
        self._held = held
        self._target = target
        self._durability: Durability = durability
        self._published = False
        self._kept = False

    @property
    def fd(self) -> int:
        return self._held.fd

    def publish(self) -> None:
        """Rename the file to its target. This is the one moment at which the new content appears."""
        with reporting(self._where.full(self._target)):
            if _CLOSE_FIRST:
                self._held.release()
            _rename(self._where, self._name, self._target)
            self._published = True
            if self._durability == "full":
                self._where.sync()

    def keep(self) -> LockDescriptor:
        """Return the locked descriptor of the published file. The lock then lasts as long as the caller keeps it."""
        self._kept = True
        return self._held

    def drop(self) -> None:
        if _CLOSE_FIRST and not self._kept:
            self._held.release()
        if not self._published:
            with suppress(OSError):
                point("temp.unlink")
                os.unlink(self._where.at(self._name), dir_fd=self._where.fd)
        if not self._kept:
            self._held.release()


@contextmanager
def staged_at(
    where: Dir,
    name: str,
    data: bytes | Iterable[bytes | memoryview],
    *,
    durability: Durability,
    mtime_ns: int | None = None,
    shared: bool = False,
    points: str = "temp",
) -> Iterator[Temp]:
    """Write and sync `data` under a temporary name. `publish` renames it to `name`; otherwise the end of the block removes it.

    `data` may be an iterable of pieces. `points` is the prefix of the crash points' names.
    """
    full = where.full(name)
    if (info := where.stat(name)) is not None:
        refuse_unless_plain(info, full, shared=shared)
    with reporting(full):
        temp = _create(where, name, durability)
    try:
        with reporting(full):
            size = 0
            for part in (data,) if isinstance(data, bytes) else data:
                write_all(f"{points}.write", temp.fd, part)
                size += len(part)
            # Some file systems report more bytes written than they kept.
            if os.fstat(temp.fd).st_size != size:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            if mtime_ns is not None:
                point(f"{points}.utime")
                os.utime(temp.fd, ns=(mtime_ns, mtime_ns))
            if durability == "full":
                sync_fd(temp.fd, f"{points}.fsync")
        yield temp
    finally:
        temp.drop()


def _create(where: Dir, target: str, durability: Durability) -> Temp:
    for _ in range(_TEMP_TRIES):
        name = temp_name()
        point("temp.create")
        try:
            fd = os.open(where.at(name), CREATE_NEW, 0o600, dir_fd=where.fd)
        except FileExistsError:
            continue
        temp = Temp(where, name, LockDescriptor(fd, where.full(name)), target, durability)
        ready = False
        try:
            if _claimed(temp):
                set_private(fd, os.fstat(fd).st_mode)
                ready = True
                return temp
        finally:
            if not ready:
                temp.drop()
    raise DiskError(where.full(target), "another program keeps removing its temporary file", "find and stop that program")


def _claimed(temp: Temp) -> bool:
    """Lock the new file. Returns False if a sweep removed it between creating and locking."""
    if not kernel_locks():
        return True
    try:
        return temp._held.try_lock() and os.fstat(temp.fd).st_nlink == 1
    except LockUnsupported:
        # Without locks a sweep cannot tell whether a writer is alive, so it goes by age and leaves young files alone.
        return True


def _rename(where: Dir, temp: str, name: str) -> None:
    deadline = time.monotonic() + _RENAME_WAIT
    while True:
        try:
            point("temp.rename")
            os.replace(where.at(temp), where.at(name), src_dir_fd=where.fd, dst_dir_fd=where.fd)
        except PermissionError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_RENAME_PAUSE)
        else:
            return


def temp_name() -> str:
    return f"{_TEMP_PREFIX}{os.urandom(8).hex()}{_TEMP_SUFFIX}"


def is_temp(name: str) -> bool:
    return name.startswith(_TEMP_PREFIX) and name.endswith(_TEMP_SUFFIX)


def sweep_temps(directory: str | os.PathLike[str], *, now: float | None = None) -> int:
    """Remove the temporary files that dead writers left in `directory`, and return their number. Files of live writers stay.

    A writer keeps its file locked until the temporary name is gone, so the kernel knows whether the writer is alive. On systems
    without kernel locks, files more than an hour older than `now` are removed.
    """
    with Dir.open(directory) as where:
        return sweep_at(where, now=now)


def sweep_at(where: Dir, *, now: float | None = None) -> int:
    names = [entry.name for entry in where.entries() if is_temp(entry.name)]
    return sum(_sweep(where, name, time.time() if now is None else now) for name in names)


def _sweep(where: Dir, name: str, now: float) -> bool:
    full, lock = where.full(name), None
    # Skip files published or dropped since they were listed, and links, directories and files of other users, which are not ours.
    with AbsentIsFine(), suppress(PathRefused), reporting(full):
        lock = LockDescriptor(open_plain(where, name, READ_WRITE), full)
    if lock is None:
        return False
    try:
        if not _abandoned(lock, now):
            return False
        if _CLOSE_FIRST:
            lock.release()
        # Names are random and never reused: if the writer published or dropped the file meanwhile, there is nothing to unlink.
        with AbsentIsFine(), reporting(full):
            point("sweep.unlink")
            os.unlink(where.at(name), dir_fd=where.fd)
            return True
        return False
    finally:
        lock.release()


def _abandoned(lock: LockDescriptor, now: float) -> bool:
    if kernel_locks():
        with suppress(LockUnsupported):
            return lock.try_lock()
    return now - os.fstat(lock.fd).st_mtime > _ABANDONED_AFTER
