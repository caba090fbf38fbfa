"""Lists a directory tree as it is: every entry with its kind, mode and size.

Changes nothing. Invariants: no link is followed and only directories are opened, so a pipe cannot block and a huge file costs no
more than a small one. At most `most` entries are listed, and `whole` tells whether that was all. An unreadable directory is
reported in the result, not raised.

Without directory-relative calls (Windows), a directory that is swapped for a link between two checks is followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from ...core.errors import DiskError
from ..dirfd import HAS_DIR_FD, Dir
from ..faults import AbsentIsFine, reporting
from .rootdir import MAX_DEPTH

Kind: TypeAlias = Literal["file", "directory", "link", "other"]

# Five times the largest memory in our benchmarks; listing this many entries takes about a second.
MOST_ENTRIES = 50_000
# Modes have a meaning only on systems where files have owners.
HAS_MODES = os.name != "nt" and hasattr(os, "geteuid")


class SurveyedEntry(NamedTuple):
    """A listed entry. `path` is relative to the top, with `/` between components."""

    path: str
    kind: Kind
    mode: int
    links: int
    owner: int
    size: int
    mtime_ns: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def ours(self) -> bool:
        return not HAS_MODES or self.owner == os.geteuid()

    @property
    def private(self) -> bool:
        """Whether only the owner may read or write it. Links have no mode and count as private."""
        return not HAS_MODES or self.kind in ("link", "other") or not self.mode & 0o077


class Survey(NamedTuple):
    """A listing. `unread` names directories that could not be listed; `whole` is False if there were too many entries."""

    entries: tuple[SurveyedEntry, ...] = ()
    unread: tuple[str, ...] = ()
    whole: bool = True


def survey(top: str | os.PathLike[str], *, most: int = MOST_ENTRIES) -> Survey | None:
    """List `top` and everything below it. Returns None if it does not exist; raises DiskError if `top` itself is unreadable."""
    entries: list[SurveyedEntry] = []
    unread: list[str] = []
    with AbsentIsFine(), Dir.open(top) as where:
        whole = _look(where, "", MAX_DEPTH, most, entries, unread)
        return Survey(tuple(entries), tuple(unread), whole)
    return None


def look_at(path: str | os.PathLike[str]) -> SurveyedEntry | None:
    """Return one entry without following links, or None if it does not exist."""
    try:
        return _seen(os.path.basename(path), os.lstat(path))
    except (OSError, ValueError):
        return None


def _look(where: Dir, prefix: str, depth: int, most: int, entries: list[SurveyedEntry], unread: list[str]) -> bool:
    below: list[str] = []
    for entry in where.entries():
        if len(entries) >= most:
            return False
        # Entries removed since they were listed are left out.
        with AbsentIsFine(), reporting(entry.path):
            entries.append(_seen(prefix + entry.name, entry.stat(follow_symlinks=False)))
            if entries[-1].kind == "directory":
                below.append(entry.name)
    if not depth:
        return not below
    whole = True
    for name in sorted(below):
        if len(entries) >= most:
            return False
        try:
            with where.child(name) as directory:
                whole = _look(directory, f"{prefix}{name}/", depth - 1, most, entries, unread) and whole
        except DiskError:
            unread.append(prefix + name)
    return whole


def _seen(path: str, info: os.stat_result) -> SurveyedEntry:
    links = info.st_nlink if HAS_DIR_FD else 1  # a listing on Windows does not count links
    mode = stat.S_IMODE(info.st_mode)
    return SurveyedEntry(path, _kind(info.st_mode), mode, links, info.st_uid, info.st_size, info.st_mtime_ns)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def files_of(entries: tuple[SurveyedEntry, ...]) -> Iterator[SurveyedEntry]:
    """Yield the plain files: regular, with one name."""
    return (entry for entry in entries if entry.kind == "file" and entry.links == 1)
