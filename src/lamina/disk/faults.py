"""Maps errno to the error tree: the one place where an OSError becomes a DiskError.

ENOSPC EDQUOT                   DiskFull
EACCES EPERM EROFS              ReadOnly
IrregularFile                   PathRefused: a directory, a pipe or a device is in place of a file
ELOOP EMLINK                    PathRefused: a link is in place of a file or directory of ours
ENOTDIR                         DiskError that names the file in the place of a directory
ENOLCK ENOSYS EOPNOTSUPP …      LockUnsupported, if the call was for a lock
all others                      DiskError with the system's message
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import TracebackType

from ..core.errors import DiskError, DiskFull, LockUnsupported, PathRefused, ReadOnly
from ..language.text import Text
from .regular_file import IrregularFile


def _codes(*names: str) -> frozenset[int]:
    """Return the error numbers of those names that this system has."""
    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


_FULL = _codes("ENOSPC", "EDQUOT")
_READ_ONLY = _codes("EACCES", "EPERM", "EROFS")
# O_NOFOLLOW fails on a link with ELOOP on Linux and macOS, with EMLINK on FreeBSD.
_LINK = _codes("ELOOP", "EMLINK")
# Some network file systems fail flock with EINVAL.
_NO_LOCKS = _codes("ENOLCK", "ENOSYS", "EOPNOTSUPP", "ENOTSUP", "EINVAL")


def disk_error(error: OSError, path: str | os.PathLike[str]) -> DiskError:
    where = os.fspath(path)
    if isinstance(error, IrregularFile):
        return PathRefused(where, Text("is {kind}", kind=Text.whole(error.kind)), "name a regular file")
    if error.errno in _FULL:
        return DiskFull(where)
    if error.errno in _READ_ONLY:
        return ReadOnly(where)
    if error.errno in _LINK:
        return PathRefused(where, "is a symbolic link or leads through one", "use the real path")
    if error.errno == errno.ENOTDIR:
        nearest = next((part for part in (Path(where), *Path(where).parents) if os.path.lexists(part)), None)
        if nearest is not None and not nearest.is_dir():
            return DiskError(str(nearest), "is a file, not a directory", "move it, or set LAMINA_HOME to a directory")
    words = os.strerror(error.errno) if error.errno is not None else str(error)
    return DiskError(where, words[:1].lower() + words[1:])


def lock_error(error: OSError, path: str | os.PathLike[str]) -> DiskError:
    """Convert an error of a lock call. A file system without locks is an error: work never continues unlocked."""
    if error.errno in _NO_LOCKS:
        return LockUnsupported(os.fspath(path))
    return disk_error(error, path)


class AbsentIsFine:
    """A context manager that ends its block silently if a file or directory does not exist."""

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
