"""Files of a memory put back as they were, byte for byte and with their time: several as one (B4).

Owns the order: memories come back before those go that stood in for them, and the index is last. Invariants: under one guard, so no
other process is in between; each file is journaled as a restore or a removal; a file that is not as the caller knows it is left to
whoever changed it; no line points at a file that is not there.

A crash at any line leaves each file old or new. The same call again finishes it: what is back already is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from ...disk.compare_and_swap import replace_if
from .contract import MOST_READ, ChangeReason
from .directory import DirectoryStore, hold_guard
from .index import INDEX
from .journal import MemoryChange, digest_of
from .topic import read_topic
from .topic_files import decode_text


class FileToRestore(NamedTuple):
    """A file as it shall be: `data` None: gone. `known` are the digests of what it may hold to be replaced; empty stands for no file."""

    file: str
    data: bytes | None
    known: Collection[str]
    mtime_ns: int = 0


class RestoreResult(NamedTuple):
    """`back`: as they were; `left`: changed by somebody else."""

    back: tuple[str, ...]
    left: tuple[str, ...]


def restore_files(
    store: DirectoryStore,
    wanted: Sequence[FileToRestore],
    *,
    index: Callable[[str, Collection[str]], str | None],
    why: ChangeReason,
) -> RestoreResult:
    """`index` gets the index as it is and the files that are back, and says how it shall be; None: there was none."""
    back, left = list[str](), list[str]()
    with hold_guard(store.root):
        for one in sorted(wanted, key=lambda one: one.data is None):
            (back if _returned(store, one, why) else left).append(one.file)
        store.repair()
        if index(store.index(), back) is None:
            store.root.unlink(INDEX)
        else:
            store.index_file.edit(lambda now: index(now, back) or "")
    return RestoreResult(tuple(back), tuple(left))


def _returned(store: DirectoryStore, one: FileToRestore, why: ChangeReason) -> bool:
    store.repair()
    there = store.root.read_bytes(one.file, MOST_READ)
    if there == one.data:
        return True
    if digest_of(there) not in one.known:
        return False
    name = read_topic(one.file, decode_text(one.data if one.data is not None else there), 0).name
    change = MemoryChange(one.file, name, "remove" if one.data is None else "restore", there, one.data, why)
    store.history.record(change, now=store.clock())
    if one.data is None:
        store.index_file.drop(one.file)
        if store.root.read_bytes(one.file, MOST_READ) != there:
            return False
        store.root.unlink(one.file)
        return True
    return replace_if(store.root, one.file, one.data, expected=there, durability=store.durability, mtime_ns=one.mtime_ns or None)
