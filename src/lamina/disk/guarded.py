"""What a room needs that keeps several files in step: one guard for a directory, and a write that yields to whoever was faster.

Owns no files. Invariants: the guard and the write go through the directory's own descriptor, so nothing outside it is touched
whatever is swapped meanwhile; `replace_if` never replaces content it was not told about, but for the instant between its last
look and its rename.

A crash at any line leaves what `temps` and `lock` leave: old content or new, and no lock.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..core.errors import DiskError
from .at import READ, Dir, open_plain
from .files import read_at, read_head
from .lock import GUARD_TIMEOUT, guard_at
from .rootdir import MAX_DEPTH, Relative, RootDir, _refuse_twin
from .temps import Durability, staged_at


@contextmanager
def guarded(root: RootDir, name: str, *, timeout: float = GUARD_TIMEOUT) -> Iterator[None]:
    """Holds the guard `name` at the top of the root. Not reentrant, as all guards."""
    with root._directory("") as where, guard_at(where, name, timeout=timeout):
        yield


def replace_if(root: RootDir, rel: Relative, data: bytes, *, expected: bytes | None, durability: Durability = "full") -> bool:
    """Puts `data` at `rel` if what stands there is still `expected` (None: nothing); False, and nothing written, if it is not."""
    with root._parent(rel, create=True) as (where, name):
        _refuse_twin(where, name)
        with staged_at(where, name, data, durability=durability, shared=root.shared) as temp:
            # Everything slow is done: from here to the rename it is microseconds.
            if read_at(where, name, _one_more(expected), shared=root.shared) != expected:
                return False
            temp.publish()
            return True


def _one_more(expected: bytes | None) -> int:
    """Enough to see that a file has grown."""
    return len(expected or b"") + 1


class Found(NamedTuple):
    """A plain file of a walk: its path below the root, and what tells whether it changed."""

    file: str
    mtime_ns: int
    size: int
    inode: int


def walk(root: RootDir, *, suffix: str, skip: Callable[[str], bool]) -> Iterator[tuple[str, os.stat_result]]:
    """Plain files whose names end in `suffix`, in no order; hidden names, and directories that `skip` names, are passed over.

    One by one, with what the system says: a caller that knows them already needs no object for each.
    """
    with root._directory("") as where:
        yield from _walk(where, "", suffix, skip, MAX_DEPTH)


def _walk(where: Dir, prefix: str, suffix: str, skip: Callable[[str], bool], depth: int) -> Iterator[tuple[str, os.stat_result]]:
    below: list[str] = []
    for entry in where.entries():
        name = entry.name
        if name[0] == ".":
            continue
        if not name.endswith(suffix):
            if depth and entry.is_dir(follow_symlinks=False) and not skip(prefix + name):
                below.append(name)
            continue
        try:
            info = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        if stat.S_ISREG(info.st_mode) and info.st_nlink == 1:
            yield prefix + name, info
    for name in below:
        try:
            directory = where.child(name)
        except DiskError:
            continue
        with directory:
            yield from _walk(directory, f"{prefix}{name}/", suffix, skip, depth - 1)


def read_heads(root: RootDir, files: list[str], max_bytes: int) -> dict[str, bytes]:
    """The first bytes of each file. One that is gone, unreadable or not plain is left out: a scan goes on."""
    heads: dict[str, bytes] = {}
    with root._directory("") as top:
        for file in files:
            try:
                data = root.read_bytes(file, max_bytes) if "/" in file else _head(top, file, max_bytes, shared=root.shared)
            except (OSError, DiskError):
                continue
            if data is not None:
                heads[file] = data
    return heads


def _head(where: Dir, name: str, max_bytes: int, *, shared: bool) -> bytes:
    fd = open_plain(where, name, READ, shared=shared)
    try:
        return read_head(fd, max_bytes)
    finally:
        os.close(fd)
