"""The number of times each memory was recalled or read. It decides the place of the memory in the index.

It owns `.history/uses.jsonl`: one line per use, with file names, or with counts after the file was shortened. Invariants: the
file stays below about twice MOST_BYTES. Shortening it halves all counts, so what was used long ago counts less and less. A
lost or damaged line loses a few counts and nothing else.

Any process appends without the guard. A crash at any line loses at most the last use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec

from ...core.errors import DiskError
from ...disk.trees.rootdir import RootDir
from .scopes import MemoryLocation, path_text
from .topic import fold_name

USES = ".history/uses.jsonl"
# About a thousand uses, read in a millisecond.
MOST_BYTES = 64 << 10
# Ten times as many as the index has lines.
_MOST_COUNTED = 2_000


def note_uses(place: MemoryLocation, paths: Iterable[str]) -> None:
    """Count one use of each memory, given by its path as texts spell it. A directory that cannot be written counts nothing."""
    remaining = list(paths)
    for directory in (place.team, place.path):
        begin = f"{path_text(directory)}/" if directory is not None else ""
        own = [path.removeprefix(begin) for path in remaining if begin and path.startswith(begin)]
        remaining = [path for path in remaining if not (begin and path.startswith(begin))]
        if own and directory is not None:
            with suppress(DiskError), RootDir.open(directory, create=False, shared=directory == place.team) as root:
                if root.append(USES, [msgspec.json.encode(own)], durability="process") > MOST_BYTES:
                    _shorten(root)


def read_uses(root: RootDir) -> Mapping[str, int]:
    """Return the number of uses by folded file name."""
    try:
        rows = (root.read_bytes(USES, 4 * MOST_BYTES) or b"").split(b"\n")
    except DiskError:
        return {}
    uses: Counter[str] = Counter()
    for row in rows:
        with suppress(msgspec.DecodeError):
            counted = msgspec.json.decode(row, type=list[str] | dict[str, int])
            uses.update(map(fold_name, counted) if isinstance(counted, list) else counted)
    return uses


def _shorten(root: RootDir) -> None:
    counts = Counter(read_uses(root)).most_common(_MOST_COUNTED)
    halved = {file: count // 2 for file, count in counts if count > 1}
    root.replace(USES, msgspec.json.encode(halved) + b"\n", durability="process")
