"""One directory tree, read and written without ever leaving it, whatever names are asked for and whatever is swapped meanwhile.

Owns the walk. Invariants: every component is opened relative to its parent's descriptor and follows no link; a file is regular,
has one name and belongs to us; directories are made 0700, files 0600; of two names that differ only in case or Unicode form the
second is not made, so the same tree works on every system.

Writes are those of `files` and `append`: a crash at any line leaves the old content or the new one.

Weaker where the system has no directory-relative calls (Windows): each component is looked at before it is used, and a program of
the same user can put a link there in between.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ...core.errors import PathRefused
from ..append import Appender
from ..crash_points import point, write_all
from ..dirfd import CREATE_NEW, READ, Closable, Dir, descend, open_plain, refuse_unless_plain
from ..faults import AbsentIsFine, reporting
from ..files import is_bookkeeping, read_at, remove_at, replace_at
from ..locks.lock_file import GUARD_TIMEOUT, guard_at
from ..paths.file_names import fold
from ..temp_files import Durability, is_temp, staged_at, sweep_at

# How deep a sweep or a walk goes: deeper trees are not ours.
MAX_DEPTH = 16

Relative = str | os.PathLike[str]


class ListedEntry(NamedTuple):
    """A file or directory as it was listed."""

    name: str
    is_dir: bool
    size: int
    mtime_ns: int


class RootDir(Closable):
    """Paths are relative to the root, with `/` between components; a model's go through `check_child` first."""

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
        """Opens the directory itself, never a link to one. `shared` accepts files of other users (a team's directory). Links above it
        are followed, but none from `below` on, a directory that holds it."""
        where = os.path.abspath(path)
        start = os.path.dirname(where) if below is None else os.path.abspath(below)
        root = descend(Dir.open(start, create=create), Path(where).relative_to(start).parts, create=create)
        try:
            found = os.stat(root.path if root.fd is None else root.fd)
            if not shared and hasattr(os, "geteuid") and found.st_uid != os.geteuid():
                raise PathRefused(root.path, "belongs to another user", "change its owner or choose another directory")
        except BaseException:
            root.close()
            raise
        return cls(root, shared=shared)

    def close(self) -> None:
        self._root.close()

    @contextmanager
    def guard(self, name: str, *, timeout: float = GUARD_TIMEOUT) -> Iterator[Dir]:
        """Hold the guard `name` at the top of the root, and give the root. Not reentrant, as all guards."""
        with self.directory() as where, guard_at(where, name, timeout=timeout):
            yield where

    # Reading

    def open_read(self, rel: Relative) -> int:
        """Return a descriptor of a plain file, for the caller to close; DiskError when it does not exist."""
        with self.parent(rel) as (where, name), reporting(where.full(name)):
            return open_plain(where, name, READ, shared=self.shared)

    def read_bytes(self, rel: Relative, max_bytes: int) -> bytes | None:
        """Return the first `max_bytes` of a plain file; None when it does not exist."""
        with AbsentIsFine(), self.parent(rel) as (where, name):
            return read_at(where, name, max_bytes, shared=self.shared)
        return None

    def stat(self, rel: Relative) -> os.stat_result | None:
        """Return the stat of a plain file or a directory; None when it does not exist; a link or anything else is refused."""
        with AbsentIsFine(), self.parent(rel) as (where, name):
            found = where.stat(name)
            if found is not None and not stat.S_ISDIR(found.st_mode):
                refuse_unless_plain(found, where.full(name), shared=self.shared)
            return found
        return None

    def listdir(self, rel: Relative = "") -> list[ListedEntry]:
        """Files and directories in name order, without links, devices, temporary files and guards; empty when there is none."""
        with AbsentIsFine(), self.directory(rel) as where:
            return sorted(entry for found in where.entries() if (entry := _entry(found)) is not None)
        return []

    def names(self, rel: Relative = "") -> list[str]:
        """List all names, in no order; empty when the directory does not exist."""
        with AbsentIsFine(), self.directory(rel) as where:
            return where.names()
        return []

    def twin(self, name: str) -> str | None:
        """Return the name at the top that differs from this one at most in its spelling."""
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
    ) -> bool:
        """Put `data` at `rel` if what stands there is still `expected` (None: nothing); False, and nothing written, if it is not.

        Content it was not told about is never replaced, but for the instant between the last look and the rename. `mtime_ns` is the
        time the file gets, for one that is put back as it was.
        """
        with self.parent(rel, create=True) as (where, name):
            _refuse_twin(where, name)
            with staged_at(where, name, data, durability=durability, mtime_ns=mtime_ns, shared=self.shared) as temp:
                # Everything slow is done: from here to the rename it is microseconds. One byte more shows that a file has grown.
                if read_at(where, name, len(expected or b"") + 1, shared=self.shared) != expected:
                    return False
                temp.publish()
                return True

    def write_new(self, contents: Mapping[str, bytes]) -> None:
        """Make a file for each path, in a directory that nobody else uses yet: thousands at the price of their bytes.

        DiskError for one that is there already. A crash leaves some of the files, the last one perhaps in part: who makes copies
        removes the whole directory when it finds one that it did not finish.
        """
        for file, data in contents.items():
            with self.parent(file, create=True) as (where, name), reporting(where.full(name)):
                fd = open_plain(where, name, CREATE_NEW)
                try:
                    write_all("copy.write", fd, data)
                finally:
                    os.close(fd)

    def append(self, rel: Relative, records: Sequence[bytes], *, durability: Durability = "full") -> int:
        """Adds whole lines to a log; where the first begins."""
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
        """Removes a plain file; False when there was none."""
        with AbsentIsFine(), self.parent(rel) as (where, name):
            if (found := where.stat(name)) is None:
                return False
            refuse_unless_plain(found, where.full(name), shared=self.shared)
            return remove_at(where, name)
        return False

    def rename(self, source: Relative, target: Relative) -> None:
        """Moves a plain file within the root. A target that exists is refused: two movers of one name take a guard first."""
        with self.parent(source) as (here, old), self.parent(target, create=True) as (there, new):
            with reporting(here.full(old)):
                refuse_unless_plain(
                    os.stat(here.at(old), dir_fd=here.fd, follow_symlinks=False), here.full(old), shared=self.shared
                )
            _refuse_twin(there, new)
            if there.stat(new) is not None:
                raise PathRefused(there.full(new), "exists already", "choose another name")
            with reporting(there.full(new)):
                point("root.rename")
                os.rename(here.at(old), there.at(new), src_dir_fd=here.fd, dst_dir_fd=there.fd)
                there.sync()
                here.sync()

    def sweep(self) -> int:
        """Remove what dead writers left, in the whole tree, and return how many temporary files there were."""
        return _sweep(self._root, MAX_DEPTH)

    # The walk

    def parent(self, rel: Relative, *, create: bool = False) -> _Parent:
        return _Parent(self._root, _parts(rel), create)

    def directory(self, rel: Relative = "", *, create: bool = False) -> _Inside:
        return _Inside(self._root, _parts(rel) if os.fspath(rel) not in ("", ".") else [], create)


