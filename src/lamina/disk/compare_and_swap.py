"""What a room needs that keeps several files in step: one guard for a directory, and a write that yields to whoever was faster.

Owns no files. Invariants: the guard and the write go through the directory's own descriptor, so nothing outside it is touched
whatever is swapped meanwhile; `replace_if` never replaces content it was not told about, but for the instant between its last
look and its rename.

A crash at any line leaves what `temps` and `lock` leave: old content or new, and no lock.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, NamedTuple, Protocol, TypeVar

from ..core.errors import DiskError
from .dirfd import READ, Dir, open_plain
from .files import read_at, read_head
from .lock import GUARD_TIMEOUT, guard_at
from .rootdir import MAX_DEPTH, Relative, RootDir, _refuse_twin
from .temp_files import Durability, staged_at


@contextmanager
def guarded(root: RootDir, name: str, *, timeout: float = GUARD_TIMEOUT) -> Iterator[None]:
    """Holds the guard `name` at the top of the root. Not reentrant, as all guards."""
    with root._directory("") as where, guard_at(where, name, timeout=timeout):
        yield


def replace_if(
    root: RootDir,
    rel: Relative,
    data: bytes,
    *,
    expected: bytes | None,
    durability: Durability = "full",
    mtime_ns: int | None = None,
) -> bool:
    """Puts `data` at `rel` if what stands there is still `expected` (None: nothing); False, and nothing written, if it is not.

    `mtime_ns` is the time the file gets, for one that is put back as it was.
    """
    with root._parent(rel, create=True) as (where, name):
        _refuse_twin(where, name)
        with staged_at(where, name, data, durability=durability, mtime_ns=mtime_ns, shared=root.shared) as temp:
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


class Known(Protocol):
    """What is known of a file, and of which state of it."""

    @property
    def mtime_ns(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def inode(self) -> int: ...


K = TypeVar("K", bound=Known)


class Compared(NamedTuple, Generic[K]):
    """`same`: what is known of files that did not change; `other`: the files nothing is known of, or that changed."""

    same: list[K]
    other: list[Found]


def compare(root: RootDir, known: Mapping[str, K], *, suffix: str, skip: Callable[[str], bool]) -> Compared[K]:
    """Looks at all plain files whose names end in `suffix`, in no order; hidden names, and directories that `skip` names, are passed over.

    One look at each file and nothing more: with ten thousand of them every call counts.
    """
    found: Compared[K] = Compared([], [])
    with root._directory("") as where:
        _compare(where, "", known, suffix, skip, MAX_DEPTH, found)
    return found


def _compare(
    where: Dir, prefix: str, known: Mapping[str, K], suffix: str, skip: Callable[[str], bool], depth: int, found: Compared[K]
) -> None:
    below: list[str] = []
    look, fd, get, keep = os.stat, where.fd, known.get, found.same.append
    for name in where.names():
        file = prefix + name if prefix else name
        one = get(file)
        if one is None and (name[0] == "." or not (depth or name.endswith(suffix))):
            continue
        try:
            info = look(where.at(name) if fd is None else name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if (
            one is not None
            and one.mtime_ns == info.st_mtime_ns
            and one.size == info.st_size
            and one.inode == info.st_ino
            and info.st_nlink == 1
        ):
            keep(one)
        elif not name.endswith(suffix):
            if stat.S_ISDIR(info.st_mode) and not skip(file):
                below.append(name)
        elif info.st_nlink == 1 and stat.S_ISREG(info.st_mode):
            found.other.append(Found(file, info.st_mtime_ns, info.st_size, info.st_ino))
    for name in below:
        try:
            directory = where.child(name)
        except DiskError:
            continue
        with directory:
            _compare(directory, f"{prefix}{name}/", known, suffix, skip, depth - 1, found)


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
