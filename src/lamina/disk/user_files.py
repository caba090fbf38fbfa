"""Files of the user's own tree: read without ever blocking, replaced whole or not at all, and left looking as they did.

Owns how a tool opens and replaces a file that is not Lamina's. Invariants: only regular files are opened; a file that exists
keeps its mode, and its owner where the system allows that; a new one gets what any program's new file gets (0666 and 0777 for
directories, less the umask); the file is replaced only while it is in the state the caller has seen, so another program's change
between the reading and the writing is never lost; a symbolic link to a file is followed only into the given roots, and what is
replaced is the target, never the link; with a `target`, the real path somebody allowed, the file is written there or nowhere,
whatever was put in the way since (Z8). Bytes go out as they came in: line ends and byte order marks are the caller's choice.

A crash at any line leaves the old content or the new one under the name, and at most an empty directory or a temporary file
named `.lamina-*.tmp` beside it, which `sweep_temps` removes.

Extended attributes are not kept. A file with a second name (a hard link) is refused: replacing it would part the two. Where the
system has no directory-relative calls (Windows) a link put in the way between check and use is not noticed, and there are no
modes to keep.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePath
from typing import NamedTuple

from ..core.errors import DiskError, PathRefused, ReadOnly
from .crash_points import point
from .dirfd import CREATE_NEW, Dir, sync_fd
from .faults import reporting
from .files import read_head
from .temp_files import staged_at

AnyPath = str | os.PathLike[str]

# Looking once more and renaming is one step for all threads of this process; other processes can still come between the two.
_publishing = threading.Lock()


def _free_in_child() -> None:
    """A thread that held the lock at the moment of a fork is not there to free it."""
    global _publishing
    _publishing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_in_child)

_SET_ID = stat.S_ISUID | stat.S_ISGID
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class FileVersion(NamedTuple):
    """The identity and the state of a file."""

    device: int
    inode: int
    mtime_ns: int
    size: int


class FileContent(NamedTuple):
    data: bytes
    version: FileVersion


def version(found: os.stat_result) -> FileVersion:
    return FileVersion(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def open_regular(path: AnyPath) -> int | None:
    """Return a descriptor for reading, for the caller to close; None when the file does not exist, PathRefused for all but a regular file.

    The kind is asked first because merely opening some devices does something, and again on the descriptor, which counts.
    """
    with reporting(path):
        try:
            _refuse_irregular(os.stat(path), path)
            inert = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
            fd = os.open(path, os.O_RDONLY | inert | getattr(os, "O_BINARY", 0))
        except (FileNotFoundError, NotADirectoryError):
            return None
    try:
        _refuse_irregular(os.fstat(fd), path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_whole(path: AnyPath, max_bytes: int) -> FileContent | None:
    """Read all of a regular file; None when it does not exist, DiskError when it is larger than `max_bytes`."""
    fd = open_regular(path)
    if fd is None:
        return None
    try:
        with reporting(path):
            found = os.fstat(fd)
            data = read_head(fd, max_bytes + 1)
    finally:
        os.close(fd)
    if len(data) > max_bytes:
        raise DiskError(os.fspath(path), f"is larger than {max_bytes >> 20} MB", "change it with a command instead")
    return FileContent(data, version(found))


def replace(
    path: AnyPath, data: bytes, *, expect: FileVersion | None, roots: Sequence[AnyPath] = (), target: AnyPath | None = None
) -> FileVersion:
    """Puts `data` at `path` if that is still in the state `expect` (None: still missing); the state it is in afterwards.

    Missing directories are made. A path whose last component is a link must lead to a file inside one of `roots`. `target` is `path`
    without links, as it was when the write was allowed.
    """
    with _place(path, roots, target) as (where, name):
        full = where.full(name)
        there = where.stat(name)
        _refuse_change(there, expect, full)
        if there is not None:
            _refuse_irregular(there, full)
            _refuse_protected(there, full)
        mode = stat.S_IMODE(there.st_mode) if there is not None else _new_mode(where)
        with staged_at(where, name, data, durability="process", shared=True) as temp:
            with reporting(full):
                _dress(temp.fd, mode, there)
                sync_fd(temp.fd, "user.fsync")
            with _publishing:
                _refuse_change(where.stat(name), expect, full)
                temp.publish()
                published = where.stat(name)
        with reporting(full):
            where.sync()
    if published is None:
        raise DiskError(full, "was removed as soon as it was written", "find the program that does it")
    return version(published)


def _refuse_irregular(found: os.stat_result, path: AnyPath) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for test, name in _KINDS if test(found.st_mode)), "no regular file")
        raise PathRefused(os.fspath(path), f"is {kind}", "name a regular file")


def _refuse_protected(found: os.stat_result, full: str) -> None:
    """A rename would not ask the file's own mode, and root is not stopped by one; the user who took the bits away meant it."""
    if not stat.S_IMODE(found.st_mode) & 0o222 or not os.access(full, os.W_OK):
        raise PathRefused(full, "is read-only", "ask the person before changing its permissions")


