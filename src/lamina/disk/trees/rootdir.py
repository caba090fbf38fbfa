"""Reads and writes one directory tree without ever leaving it, whatever names are requested and whatever is swapped meanwhile.

Owns the walk. Invariants: every component is opened relative to its parent's descriptor, and no link is followed. A file is
regular, has one name and belongs to us. Directories are created with mode 0700, files with 0600. A name that differs from an
existing one only in case or Unicode form is refused, so the same tree works on every system.

Writes go through `files` and `append`: a crash at any line leaves the old content or the new one.

Weaker on systems without directory-relative calls (Windows): each component is checked before it is used, and a program of the
same user can plant a link in between.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ...core.errors import PathRefused
from ...language.text import Text
from ..append import Appender
from ..crash_points import point, write_all
from ..dirfd import CREATE_NEW, READ, Closable, Dir, descend, open_plain, refuse_unless_plain
from ..faults import AbsentIsFine, reporting
from ..files import is_bookkeeping, read_at, remove_at, replace_at
from ..locks.lock_file import GUARD_TIMEOUT, guard_at
from ..paths.file_names import fold
from ..temp_files import Durability, is_temp, staged_at, sweep_at

# Maximum depth of a sweep or a walk; deeper trees are not ours.
MAX_DEPTH = 16

Relative = str | os.PathLike[str]


class ListedEntry(NamedTuple):
    """A file or directory as it was listed."""

    name: str
    is_dir: bool
    size: int
    mtime_ns: int


class RootDir(Closable):
    """A directory tree. Paths are relative to its root, separated by `/`; check a model's path with `check_child` first."""

    __slots__ = ("_root", "path", "shared")

    def __init__(self, root: Dir, *, shared: bool) -> None:
        self._root = root
        self.path = Path(root.path)
        self.shared = shared

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        shared: bool = False,
        below: str | os.PathLike[str] | None = None,
    ) -> RootDir:
        """Open a directory, never a link to one. `shared` accepts files of other users (a team's directory).

        Links above the directory are followed, except below the parent directory `below`, if given.
        """
        where = os.path.abspath(path)
        start = os.path.dirname(where) if below is None else os.path.abspath(below)
        root = descend(Dir.open(start, create=create), Path(where).relative_to(start).parts, create=create)
        try:
            info = os.stat(root.path if root.fd is None else root.fd)
            if not shared and hasattr(os, "geteuid") and info.st_uid != os.geteuid():
                raise PathRefused(root.path, "belongs to another user", "change its owner or choose another directory")
        except BaseException:
            root.close()
            raise
        return cls(root, shared=shared)

    @classmethod
    def empty(cls) -> RootDir:
        """Open a directory that has no entries and is removed already, in place of one that does not exist."""
        from tempfile import TemporaryDirectory  # rarely needed, and not free to import

        with TemporaryDirectory() as removed:
            return cls.open(removed)

    def close(self) -> None:
        self._root.close()

    @contextmanager
    def guard(self, name: str, *, timeout: float = GUARD_TIMEOUT) -> Iterator[Dir]:
        """Hold the guard `name` in the root and yield the root. Like all guards, it is not reentrant."""
        with self.directory() as where, guard_at(where, name, timeout=timeout):
            yield where

    # Reading

    def open_read(self, rel: Relative) -> int:
        """Open a plain file for reading; the caller closes the descriptor. Raises DiskError if it does not exist."""
        with self.parent(rel) as (where, name), reporting(where.full(name)):
            return open_plain(where, name, READ, shared=self.shared)

    def read_bytes(self, rel: Relative, max_bytes: int) -> bytes | None:
        """Return the first `max_bytes` of a plain file, or None if it does not exist."""
        with AbsentIsFine(), self.parent(rel) as (where, name):
            return read_at(where, name, max_bytes, shared=self.shared)
        return None

    def stat(self, rel: Relative) -> os.stat_result | None:
        """Return the stat of a plain file or a directory, or None if it does not exist. Anything else is refused."""
        with AbsentIsFine(), self.parent(rel) as (where, name):
            info = where.stat(name)
            if info is not None and not stat.S_ISDIR(info.st_mode):
                refuse_unless_plain(info, where.full(name), shared=self.shared)
            return info
        return None

    def listdir(self, rel: Relative = "") -> list[ListedEntry]:
        """List files and directories by name, without links, devices, temporary files and guards; [] for a missing directory."""
        return sorted(self.each(rel))

    def each(self, rel: Relative = "") -> Iterator[ListedEntry]:
        """Yield what `listdir` lists, in no particular order."""
        with AbsentIsFine(), self.directory(rel) as where:
            yield from (entry for listed in where.entries() if (entry := _entry(listed)) is not None)

    def names(self, rel: Relative = "") -> list[str]:
        """List all names in no particular order. A missing directory is empty."""
        with AbsentIsFine(), self.directory(rel) as where:
            return where.names()
        return []

    def inodes(self, rel: Relative = "") -> dict[str, int]:
        """Return the inode of each name, from the listing alone. A missing directory is empty."""
        with AbsentIsFine(), self.directory(rel) as where:
            return {entry.name: entry.inode() for entry in where.entries()}
        return {}

    def twin(self, name: str) -> str | None:
        """Return the existing name in the root that equals this one, or differs only in case or Unicode form."""
        return _twin(self._root, name)

    # Writing

    def replace(self, rel: Relative, data: bytes, *, durability: Durability = "full") -> None:
        with self.parent(rel, create=True) as (where, name):
            _refuse_twin(where, name)
            replace_at(where, name, data, durability=durability, shared=self.shared)

    def replace_if(
        self,
        rel: Relative,
        data: bytes,
        *,
        expected: bytes | None,
        durability: Durability = "full",
        mtime_ns: int | None = None,
        has_no_twin: bool = False,
    ) -> bool:
        """Write `data` to `rel` if its content is still `expected` (None: no file). Otherwise returns False and writes nothing.

        Unexpected content is never replaced, except in the instant between the last check and the rename. `mtime_ns` sets the
        file's time, for restoring a file as it was. `has_no_twin` saves the search for a name that differs only in spelling.
        """
        with self.parent(rel, create=True) as (where, name):
            if not has_no_twin:
                _refuse_twin(where, name)
            with staged_at(where, name, data, durability=durability, mtime_ns=mtime_ns, shared=self.shared) as temp:
                # Everything slow is done, so the rename follows within microseconds. Reading one more byte shows if the file has
                # grown.
                if read_at(where, name, len(expected or b"") + 1, shared=self.shared) != expected:
                    return False
                temp.publish()
                return True

    def write_new(self, contents: Mapping[str, bytes]) -> None:
        """Create a file for each path, fast, in a directory that no other process uses yet.

        Raises DiskError if a file exists. A crash leaves some of the files, and the last one may be incomplete: the caller must
        remove the whole directory if it finds an unfinished copy.
        """
        for file, data in contents.items():
            with self.parent(file, create=True) as (where, name), reporting(where.full(name)):
                fd = open_plain(where, name, CREATE_NEW)
                try:
                    write_all("copy.write", fd, data)
                finally:
                    os.close(fd)

    def append(self, rel: Relative, records: Sequence[bytes], *, durability: Durability = "full") -> int:
        """Append whole lines to a log and return the offset of the first."""
        with self.parent(rel, create=True) as (where, name):
            _refuse_twin(where, name)
            with Appender(where, name) as log:
                first = log.append(records)
                if durability == "full":
                    log.sync()
                return first

    def mkdir(self, rel: Relative) -> None:
        with self.directory(rel, create=True):
            pass

    def unlink(self, rel: Relative) -> bool:
        """Remove a plain file. Returns False if it did not exist."""
        with AbsentIsFine(), self.parent(rel) as (where, name):
            if (info := where.stat(name)) is None:
                return False
            refuse_unless_plain(info, where.full(name), shared=self.shared)
            return remove_at(where, name)
        return False

    def rename(self, source: Relative, target: Relative) -> None:
        """Move a plain file within the root. The target must not exist; callers that may race for a name take a guard first."""
        with self.parent(source) as (above, old), self.parent(target, create=True) as (below, new):
            with reporting(above.full(old)):
                refuse_unless_plain(
                    os.stat(above.at(old), dir_fd=above.fd, follow_symlinks=False), above.full(old), shared=self.shared
                )
            _refuse_twin(below, new)
            if below.stat(new) is not None:
                raise PathRefused(below.full(new), "already exists", "choose another name")
            with reporting(below.full(new)):
                point("root.rename")
                os.rename(above.at(old), below.at(new), src_dir_fd=above.fd, dst_dir_fd=below.fd)
                below.sync()
                above.sync()

    def sweep(self) -> int:
        """Remove the temporary files of dead writers in the whole tree and return their number."""
        return _sweep(self._root, MAX_DEPTH)

    # The walk

    def parent(self, rel: Relative, *, create: bool = False) -> _Parent:
        return _Parent(self._root, _parts(rel), create)

    def directory(self, rel: Relative = "", *, create: bool = False) -> _Inside:
        return _Inside(self._root, _parts(rel) if os.fspath(rel) not in ("", ".") else [], create)


