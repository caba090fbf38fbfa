"""Files of a memory put back as they were, byte for byte and with their time: several as one (B4).

Owns the order: memories come back before those go that stood in for them, and the index is last. Invariants: under one guard, so no
other process is in between; each file is journaled as a restore or a removal; a file that is not as the caller knows it is left to
whoever changed it; no line points at a file that is not there.

A crash at any line leaves each file old or new. The same call again finishes it: what is back already is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from .contract import MOST_READ, Why
from .directory import GUARD, PATIENCE, DirectoryStore
from .index import INDEX
from .journal import Change, digest_of
from .lookup import shown
from .topic import read_topic


class Back(NamedTuple):
    """A file as it shall be: `data` None: gone. `known` are the digests of what it may hold to be replaced; empty stands for no file."""

    file: str
    data: bytes | None
    known: Collection[str]
    mtime_ns: int = 0


class Returned(NamedTuple):
    """`back`: as they were; `left`: changed by somebody else."""

    back: tuple[str, ...]
    left: tuple[str, ...]


def put_back(
    store: DirectoryStore, wanted: Sequence[Back], *, index: Callable[[str, Collection[str]], str | None], why: Why
) -> Returned:
    """`index` gets the index as it is and the files that are back, and says how it shall be; None: there was none."""
    back, left = list[str](), list[str]()
    with store.root.guard(GUARD, timeout=PATIENCE):
        for one in sorted(wanted, key=lambda one: one.data is None):
            (back if _returned(store, one, why) else left).append(one.file)
        store._mend()
        _index(store, lambda now: index(now, back))
    return Returned(tuple(back), tuple(left))


def _returned(store: DirectoryStore, one: Back, why: Why) -> bool:
    store._mend()
    there = store.root.read_bytes(one.file, MOST_READ)
    if there == one.data:
        return True
    if digest_of(there) not in one.known:
        return False
    name = read_topic(one.file, shown(one.data if one.data is not None else there), 0).name
    change = Change(one.file, name, "remove" if one.data is None else "restore", there, one.data, why)
    store.history.record(change, now=store.clock())
    if one.data is None:
        store._index.drop(one.file)
        if store.root.read_bytes(one.file, MOST_READ) != there:
            return False
        store.root.unlink(one.file)
        return True
    return store.root.replace_if(one.file, one.data, expected=there, durability=store.durability, mtime_ns=one.mtime_ns or None)


def _index(store: DirectoryStore, wanted: Callable[[str], str | None]) -> None:
    if wanted(store.index()) is None:
        store.root.unlink(INDEX)
    else:
        store._index.edit(lambda now: wanted(now) or "")
