"""Directories as open descriptors, and the calls that work relative to them.

Owns how a directory is opened, created and synced, and the definition of a plain file. Invariant: a check and the use after it go
through the same descriptor, so a link planted in between is refused by the kernel, not by a comparison of strings.

A crash while a directory is created leaves it absent, or empty and private. An error of fsync is final: the kernel may already
have marked the pages clean, so a second fsync on the same descriptor could falsely report success. The caller closes the
descriptor and reports the failure.

On systems without directory-relative calls (Windows), a Dir holds only its path. Each name is checked before it is used, which a
program running as the same user can race.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from ..core.errors import PathRefused, ProtectedFile
from .crash_points import point
from .faults import disk_error, reporting
from .locks import kernel_lock

# Errors of F_FULLFSYNC on a file system that does not support it; plain fsync is used then.
_NOT_KNOWN = {errno.EINVAL, errno.ENOTTY, getattr(errno, "ENOTSUP", errno.EINVAL)}


def sync_fd(fd: int, name: str) -> None:
    """Wait until the file or directory is on stable storage. `name` is the crash point."""
    # On macOS, fsync stops at the drive's cache; F_FULLFSYNC does not.
    full = getattr(kernel_lock.fcntl, "F_FULLFSYNC", None)
    if kernel_lock.fcntl is not None and full is not None:
        try:
            point(name)
            kernel_lock.fcntl.fcntl(fd, full)
            return
        except OSError as error:
            if error.errno not in _NOT_KNOWN:
                raise
    point(name)
    os.fsync(fd)


PRIVATE_DIR = 0o700
PRIVATE_FILE = 0o600

HAS_DIR_FD = {os.open, os.rename, os.unlink, os.mkdir, os.stat} <= os.supports_dir_fd and os.scandir in os.supports_fd

_CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOINHERIT", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
# Opening a FIFO or a terminal in place of a file must not block or become our controlling terminal.
_INERT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_FILE = _CLOEXEC | _NOFOLLOW | _BINARY | _INERT
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOEXEC

READ = os.O_RDONLY | _FILE
READ_WRITE = os.O_RDWR | _FILE
CREATE_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | _FILE
# No O_TRUNC: opening a lock or a log must never truncate the target of a planted link.
OPEN_OR_CREATE = os.O_RDWR | os.O_CREAT | _FILE
APPEND = OPEN_OR_CREATE | os.O_APPEND

# Errors of opening something other than a regular file, such as a socket or a FIFO without a reader.
_NOT_A_FILE = {errno.ENXIO, errno.ENODEV, errno.EISDIR, errno.EOPNOTSUPP}


class Closable:
    """Closes itself at the end of a `with` block."""

    __slots__ = ()

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Dir(Closable):
    """An open directory. `fd` is None on systems without directory-relative calls."""

    __slots__ = ("fd", "path")

    def __init__(self, path: str, fd: int | None) -> None:
        self.path = path
        self.fd = fd

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, create: bool = False) -> Dir:
        """Open a directory. Links in `path` are followed: users may keep the whole directory wherever they like."""
        where = os.path.abspath(path)
        with reporting(where):
            point("dir.open")
            try:
                return cls(where, _open_directory(where))
            except FileNotFoundError:
                if not create:
                    raise
        above, missing = where, list[str]()
        while not os.path.isdir(above) and os.path.dirname(above) != above:
            above, name = os.path.split(above)
            missing.append(name)
        return descend(cls.open(above), reversed(missing), create=True)

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None

    def at(self, name: str) -> str:
        """Return the name to pass to a call together with `dir_fd=self.fd`."""
        return self.full(name) if self.fd is None else name

    def full(self, name: str) -> str:
        """Return the full path of `name`, for messages. Every call needs it, so it is not joined with `os.path`."""
        return f"{self.path}{name}" if self.path.endswith(os.sep) else f"{self.path}{os.sep}{name}"

    def child(self, name: str, *, create: bool = False) -> Dir:
        """Open the directory `name` in this one. A link or a file of that name is refused."""
        if create:
            self.make(name)
        full = self.full(name)
        try:
            point("dir.child")
            return Dir(full, _open_directory(full if self.fd is None else name, under=self.fd, follow=False))
        except OSError as error:
            if error.errno == errno.ENOTDIR:
                raise PathRefused(full, "is not a directory", "remove the file or link of that name") from error
            raise disk_error(error, full) from error

    def make(self, name: str) -> None:
        """Create the directory `name` with mode 0700, unless the name exists. Its entry survives a power loss."""
        with reporting(self.full(name)):
            point("dir.make")
            try:
                os.mkdir(self.at(name), PRIVATE_DIR, dir_fd=self.fd)
            except FileExistsError:
                return
            # A umask may have removed permissions of the owner.
            if stat.S_IMODE(os.stat(self.at(name), dir_fd=self.fd, follow_symlinks=False).st_mode) & PRIVATE_DIR != PRIVATE_DIR:
                point("dir.chmod")
                os.chmod(self.at(name), PRIVATE_DIR, dir_fd=self.fd)
            self.sync()

    def stat(self, name: str) -> os.stat_result | None:
        """Return the stat of the entry itself, never of a link's target; None when it does not exist."""
        with reporting(self.full(name)):
            try:
                return os.stat(self.at(name), dir_fd=self.fd, follow_symlinks=False)
            except FileNotFoundError:
                return None

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Iterate over the entries. Each listing opens a new descriptor, because listings share a descriptor's position."""
        with reporting(self.path):
            fd = None if self.fd is None else os.open(".", _DIRECTORY, dir_fd=self.fd)
            try:
                with os.scandir(self.path if fd is None else fd) as entries:
                    yield from entries
            finally:
                if fd is not None:
                    os.close(fd)

    def names(self) -> list[str]:
        """Return all names in the directory, in no particular order."""
        with reporting(self.path):
            return os.listdir(self.path if self.fd is None else self.fd)

    def sync(self) -> None:
        """Make the entries durable. File systems that cannot sync a directory (EINVAL) keep entries in order themselves."""
        if self.fd is None and os.name == "nt":
            return
        fd = os.open(self.path, _DIRECTORY) if self.fd is None else self.fd
        try:
            sync_fd(fd, "dir.fsync")
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            if self.fd is None:
                os.close(fd)


