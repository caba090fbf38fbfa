"""From errno to the error tree: the one place where an OSError becomes a DiskError.

ENOSPC EDQUOT                   DiskFull
EACCES EPERM EROFS              ReadOnly
ELOOP EMLINK                    PathRefused: a link stands where a file or directory of ours should be
ENOLCK ENOSYS EOPNOTSUPP …      LockUnsupported, where a lock was asked for
all others                      DiskError in the system's words
"""

from __future__ import annotations

import errno
import os
from types import TracebackType

from ..core.errors import DiskError, DiskFull, LockUnsupported, PathRefused, ReadOnly


def _codes(*names: str) -> frozenset[int]:
    """Some names are missing on some systems."""
    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


_FULL = _codes("ENOSPC", "EDQUOT")
_READ_ONLY = _codes("EACCES", "EPERM", "EROFS")
# What O_NOFOLLOW says of a link: ELOOP on Linux and macOS, EMLINK on FreeBSD.
_LINK = _codes("ELOOP", "EMLINK")
# EINVAL is what some network file systems answer to flock.
_NO_LOCKS = _codes("ENOLCK", "ENOSYS", "EOPNOTSUPP", "ENOTSUP", "EINVAL")


def disk_error(error: OSError, path: str | os.PathLike[str]) -> DiskError:
    where = os.fspath(path)
    if error.errno in _FULL:
        return DiskFull(where)
    if error.errno in _READ_ONLY:
        return ReadOnly(where)
    if error.errno in _LINK:
        return PathRefused(where, "is a symbolic link or leads through one", "use the real path")
    words = os.strerror(error.errno) if error.errno is not None else str(error)
    return DiskError(where, words[:1].lower() + words[1:])


def lock_error(error: OSError, path: str | os.PathLike[str]) -> DiskError:
    """For a lock call: a file system that cannot lock is not a reason to go on without one."""
    if error.errno in _NO_LOCKS:
        return LockUnsupported(os.fspath(path))
    return disk_error(error, path)


class AbsentIsFine:
    """`with AbsentIsFine():` goes on behind the block when what it wanted to use is not there."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        return isinstance(error, DiskError) and isinstance(error.__cause__, FileNotFoundError)


class Reporting:
    __slots__ = ("_path",)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, OSError):
            raise disk_error(error, self._path) from error


def reporting(path: str | os.PathLike[str]) -> Reporting:
    """Raise an OSError of the block as a DiskError that names `path`."""
    return Reporting(path)