def _sweep(where: Dir, depth: int) -> int:
    # Listed once: hardly ever is there anything to sweep, and a directory may hold ten thousand files.
    left, below = False, list[str]()
    for found in where.entries():
        left = left or is_temp(found.name)
        if depth and found.is_dir(follow_symlinks=False):
            below.append(found.name)
    swept = sweep_at(where) if left else 0
    for name in below:
        with where.child(name) as directory:
            swept += _sweep(directory, depth - 1)
    return swept


class _Walk:
    """The way down from the root while a block lasts. A save asks for dozens of them, mostly of the root itself."""

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
    """The directory a path lies in, and its last name."""

    __slots__ = ()

    def __enter__(self) -> tuple[Dir, str]:
        return (self._down(self._parts[:-1]) if len(self._parts) > 1 else self._root), self._parts[-1]


class _Inside(_Walk):
    """The directory a path names."""

    __slots__ = ()

    def __enter__(self) -> Dir:
        return self._down(self._parts)


def _parts(rel: Relative) -> list[str]:
    text = os.fspath(rel)
    parts = text.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in text or (os.sep != "/" and {os.sep, ":"} & set(text)):
        raise PathRefused(ascii(text), "is not a path inside the directory", "use names with a `/` between them")
    if len(parts) > MAX_DEPTH:
        raise PathRefused(ascii(text), f"is more than {MAX_DEPTH} directories deep", "use a shorter path")
    return parts


def _refuse_twin(where: Dir, name: str) -> None:
    """A file whose name is the same but for case or Unicode form is the same file on some systems. One that is there, or that another
    process makes between the two looks, is no second one."""
    if where.stat(name) is None and (twin := _twin(where, name)) not in (None, name):
        raise PathRefused(where.full(name), f"differs from {twin!r} there only in its spelling", f"use {twin!r}")


def _twin(where: Dir, name: str) -> str | None:
    folded = fold(name)
    # Plain ASCII folds to small letters, and most names are: a directory may hold ten thousand.
    return next((each for each in where.names() if (each.lower() if each.isascii() else fold(each)) == folded), None)


def _entry(found: os.DirEntry[str]) -> ListedEntry | None:
    if is_bookkeeping(found.name):
        return None
    try:
        info = found.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(info.st_mode) or stat.S_ISREG(info.st_mode):
        return ListedEntry(found.name, stat.S_ISDIR(info.st_mode), info.st_size, info.st_mtime_ns)
    return None
