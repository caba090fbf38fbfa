"""Reads and replaces the user's own files, for tools. Reading never blocks, and a file is replaced whole or not at all.

Invariants:
- Only regular files are opened.
- An existing file keeps its mode, and its owner if the system allows that. A new one gets the usual mode of new files (0666, or
0777
  for directories, less the umask).
- A file is replaced only if it is still in the state that the caller has seen, so another program's change is never lost.
- A symbolic link to a file is followed only into the given roots. The target is replaced, never the link.
- With a `target` (the real path that was permitted), the file is written there or nowhere, even if a link was planted since.
- Bytes are written as given: line ends and byte order marks are the caller's choice.

A crash at any line leaves the old content or the new one, and at most an empty directory or a temporary file named
`.lamina-*.tmp`, which `sweep_temps` removes.

Extended attributes are not kept. A file with a second name (a hard link) is refused, because replacing it would separate the two.
On systems without directory-relative calls (Windows), a link planted between check and use goes unnoticed, and there are no modes
to keep.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePath
from typing import NamedTuple

from ..core.errors import DiskError, PathRefused, ReadOnly
from ..language.text import Text
from .crash_points import point
from .dirfd import CREATE_NEW, Dir, refuse_protected, sync_fd
from .faults import AbsentIsFine, reporting
from .regular_file import FileStamp, open_regular, refuse_irregular, stamp
from .temp_files import staged_at, temp_name

AnyPath = str | os.PathLike[str]

# Makes the last check and the rename one step for all threads of this process. Other processes can still come in between.
_publishing = threading.Lock()


def _free_in_child() -> None:
    """Replace the lock in a forked child: a thread that held it in the parent does not exist there to release it."""
    global _publishing
    _publishing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_in_child)

_SET_ID = stat.S_ISUID | stat.S_ISGID


class FileContent(NamedTuple):
    data: bytes
    stamp: FileStamp


def read_whole(path: AnyPath, max_bytes: int) -> FileContent | None:
    """Read all of a regular file. Returns None if it does not exist; raises DiskError if it is larger than `max_bytes`."""
    with AbsentIsFine(), reporting(path), open_regular(path) as file:
        content = FileContent(file.read(max_bytes + 1), stamp(os.fstat(file.fileno())))
        if len(content.data) > max_bytes:
            raise DiskError(
                os.fspath(path), Text("is larger than {limit} MB", limit=max_bytes >> 20), "change it with a command instead"
            )
        return content
    return None


def replace(
    path: AnyPath, data: bytes, *, expect: FileStamp | None, roots: Sequence[AnyPath] = (), target: AnyPath | None = None
) -> FileStamp:
    """Write `data` to `path` if it is still in the state `expect` (None: still missing), and return its new state.

    Missing directories are created. If the last component of the path is a link, it must lead to a file inside one of `roots`.
    `target` is `path` with links resolved, as it was when the write was permitted.
    """
    with _place(path, roots, target) as (where, name):
        full = where.full(name)
        info = where.stat(name)
        _refuse_change(info, expect, full)
        if info is not None:
            with reporting(full):
                refuse_irregular(info, full)
            refuse_protected(info, full)
        mode = stat.S_IMODE(info.st_mode) if info is not None else _new_mode(where)
        with staged_at(where, name, data, durability="process", shared=True) as temp:
            with reporting(full):
                _dress(temp.fd, mode, info)
                sync_fd(temp.fd, "user.fsync")
            with _publishing:
                _refuse_change(where.stat(name), expect, full)
                temp.publish()
                published = where.stat(name)
        with reporting(full):
            where.sync()
    if published is None:
        raise DiskError(full, "was removed by another program right after it was written", "find and stop that program")
    return stamp(published)


def _refuse_change(info: os.stat_result | None, expect: FileStamp | None, full: str) -> None:
    if info is None and expect is not None:
        raise DiskError(full, "was removed by another program in the meantime", "check before writing it again")
    if info is not None and expect is None:
        raise DiskError(full, "was created by another program in the meantime", "read it before writing it")
    if info is not None and stamp(info) != expect:
        raise DiskError(full, "was changed by another program in the meantime", "read it again before writing it")


@contextmanager
def _place(path: AnyPath, roots: Sequence[AnyPath], target: AnyPath | None) -> Iterator[tuple[Dir, str]]:
    """Yield the open directory to write to and the name in it. On the way to a resolved target, no link is followed any more."""
    absolute, linked = os.path.abspath(path), os.path.islink(path)
    if target is None and not linked:
        directory, name = os.path.split(absolute)
        with _made(directory) as where:
            yield where, name
        return
    real = os.path.realpath(absolute) if target is None else os.fspath(target)
    inside = [top for root in roots if PurePath(real).is_relative_to(top := os.path.realpath(root))]
    if linked and not inside:
        raise PathRefused(
            absolute, "is a symbolic link that leads out of the working directories", f"use the file itself ({real})"
        )
    directory, name = os.path.split(real)
    with _reached(directory, max(inside, key=len, default=os.path.splitdrive(real)[0] + os.sep)) as where:
        if linked and where.stat(name) is None:
            raise PathRefused(absolute, "is a broken symbolic link", f"write its target instead ({real})")
        yield where, name


def _reached(directory: str, start: str) -> Dir:
    """Open a directory below `start` without following links, creating missing ones.

    A directory above all roots may be searchable but not readable. Then the directory is opened by its path, and that path must
    resolve to itself. A program that swaps it twice at the right moments goes unnoticed in this case.
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
            info = os.stat(directory if where.fd is None else where.fd)
            if os.path.realpath(directory) == directory and os.path.samestat(info, os.stat(directory)):
                return where
        raise PathRefused(directory, "was replaced by a link", "check it before writing there")
    except BaseException:
        where.close()
        raise