def _open_directory(path: str, *, under: int | None = None, follow: bool = True) -> int | None:
    if HAS_DIR_FD:
        return os.open(path, _DIRECTORY if follow else _DIRECTORY | _NOFOLLOW, dir_fd=under)
    info = os.stat(path, follow_symlinks=follow)
    if stat.S_ISLNK(info.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if not stat.S_ISDIR(info.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return None


def descend(directory: Dir, names: Iterable[str], *, create: bool = False) -> Dir:
    """Walk down from an open directory without following links, and return the last one. The others are closed."""
    for name in names:
        with directory:
            below = directory.child(name, create=create)
        directory = below
    return directory


@contextmanager
def open_parent(path: str | os.PathLike[str], *, create: bool = False) -> Iterator[tuple[Dir, str]]:
    """Open the parent directory of `path` and yield it with the last name."""
    directory, name = os.path.split(os.path.abspath(path))
    with Dir.open(directory, create=create) as where:
        yield where, name


def private_dir(path: str | os.PathLike[str]) -> Path:
    """Create `path` and its missing parents with mode 0700, whatever the umask. Existing directories keep their mode."""
    with Dir.open(path, create=True) as directory:
        return Path(directory.path)


def open_plain(where: Dir, name: str, flags: int, *, shared: bool = False) -> int:
    """Open the plain file `name`: regular, with one hard link, and owned by us. Refuses anything else and never blocks.

    A file that this call creates has mode 0600. `shared` accepts files of other users (a team's directory).
    """
    full = where.full(name)
    if not _NOFOLLOW and (info := where.stat(name)) is not None:
        refuse_unless_plain(info, full, shared=shared)
    point("file.open")
    try:
        fd = os.open(where.at(name), flags, PRIVATE_FILE, dir_fd=where.fd)
    except OSError as error:
        if error.errno in _NOT_A_FILE:
            raise PathRefused(full, "is not a regular file", "remove it or choose another name") from error
        raise
    try:
        info = os.fstat(fd)
        refuse_unless_plain(info, full, shared=shared)
        if flags & os.O_CREAT and not info.st_size:
            set_private(fd, info.st_mode)
    except BaseException:
        os.close(fd)
        raise
    return fd


@contextmanager
def reading(where: Dir, name: str, *, shared: bool = False) -> Iterator[int]:
    """Open the plain file `name` for reading for the duration of the block."""
    with reporting(where.full(name)):
        fd = open_plain(where, name, READ, shared=shared)
        try:
            yield fd
        finally:
            os.close(fd)


def set_private(fd: int, mode: int) -> None:
    """Restore the owner's permissions (0600) on a new file, in case the umask removed them."""
    if stat.S_IMODE(mode) & PRIVATE_FILE != PRIVATE_FILE and hasattr(os, "fchmod"):
        point("file.chmod")
        os.fchmod(fd, PRIVATE_FILE)


def refuse_unless_plain(info: os.stat_result, path: str, *, shared: bool = False) -> None:
    """Refuse anything but a plain file of ours.

    A file without any name left is accepted: another process replaced it after we opened it, and our descriptor is still intact.
    """
    if stat.S_ISLNK(info.st_mode):
        raise PathRefused(path, "is a symbolic link", "put the file itself there")
    if not stat.S_ISREG(info.st_mode):
        raise PathRefused(path, "is not a regular file", "remove it or choose another name")
    if info.st_nlink > 1:
        raise PathRefused(path, "has a second name elsewhere (a hard link)", "replace it by a copy")
    if not shared and hasattr(os, "geteuid") and info.st_uid != os.geteuid():
        raise PathRefused(path, "belongs to another user", "change its owner or remove it")


def refuse_protected(info: os.stat_result, path: str | os.PathLike[str]) -> None:
    """Refuse to replace or remove a read-only file. A rename ignores the mode, and root may write anyway, but the user chose the mode."""
    if not stat.S_IMODE(info.st_mode) & 0o222 or not os.access(path, os.W_OK):
        raise ProtectedFile(os.fspath(path))
