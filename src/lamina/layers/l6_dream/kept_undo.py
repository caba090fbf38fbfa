"""What an undo of a dream removed, kept in `<memory>/.dreams/<id>/undone/<undo>/` so that it can be applied again.

Owns these directories. Each has the removed files byte for byte, the index before and after the undo, and `undo.json`, which is written
last and names them by digest. Invariants: a directory without `undo.json` counts as none; a text whose digest is another is not used, so
a forgotten one does not return; the last MOST_KEPT of a dream are kept, and all go with the dream.

A crash at any line leaves an undo that is kept or not. No memory is touched here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError
from ...disk.trees.rewrite import remove_tree
from ...disk.trees.rootdir import RootDir
from ...language.text import encodable
from ...memory.store.contract import MOST_READ
from ...memory.store.index import MOST_INDEX
from ...memory.store.journal import digest_of
from ...memory.store.modes import Proposal
from .record import dream_home

# More than a user undoes one by one.
MOST_KEPT = 100
_ID = re.compile(r"[0-9a-f]{8}")
# The names of all files in a large memory, and forty proposals.
_BYTES = 32 << 20


class UndoneFile(msgspec.Struct, frozen=True):
    """A file that an undo changed: its digest before and after the undo, and its time before. An empty digest means no file."""

    file: str
    was: str
    left: str
    mtime_ns: int = 0


class KeptUndo(msgspec.Struct, frozen=True):
    """An undo. `index` is the digest of the index before and after it; `ended` the end of the dream before a whole undo replaced it."""

    id: str
    time: float
    whole: bool
    files: tuple[UndoneFile, ...]
    index: tuple[str, str]
    withdrawn: tuple[Proposal, ...] = ()
    ended: float | None = None


class IndexPair(NamedTuple):
    """The index before and after an undo."""

    was: bytes | None
    left: bytes | None


def undone_files(kept: KeptUndo) -> set[str]:
    """Return the files that an undo was about: those it changed, and those of withdrawn proposals."""
    return {one.file for one in kept.files} | {proposal.file for proposal in kept.withdrawn}


def new_undo_id() -> str:
    return os.urandom(4).hex()


def keep_undo(root: RootDir, dream: str, kept: KeptUndo, texts: Mapping[str, bytes | None], index: IndexPair) -> bool:
    """Keep what an undo removed. False if the disk does not take it: the undo is done all the same, and cannot be taken back."""
    home = _home(dream, kept.id)
    copies = {_copy(file): data for file, data in texts.items()} | dict(zip(_INDEX, index, strict=True))
    try:
        for name, data in copies.items():
            if data is not None:
                root.replace(f"{home}/{name}", data, durability="process")
        root.replace(f"{home}/undo.json", msgspec.json.encode(kept, enc_hook=encodable), durability="process")
        for old in list_undos(root, dream)[MOST_KEPT:]:
            drop_undo(root, dream, old.id)
    except DiskError:
        return False
    return True


def read_undo(root: RootDir, dream: str, undo: str) -> KeptUndo | None:
    """Return an undo; None if it is not kept."""
    if not _ID.fullmatch(undo):
        return None
    try:
        data = root.read_bytes(f"{_home(dream, undo)}/undo.json", _BYTES)
        found = msgspec.json.decode(data or b"", type=KeptUndo)
    except (DiskError, *UNDECODABLE):
        return None
    return found if found.id == undo else None


def list_undos(root: RootDir, dream: str) -> list[KeptUndo]:
    """Return the undos of a dream that are kept, newest first."""
    names = [entry.name for entry in root.listdir(f"{dream_home(dream)}/{_DIRECTORY}") if entry.is_dir]
    found = (read_undo(root, dream, name) for name in names)
    return sorted((one for one in found if one is not None), key=lambda one: (-one.time, one.id))


def read_undone(root: RootDir, dream: str, kept: KeptUndo) -> dict[str, bytes | None] | None:
    """Return the files that an undo removed; None if one of them is no longer kept."""
    home = _home(dream, kept.id)
    texts = {one.file: root.read_bytes(f"{home}/{_copy(one.file)}", MOST_READ) if one.was else None for one in kept.files}
    return texts if all(digest_of(texts[one.file]) == one.was for one in kept.files) else None


def read_undone_index(root: RootDir, dream: str, kept: KeptUndo) -> IndexPair | None:
    """Return the index before and after an undo; None if one of them is no longer kept."""
    pair = IndexPair(*(root.read_bytes(f"{_home(dream, kept.id)}/{name}", MOST_INDEX) for name in _INDEX))
    return pair if tuple(map(digest_of, pair)) == kept.index else None


def drop_undo(root: RootDir, dream: str, undo: str) -> None:
    remove_tree(root.path / _home(dream, undo))


_DIRECTORY = "undone"
_INDEX = ("index-was.md", "index-left.md")


def _home(dream: str, undo: str) -> str:
    return f"{dream_home(dream)}/{_DIRECTORY}/{undo}"


def _copy(file: str) -> str:
    return f"files/{file}"