def _sweep(where: Dir, depth: int) -> int:
    # List each directory only once: there is rarely anything to sweep, and a directory may have ten thousand files.
    has_temp, below = False, list[str]()
    for entry in where.entries():
        has_temp = has_temp or is_temp(entry.name)
        if depth and entry.is_dir(follow_symlinks=False):
            below.append(entry.name)
    swept = sweep_at(where) if has_temp else 0
    for name in below:
        with where.child(name) as directory:
            swept += _sweep(directory, depth - 1)
    return swept


class _Walk:
    """Walks down from the root for the duration of a block. A save needs dozens of walks, mostly to the root itself."""

    __slots__ = ("_create", "_here", "_parts", "_root")

    def __init__(self, root: Dir, parts: list[str], create: bool) -> None:
        self._root = root
        self._here = root
        self._parts = parts
        self._create = create

    def _down(self, parts: list[str]) -> Dir:
        for part in parts:
            try:
                if self._create:
                    _refuse_twin(self._here, part)
                below = self._here.child(part, create=self._create)
            finally:
                self._leave()
            self._here = below
        return self._here

    def _leave(self) -> None:
        here, self._here = self._here, self._root
        if here is not self._root:
            here.close()

    def __exit__(self, *_: object) -> None:
        self._leave()


class _Parent(_Walk):
    """The parent directory of a path, and its last name."""

    __slots__ = ()

    def __enter__(self) -> tuple[Dir, str]:
        return (self._down(self._parts[:-1]) if len(self._parts) > 1 else self._root), self._parts[-1]


