"""Which change each line of a memory comes from (B4): read off the journal, no git needed. Pure.

A line belongs to the change after which it first stood there without interruption. Where the journal no longer has a version,
its lines belong to the next one it has; lines nobody recorded, because somebody edits the file right now, belong to none.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple

from .contract import Version


class Blamed(NamedTuple):
    text: str
    version: Version | None


class Known(NamedTuple):
    """A change and the text after it; None where the journal does not have it, or nothing was left."""

    version: Version
    text: str | None


def blame(history: Iterable[Known], now: str) -> list[Blamed]:
    """`history` oldest first; `now` is the text as it stands."""
    lines: list[Blamed] = []
    for version, text in history:
        if text is not None:
            lines = _carried(lines, text, version)
        elif not version.digest:
            lines = []
    return _carried(lines, now, None)


def _carried(old: list[Blamed], text: str, version: Version | None) -> list[Blamed]:
    rows = text.splitlines()
    new = [Blamed(row, version) for row in rows]
    matcher = difflib.SequenceMatcher(None, [line.text for line in old], rows, autojunk=False)
    for block in matcher.get_matching_blocks():
        new[block.b : block.b + block.size] = old[block.a : block.a + block.size]
    return new