def _walk(directory: Dir, names: Sequence[str]) -> Dir:
    """Walk down from an open directory without following links, since all were resolved when the target was checked.

    Missing directories get the usual mode of new directories; they are not private.
    """
    for name in names:
        with directory:
            if directory.stat(name) is None:
                with reporting(directory.full(name)):
                    with suppress(FileExistsError):
                        point("user.mkdir")
                        os.mkdir(directory.at(name), 0o777, dir_fd=directory.fd)
                    directory.sync()
            below = directory.child(name)
        directory = below
    return directory


def _made(directory: str) -> Dir:
    """Open a directory, creating the missing parts of its path."""
    above, missing = directory, list[str]()
    while not os.path.lexists(above) and os.path.dirname(above) != above:
        above, name = os.path.split(above)
        missing.append(name)
    return _walk(Dir.open(above), missing[::-1])


def _new_mode(where: Dir) -> int:
    """Return the mode of a new file here. Reading the umask would set it for all threads, so a probe file is created instead."""
    name = temp_name()
    with reporting(where.full(name)):
        point("user.probe")
        fd = os.open(where.at(name), CREATE_NEW, 0o666, dir_fd=where.fd)
        try:
            return stat.S_IMODE(os.fstat(fd).st_mode)
        finally:
            os.close(fd)
            # A sweep may have removed it, because it is not locked.
            with suppress(FileNotFoundError):
                point("user.unprobe")
                os.unlink(where.at(name), dir_fd=where.fd)


def _dress(fd: int, mode: int, replaced: os.stat_result | None) -> None:
    """Give the new file the owner and the mode of the old one. Windows has neither."""
    if not hasattr(os, "fchown"):
        return
    info = os.fstat(fd)
    if replaced is not None and (replaced.st_uid, replaced.st_gid) != (info.st_uid, info.st_gid):
        try:
            point("user.chown")
            os.fchown(fd, replaced.st_uid, replaced.st_gid)
        except PermissionError:
            # Only root can change the owner. The set-id bits must not carry over to a different owner.
            mode &= ~_SET_ID
    if mode != stat.S_IMODE(info.st_mode):
        point("user.chmod")
        os.fchmod(fd, mode)


def remove(path: AnyPath, *, expect: FileStamp) -> None:
    """Remove a file that is still in the state `expect`. A link in its place is refused, like a file that was changed since."""
    directory, name = os.path.split(os.path.abspath(path))
    with Dir.open(directory) as where, reporting(where.full(name)):
        info = where.stat(name)
        if info is None:
            return
        refuse_irregular(info, where.full(name))
        _refuse_change(info, expect, where.full(name))
        point("user.remove")
        os.unlink(where.at(name), dir_fd=where.fd)


def remove_empty_directory(path: AnyPath) -> bool:
    """Remove a directory if it is empty, and return whether it was. A link to one is left alone."""
    if not os.path.isdir(path) or os.path.islink(path) or os.listdir(path):
        return False
    with reporting(path):
        point("user.rmdir")
        try:
            os.rmdir(path)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                return False
            raise
    return True
