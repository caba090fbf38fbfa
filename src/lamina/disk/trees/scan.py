"""Finds the files of a tree that changed since the last scan, and reads the first bytes of many files.

Changes nothing. Invariants: all access goes through the root's descriptor, so no link is followed, whatever is swapped meanwhile;
missing, unreadable and irregular files are left out, and the scan continues.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Generic, NamedTuple, Protocol, TypeVar

from ...core.errors import DiskError
from ..dirfd import Dir
from ..files import read_at
from .rootdir import MAX_DEPTH, RootDir


class ScannedFile(NamedTuple):
    """A plain file found by a scan: its path below the root, and the values that show whether it changed."""

    file: str
    mtime_ns: int
    size: int
    inode: int


class KnownFile(Protocol):
    """A file from an earlier scan, with its state at that time."""

    @property
    def mtime_ns(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def inode(self) -> int: ...


K = TypeVar("K", bound=KnownFile)


class TreeComparison(NamedTuple, Generic[K]):
    """The result of a scan. `same` holds the known entries of unchanged files, `other` the new and changed files."""

    same: list[K]
    other: list[ScannedFile]


def compare_tree(root: RootDir, known: Mapping[str, K], *, suffix: str, skip: Callable[[str], bool]) -> TreeComparison[K]:
    """Compare all plain files ending in `suffix` with their known state. Hidden names and directories that `skip` names are left
    out.

    Each file costs a single stat, because there may be ten thousand of them. The order of the results is arbitrary.
    """
    comparison: TreeComparison[K] = TreeComparison([], [])
    with root.directory() as where:
        _compare(where, "", known, suffix, skip, MAX_DEPTH, comparison)
    return comparison


def _compare(
    where: Dir,
    prefix: str,
    known: Mapping[str, K],
    suffix: str,
    skip: Callable[[str], bool],
    depth: int,
    comparison: TreeComparison[K],
) -> None:
    below: list[str] = []
    look, fd, get, keep = os.stat, where.fd, known.get, comparison.same.append
    for name in where.names():
        file = prefix + name if prefix else name
        entry = get(file)
        if entry is None and (name[0] == "." or not (depth or name.endswith(suffix))):
            continue
        try:
            info = look(where.at(name) if fd is None else name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if (
            entry is not None
            and entry.mtime_ns == info.st_mtime_ns
            and entry.size == info.st_size
            and entry.inode == info.st_ino
            and info.st_nlink == 1
        ):
            keep(entry)
        elif not name.endswith(suffix):
            if stat.S_ISDIR(info.st_mode) and not skip(file):
                below.append(name)
        elif info.st_nlink == 1 and stat.S_ISREG(info.st_mode):
            comparison.other.append(ScannedFile(file, info.st_mtime_ns, info.st_size, info.st_ino))
    for name in below:
        try:
            directory = where.child(name)
        except DiskError:
            continue
        with directory:
            _compare(directory, f"{prefix}{name}/", known, suffix, skip, depth - 1, comparison)


def modification_times(root: RootDir, files: Iterable[str]) -> dict[str, int]:
    """Return the time of each file, 0 for a missing one. Links, irregular files and paths outside the root are left out."""
    times: dict[str, int] = {}
    with root.directory() as top:
        for file in files:
            if not file or "/" in file or top.fd is None:
                with suppress(DiskError):
                    entry = root.stat(file)
                    times[file] = 0 if entry is None else entry.st_mtime_ns
                continue
            try:
                info = os.stat(file, dir_fd=top.fd, follow_symlinks=False)
            except FileNotFoundError:
                times[file] = 0
            except (OSError, ValueError):
                continue
            else:
                if info.st_nlink == 1 and stat.S_ISREG(info.st_mode):
                    times[file] = info.st_mtime_ns
    return times


def read_heads(root: RootDir, files: list[str], max_bytes: int) -> dict[str, bytes]:
    """Return the first bytes of each file that can be read."""
    heads: dict[str, bytes] = {}
    with root.directory() as top:
        for file in files:
            try:
                data = root.read_bytes(file, max_bytes) if "/" in file else read_at(top, file, max_bytes, shared=root.shared)
            except DiskError:
                continue
            if data is not None:
                heads[file] = data
    return heads
