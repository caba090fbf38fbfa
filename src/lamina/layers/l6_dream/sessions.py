"""The sessions that belong to a memory (D1): which directories hold their transcripts, and how many are newer than the last dream.

Owns `<memory>/.dreams/places/`: a file for each directory of transcripts whose sessions use this memory (subdirectories and worktrees
of a repository share one; so do projects that were given the same directory), named like it and holding its path. Invariants: a place
is written once and then only looked at, so that a session pays one stat for it; what cannot be read or is gone counts nothing; no
transcript is opened.

A crash at any line leaves no entry or a whole one; the next session writes it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ...core.errors import DiskError
from ...disk.trees.rootdir import RootDir

PLACES = ".dreams/places"
# Nobody works in more checkouts of one repository at a time; the listing stays short whatever lies there.
MOST_PLACES = 256
_PATH_BYTES = 8_192


def register(memory: Path, transcripts: Path) -> bool:
    """Note that sessions kept in `transcripts` use this memory. False: there is no memory yet, or it cannot be written."""
    name = f"{PLACES}/{transcripts.name}"
    if os.path.lexists(memory / name):
        return True
    if not memory.is_dir():
        return False
    try:
        with RootDir.open(memory, create=False) as root:
            root.replace(name, os.fsencode(transcripts), durability="process")
    except DiskError:
        return False  # those of the session's own directory are counted all the same
    return True


def places(root: RootDir, own: Path | None) -> tuple[Path, ...]:
    """The directories of transcripts; that of the session itself first."""
    found: dict[Path, None] = {own: None} if own is not None else {}
    entries = []
    with suppress(DiskError):
        entries = root.listdir(PLACES)
    for entry in sorted(entries, key=lambda entry: entry.name)[:MOST_PLACES]:
        with suppress(DiskError, ValueError):
            data = root.read_bytes(f"{PLACES}/{entry.name}", _PATH_BYTES) or b""
            path = Path(os.fsdecode(data))
            if path.is_absolute() and path.name == entry.name:
                found[path] = None
    return tuple(found)


def is_empty(root: RootDir) -> bool:
    """Whether nothing is remembered: no file and no directory but our own."""
    return all(entry.name.startswith(".") for entry in root.listdir())


def newer(places: Iterable[Path], since_ns: int | None, *, own: Path | None, enough: int) -> int:
    """How many transcripts were written to since then, the session's own left out; counted up to `enough`."""
    count = 0
    for place in places:
        try:
            entries = os.scandir(place)
        except OSError:
            continue
        with entries:
            for entry in entries:
                if count >= enough:
                    return count
                count += _counts(entry, since_ns, own)
    return count


def _counts(entry: os.DirEntry[str], since_ns: int | None, own: Path | None) -> bool:
    if not entry.name.endswith(".jsonl") or (own is not None and entry.name == own.name and Path(entry.path) == own):
        return False
    try:
        if not entry.is_file(follow_symlinks=False):
            return False
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    # A session in which nothing was said has left nothing to dream of.
    return found.st_size > 0 and (since_ns is None or found.st_mtime_ns > since_ns)
