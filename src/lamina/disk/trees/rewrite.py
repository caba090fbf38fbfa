"""Rewrites whole files in a stream, and removes or moves directories, when the user asks to forget, move or delete something.

Nothing else changes an existing transcript. Invariants: a file is replaced only if it is still the one that was read (same inode,
size and time). It keeps its time. A read-only file is left alone. Directories are removed through descriptors, without following
links.

A crash at any line leaves each file old or new. A tree may be left partly removed; the next call removes the rest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...core.errors import DiskError, PathRefused
from ...language.text import Text
from ..crash_points import point
from ..dirfd import Dir, open_parent, refuse_protected
from ..faults import AbsentIsFine, reporting
from ..regular_file import FileStamp, open_regular, stamp
from ..temp_files import staged_at
from ..transcripts.jsonl import MAX_LINE

AnyPath = str | os.PathLike[str]
# Deeper trees are not ours.
MAX_DEPTH = 32


class RawLine(NamedTuple):
    offset: int
    data: bytes  # with its line end; a line that is too long comes in several parts


def raw_lines(path: AnyPath) -> Iterator[RawLine]:
    """Read every line unchanged, with its offset. The lines joined together are the file."""
    with reporting(path), open_regular(path) as file:
        offset = 0
        while data := file.readline(MAX_LINE + 1):
            yield RawLine(offset, data)
            offset += len(data)


def rewrite(path: AnyPath, parts: Iterable[bytes], *, before: FileStamp, shared: bool = False) -> None:
    """Write the joined `parts` to `path` if it still has the stamp `before`; otherwise raises DiskError and changes nothing."""
    with AbsentIsFine(), reporting(path):
        refuse_protected(os.lstat(path), path)
    mtime_ns = before.mtime_ns if os.utime in os.supports_fd else None
    with (
        open_parent(path) as (where, name),
        staged_at(where, name, parts, durability="full", mtime_ns=mtime_ns, shared=shared, points="rewrite") as temp,
    ):
        info = where.stat(name)
        if info is None or stamp(info) != before:
            raise DiskError(os.fspath(path), "was changed by another program in the meantime", "try again later")
        temp.publish()


def remove_tree(path: AnyPath) -> bool:
    """Remove a directory with its content. Returns False if it did not exist. A link is unlinked, its target not touched."""
    with AbsentIsFine(), open_parent(path) as (where, name):
        if where.stat(name) is None:
            return False
        _remove(where, name, MAX_DEPTH)
        with reporting(path):
            where.sync()
        return True
    return False


def _remove(where: Dir, name: str, depth: int) -> None:
    info = where.stat(name)
    if info is None:
        return
    full = where.full(name)
    if not stat.S_ISDIR(info.st_mode):
        with AbsentIsFine(), reporting(full):
            point("tree.unlink")
            os.unlink(where.at(name), dir_fd=where.fd)
        return
    if not depth:
        raise PathRefused(full, Text("is more than {limit} directories deep", limit=MAX_DEPTH), "remove it by hand")
    with where.child(name) as below:
        for entry in [entry.name for entry in below.entries()]:
            _remove(below, entry, depth - 1)
    with AbsentIsFine(), reporting(full):
        point("tree.rmdir")
        os.rmdir(where.at(name), dir_fd=where.fd)


def remove_empty(path: AnyPath) -> bool:
    """Remove an empty directory. Returns False if it is not empty or does not exist."""
    try:
        point("tree.rmdir")
        os.rmdir(path)
    except OSError:
        return False
    return True


def move(source: AnyPath, target: AnyPath) -> None:
    """Rename a file or directory. The target must not exist, but a directory may replace an empty directory."""
    with open_parent(source) as (above, old), open_parent(target, create=True) as (where, name):
        source_info, target_info = above.stat(old), where.stat(name)
        if source_info is None or stat.S_ISLNK(source_info.st_mode):
            raise PathRefused(os.fspath(source), "does not exist or is a link", "use the path of the directory itself")
        if target_info is not None and not (stat.S_ISDIR(target_info.st_mode) and stat.S_ISDIR(source_info.st_mode)):
            raise PathRefused(os.fspath(target), "already exists", "check its content first")
        with reporting(target):
            point("tree.rename")
            os.rename(above.at(old), where.at(name), src_dir_fd=above.fd, dst_dir_fd=where.fd)
            where.sync()
            above.sync()