class _Inside(_Walk):
    """The directory at a path."""

    __slots__ = ()

    def __enter__(self) -> Dir:
        return self._down(self._parts)


def _parts(rel: Relative) -> list[str]:
    text = os.fspath(rel)
    parts = text.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in text or (os.sep != "/" and {os.sep, ":"} & set(text)):
        raise PathRefused(ascii(text), "is not a path inside the directory", "use names separated by `/`")
    if len(parts) > MAX_DEPTH:
        raise PathRefused(ascii(text), Text("is more than {limit} directories deep", limit=MAX_DEPTH), "use a shorter path")
    return parts


def _refuse_twin(where: Dir, name: str) -> None:
    """Refuse a new name that differs from an existing one only in case or Unicode form: on some systems both are the same file.

    The name itself does not count as a twin, even if another process creates it between the two checks.
    """
    if where.stat(name) is None and (twin := _twin(where, name)) not in (None, name):
        raise PathRefused(
            where.full(name), Text("differs from the existing {twin!r} only in spelling", twin=twin), f"use {twin!r}"
        )


def _twin(where: Dir, name: str) -> str | None:
    folded = fold(name)
    # ASCII names, which are the most common, fold to lower case. This matters in a directory of ten thousand files.
    return next((other for other in where.names() if (other.lower() if other.isascii() else fold(other)) == folded), None)


def _entry(listed: os.DirEntry[str]) -> ListedEntry | None:
    if is_bookkeeping(listed.name):
        return None
    try:
        info = listed.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(info.st_mode) or stat.S_ISREG(info.st_mode):
        return ListedEntry(listed.name, stat.S_ISDIR(info.st_mode), info.st_size, info.st_mtime_ns)
    return None