def _refuse_change(found: os.stat_result | None, expect: FileVersion | None, full: str) -> None:
    if found is None and expect is not None:
        raise DiskError(full, "was removed while it was being changed", "look again before writing it")
    if found is not None and expect is None:
        raise DiskError(full, "was made by another program in the meantime", "read it before writing it")
    if found is not None and version(found) != expect:
        raise DiskError(full, "was changed by another program in the meantime", "read it again before writing it")


@contextmanager
def _place(path: AnyPath, roots: Sequence[AnyPath], target: AnyPath | None) -> Iterator[tuple[Dir, str]]:
    """The directory that is written to, open, and the name in it. On the way to a target that was judged before, or that a link
    leads to, no link is followed any more."""
    given, linked = os.path.abspath(path), os.path.islink(path)
    if target is None and not linked:
        directory, name = os.path.split(given)
        with _made(directory) as where:
            yield where, name
        return
    real = os.path.realpath(given) if target is None else os.fspath(target)
    inside = [found for root in roots if PurePath(real).is_relative_to(found := os.path.realpath(root))]
    if linked and not inside:
        raise PathRefused(given, "is a symbolic link that leads out of the working directories", f"name the file itself ({real})")
    directory, name = os.path.split(real)
    with _reached(directory, max(inside, key=len, default=os.path.splitdrive(real)[0] + os.sep)) as where:
        if linked and where.stat(name) is None:
            raise PathRefused(given, "is a symbolic link to nothing", f"write the file it names ({real})")
        yield where, name


def _reached(directory: str, start: str) -> Dir:
    """A directory below `start`, open, reached through no link; what is missing is made.

    Above all roots there may be a directory that may be passed but not opened. Then it is opened by its name, and must be what that
    name leads to without links: whoever swaps it twice at the right moments is not noticed there.
    """
    names = [name for name in os.path.relpath(directory, start).split(os.sep) if name != os.curdir]
    try:
        return _walk(Dir.open(start), names)
    except ReadOnly:
        if os.path.dirname(start) != start:
            raise
    where = _made(directory)
    try:
        with reporting(directory):
            found = os.stat(directory if where.fd is None else where.fd)
            if os.path.realpath(directory) == directory and os.path.samestat(found, os.stat(directory)):
                return where
        raise PathRefused(directory, "was replaced by a link", "look again before writing there")
    except BaseException:
        where.close()
        raise


def _walk(here: Dir, names: Sequence[str]) -> Dir:
    """Down from an open directory, through no link: all links were resolved when the target was judged. What is missing is made as the
    user's own programs would, not private."""
    for name in names:
        with here:
            if here.stat(name) is None:
                with reporting(here.full(name)):
                    with suppress(FileExistsError):
                        point("user.mkdir")
                        os.mkdir(here.at(name), 0o777, dir_fd=here.fd)
                    here.sync()
            below = here.child(name)
        here = below
    return here


def _made(directory: str) -> Dir:
    """The directory, open; what is missing of it is made."""
    above, missing = directory, list[str]()
    while not os.path.lexists(above) and os.path.dirname(above) != above:
        above, name = os.path.split(above)
        missing.append(name)
    return _walk(Dir.open(above), missing[::-1])


def _new_mode(where: Dir) -> int:
    """What a new file gets here. The umask can't be asked without setting it for every thread, so a file is made to look at."""
    name = f".lamina-{os.urandom(8).hex()}.tmp"
    with reporting(where.full(name)):
        point("user.probe")
        fd = os.open(where.at(name), CREATE_NEW, 0o666, dir_fd=where.fd)
        try:
            return stat.S_IMODE(os.fstat(fd).st_mode)
        finally:
            os.close(fd)
            # A sweep may have taken it: nobody holds its lock.
            with suppress(FileNotFoundError):
                point("user.unprobe")
                os.unlink(where.at(name), dir_fd=where.fd)


def _dress(fd: int, mode: int, there: os.stat_result | None) -> None:
    """Gives the new file the owner and the mode of the old one. Windows has neither."""
    if not hasattr(os, "fchown"):
        return
    found = os.fstat(fd)
    if there is not None and (there.st_uid, there.st_gid) != (found.st_uid, found.st_gid):
        try:
            point("user.chown")
            os.fchown(fd, there.st_uid, there.st_gid)
        except PermissionError:
            # Only root can give a file away; one that runs as its owner must not do so for another one.
            mode &= ~_SET_ID
    if mode != stat.S_IMODE(found.st_mode):
        point("user.chmod")
        os.fchmod(fd, mode)
