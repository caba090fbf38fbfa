"""The pairs of similar memories that the user called distinct.

It owns `.history/distinct.json`, a list of pairs of identities: a memory keeps its identity whatever its name and file. Invariants: a pair
once called distinct is not reported again until the user takes that back; the file stays below MOST_PAIRS, the oldest go first.
A crash leaves the old or the new list. A damaged list counts as empty: then pairs are reported again, and nothing else is lost.
"""

from __future__ import annotations

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import InputError
from ...disk.trees.rootdir import RootDir
from .directory import DirectoryStore
from .history import hold_guard

DISTINCT = ".history/distinct.json"
# Far more than anyone reviews by hand.
MOST_PAIRS = 2_000
_BYTES = 1 << 20


def read_distinct(root: RootDir) -> frozenset[tuple[str, str]]:
    """Return the pairs of identities that the user called distinct, each in order."""
    return frozenset(_read(root))


def are_distinct(store: DirectoryStore, first: str, second: str) -> bool:
    return _key(store, first, second) in read_distinct(store.root)


def note_distinct(store: DirectoryStore, first: str, second: str, *, distinct: bool = True) -> None:
    """Remember that two memories, given by name or file, are not duplicates; with `distinct` false, take that back."""
    for name in (first, second):
        if store.get(name) is None:
            raise InputError(name, "no such memory exists", "run `lamina memory list` to see the names")
    key = _key(store, first, second)
    if key[0] == key[1]:
        raise InputError(second, "is the same memory", "choose two memories")
    with hold_guard(store.root):
        pairs = [pair for pair in _read(store.root) if pair != key]
        pairs = [*pairs, key][-MOST_PAIRS:] if distinct else pairs
        store.root.replace(DISTINCT, msgspec.json.encode(pairs), durability=store.durability)


def _key(store: DirectoryStore, first: str, second: str) -> tuple[str, str]:
    low, high = sorted((store.identity(first) or first, store.identity(second) or second))
    return low, high


def _read(root: RootDir) -> list[tuple[str, str]]:
    data = root.read_bytes(DISTINCT, _BYTES)
    try:
        return msgspec.json.decode(data, type=list[tuple[str, str]]) if data is not None else []
    except UNDECODABLE:
        return []
