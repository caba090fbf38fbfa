"""Opens a file that anyone may have written, for reading, tells whether a file has changed since, and lists directories.

Invariants: only a regular file is opened, and opening one never blocks, whatever is in its place. Files of our own are opened by
`dirfd.open_plain`, which also refuses links, second names and other owners.

On Windows, a link that appears between check and use is followed, and a named pipe may be opened.
"""

from __future__ import annotations

import errno
import os
import stat
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

# Opening a FIFO or a terminal in place of a file must not block or become our controlling terminal.
_INERT = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOINHERIT", "O_BINARY", "O_NONBLOCK", "O_NOCTTY"))
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class IrregularFile(OSError):
    """Something other than a regular file is in its place."""

    def __init__(self, path: str | os.PathLike[str], mode: int) -> None:
        self.kind = next((name for test, name in _KINDS if test(mode)), "not a regular file")
        super().__init__(errno.EINVAL, f"is {self.kind}", os.fspath(path))


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Open a regular file. Without `follow`, a link in its place is refused.

    Raises FileNotFoundError also for a path that leads through a file or contains a NUL, and IrregularFile for anything else. The
    kind is checked before opening, because merely opening some devices has effects, and again on the descriptor, which is the check
    that counts.
    """
    try:
        refuse_irregular(os.stat(path, follow_symlinks=follow), path)
        fd = os.open(path, os.O_RDONLY | _INERT | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    except (NotADirectoryError, ValueError) as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path)) from error
    try:
        refuse_irregular(os.fstat(fd), path)
        return open(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def refuse_irregular(info: os.stat_result, path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise IrregularFile(path, info.st_mode)


class FileStamp(NamedTuple):
    """Which file is at a path, its size and the time of its last change. Another stamp means that the file has changed."""

    inode: int
    size: int
    mtime_ns: int

    def continues(self, before: FileStamp) -> bool:
        """Whether this is the same file as before, with at least as many bytes: what was read of it may still be there."""
        return self.inode == before.inode and self.size >= before.size


def stamp(info: os.stat_result) -> FileStamp:
    return FileStamp(info.st_ino, info.st_size, info.st_mtime_ns)


def stamp_of(path: str | os.PathLike[str], *, follow: bool = True) -> FileStamp | None:
    """Return the stamp of a regular file; None if there is none, or it cannot be looked at."""
    try:
        info = os.stat(path, follow_symlinks=follow)
    except (OSError, ValueError):
        return None
    return stamp(info) if stat.S_ISREG(info.st_mode) else None


def read_start(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the first bytes of a regular file; none if it does not exist, is something else or cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(most)
    except OSError:
        return b""


def list_entries(directory: str | os.PathLike[str], most: int | None = None) -> list[os.DirEntry[str]]:
    """Return the entries of a directory, at most so many, in no particular order; none if it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return list(islice(entries, most))
    except (OSError, ValueError):
        return []


def subdirectories(directory: Path) -> list[Path]:
    return sorted(Path(entry.path) for entry in list_entries(directory) if entry.is_dir(follow_symlinks=False))
