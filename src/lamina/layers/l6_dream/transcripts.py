"""A narrow look into transcripts (D3): the last hits of a word, never a whole file.

Owns the search. Invariants: a term is taken as it is, so that no text can make a search long; the newest files come first, and of each
its last hits; hits, their length, files and bytes are bounded. Reads only.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...core.errors import DiskError
from ...disk.transcripts.search import list_transcripts
from ...disk.user_files import open_regular

# D3.
MOST_HITS = 50
# A dream that suspects more than this is reading the past, not checking something.
MOST_SEARCHES = 20
# Fewer characters are in every line; a longer phrase is no search.
TERM_CHARS = (3, 200)
# Of what stands around a hit, enough to see what it is about.
AROUND = 160
# What the newest sessions hold of a term is what counts: 50 files, and 64 MB in all, take about a second.
MOST_FILES = 50
MOST_BYTES = 64 << 20


class Hit(NamedTuple):
    session: str
    line: int
    text: str


def problem(term: str) -> str | None:
    """Why nothing is searched for this, as a sentence."""
    shortest, longest = TERM_CHARS
    if not shortest <= len(term.strip()) <= longest:
        return f"A search in transcripts takes a word or phrase of {shortest} to {longest} characters, as it is written there."
    return None


def search(places: Iterable[Path], term: str) -> list[Hit]:
    """The last hits, oldest first."""
    wanted, found, left = term.strip().casefold(), list[Hit](), MOST_BYTES
    for path, size in _newest(places):
        left -= size
        if left < 0 or len(found) >= MOST_HITS:
            break
        found = [*_in_file(path, wanted, MOST_HITS - len(found)), *found]
    return found


def _newest(places: Iterable[Path]) -> list[tuple[Path, int]]:
    files = list[tuple[int, Path, int]]()
    for path in (path for place in places for path in list_transcripts(place)):
        with suppress(OSError):
            found = os.stat(path, follow_symlinks=False)
            files.append((found.st_mtime_ns, path, found.st_size))
    return [(path, size) for _, path, size in sorted(files, reverse=True)[:MOST_FILES]]


def _in_file(path: Path, wanted: str, room: int) -> Sequence[Hit]:
    hits = deque[Hit](maxlen=room)
    for number, line in enumerate(_lines(path), 1):
        text = line.decode("utf-8", "replace")
        at = text.casefold().find(wanted)
        if at >= 0:
            shown = text[max(0, at - AROUND) : at + len(wanted) + AROUND].strip()
            hits.append(Hit(path.stem, number, " ".join(shown.split())))
    return hits


def _lines(path: Path) -> Iterator[bytes]:
    with suppress(DiskError, OSError):
        fd = open_regular(path)
        if fd is not None:
            with open(fd, "rb") as file:
                yield from file
