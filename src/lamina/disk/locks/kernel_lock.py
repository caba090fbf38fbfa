"""The operating system's file lock, and the descriptors that hold one.

Owns the choice of the system call, and the locked descriptors in a forked child. Invariants: a lock belongs to an open
descriptor, so the kernel releases it when its process ends, however that happens. Two descriptors in one process exclude each
other like two processes. A forked child holds none of its parent's locks.

We use flock, never lockf: POSIX record locks are dropped when any descriptor of the file is closed anywhere in the process.

On Windows, one byte far beyond the end of the file is locked, which works as well. If Python has neither call, a second file
created with O_EXCL represents the lock. That is weaker: a crash leaves it behind, and removing it for a dead process is a race.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from types import ModuleType

from ..crash_points import point
from ..faults import lock_error

fcntl: ModuleType | None = None
msvcrt: ModuleType | None = None
with suppress(ImportError):
    import fcntl as _fcntl

    fcntl = _fcntl
with suppress(ImportError):
    import msvcrt as _msvcrt

    msvcrt = _msvcrt

# Windows locks are mandatory, so the locked byte must be one that is never read.
_FAR_BYTE = 1 << 30
_FLOCK_BUSY = {errno.EWOULDBLOCK, errno.EAGAIN}
_MSVCRT_BUSY = {errno.EACCES, errno.EDEADLK}
# A process id has at most seven digits on Linux and ten on Windows.
_MARKER_BYTES = 20


class LockDescriptor:
    """An open descriptor for one lock. `fd` is -1 after its release, and in every forked child."""

    __slots__ = ("fd", "locked", "path")

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path
        self.locked = False
        _all.add(self)

    def try_lock(self, *, shared: bool = False) -> bool:
        """Take the lock if it is free, without waiting. Raises LockUnsupported on file systems without locks."""
        try:
            point("lock.flock")
            self.locked = _lock(self.fd, self.path, shared)
        except OSError as error:
            raise lock_error(error, self.path) from error
        return self.locked

    def release(self) -> None:
        """Unlock, then close: a child forked outside Python's control may still have a copy of the descriptor."""
        if self.fd < 0:
            return
        if self.locked:
            # A failed unlock does no harm: closing the descriptor releases the lock too.
            with suppress(OSError):
                point("lock.unlock")
                if fcntl is not None:
                    fcntl.flock(self.fd, fcntl.LOCK_UN)
                elif msvcrt is not None:
                    _locking(msvcrt, self.fd, msvcrt.LK_UNLCK)
                else:
                    point("lock.unmark")
                    os.unlink(f"{self.path}.held")
        fd, self.fd, self.locked = self.fd, -1, False
        _all.discard(self)
        os.close(fd)


_all: set[LockDescriptor] = set()


def _drop_in_child() -> None:
    """Close the copies in a forked child. The parent's descriptors keep their locks."""
    for lock in _all:
        # Another thread of the parent may have been closing it at the moment of the fork.
        with suppress(OSError):
            os.close(lock.fd)
        lock.fd, lock.locked = -1, False
    _all.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_in_child)


def kernel_locks() -> bool:
    """Return whether the kernel releases a lock when its owner dies."""
    return fcntl is not None or msvcrt is not None


def _lock(fd: int, path: str, shared: bool) -> bool:
    try:
        if fcntl is not None:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        elif msvcrt is not None:
            _locking(msvcrt, fd, msvcrt.LK_NBLCK)
        else:
            return _take_marker(path)
    except OSError as error:
        if error.errno in (_FLOCK_BUSY if fcntl is not None else _MSVCRT_BUSY):
            return False
        raise
    return True


def _locking(system: ModuleType, fd: int, mode: int) -> None:
    """Lock or unlock the far byte. Windows locks from the current position on, so the position is restored afterwards."""
    position = os.lseek(fd, 0, os.SEEK_CUR)
    try:
        os.lseek(fd, _FAR_BYTE, os.SEEK_SET)
        system.locking(fd, mode, 1)
    finally:
        os.lseek(fd, position, os.SEEK_SET)


def _take_marker(path: str) -> bool:
    marker = f"{path}.held"
    for _ in range(2):
        point("lock.mark")
        try:
            fd = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if not _abandoned(marker):
                return False
            point("lock.unmark")
            with suppress(FileNotFoundError):
                os.unlink(marker)
            continue
        point("lock.write")
        os.write(fd, b"%d" % os.getpid())
        os.close(fd)
        return True
    return False


def _abandoned(marker: str) -> bool:
    """Return whether the process named in the marker is dead. Always False on Windows, where signal 0 means Ctrl-C."""
    if os.name != "posix":
        return False
    try:
        with open(marker, "rb") as file:
            os.kill(int(file.read(_MARKER_BYTES)), 0)
    except (ProcessLookupError, FileNotFoundError):
        return True
    except (ValueError, PermissionError):
        return False
    return False
