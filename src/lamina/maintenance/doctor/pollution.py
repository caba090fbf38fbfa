"""Memory pollution in four figures (K4): what of memory says things twice, leads nowhere, or rests on what is no longer so.

Counted from what `look` finds, so `lamina doctor` names each of them. "Stale" are memories that rest on what has changed, or that name
a day by a word that has lost its meaning. Nothing here understands what a memory says: "contradicted" are those whose evidence is
gone or says otherwise now, and those that share a name with another, of which only the first is found. Two memories that deny each
other in words are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ...disk.settings_files import MANAGED_PATH
from .examination import examine

DUPLICATES = frozenset({"identical", "same-body", "near-duplicate"})
DEAD_POINTERS = frozenset({"dead-pointer", "leads-out"})
STALE = frozenset({"stale-evidence", "relative-date"})
CONTRADICTED = frozenset({"stale-evidence", "same-name"})


class Pollution(msgspec.Struct, frozen=True):
    """`topics`: memories that were read. A memory may count in more than one figure, and in each once."""

    topics: int = 0
    duplicates: int = 0
    dead_pointers: int = 0
    stale: int = 0
    contradicted: int = 0

    def to_json(self) -> dict[str, int]:
        built: dict[str, int] = msgspec.to_builtins(self)
        return built

    def lines(self) -> list[str]:
        if not self.topics:
            return []
        held = "1 memory" if self.topics == 1 else f"{self.topics:,} memories"
        return [
            f"Memory of this directory: {held}; {self.duplicates} duplicates, {self.dead_pointers} dead pointers, "
            f"{self.stale} stale, {self.contradicted} contradicted (lamina doctor names them)"
        ]


def pollution(*, cwd: Path, environ: Mapping[str, str], now: float, managed: str | Path = MANAGED_PATH) -> Pollution:
    report = examine(cwd=cwd, environ=environ, now=now, managed=managed, memory_only=True)

    def files(kinds: frozenset[str]) -> int:
        return len({found.file for found in report.findings if found.kind in kinds})

    pointers = len({(found.file, found.line) for found in report.findings if found.kind in DEAD_POINTERS})
    return Pollution(report.topics, files(DUPLICATES), pointers, files(STALE), files(CONTRADICTED))
