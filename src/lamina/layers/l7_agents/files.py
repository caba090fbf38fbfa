"""Where agent types lie: `.claude/agents/*.md` of the working directory, and `agents/*.md` of the person's own home.

Of two types with one name the project's is taken, as Claude Code does, and a file's before ours. Invariants: whatever lies there, a
session starts: a file that can't be used is one sentence; in a project no link is followed, and what is read is bounded in number
and size.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from ...prompt.reading import Unusable, read_text
from .kinds import Kind, Source, general, read_kind

PROJECT = Path(".claude") / "agents"
USER = "agents"
SUFFIX = ".md"
# As many as are looked at when a person is asked to trust a working tree; more are a mistake or an attack.
MOST_ENTRIES = 200
# Each stands in a description that every request carries.
MOST_KINDS = 50
# A system prompt of 16,000 tokens.
MOST_BYTES = 64 << 10


class Catalog(msgspec.Struct, frozen=True):
    kinds: tuple[Kind, ...]  # ours first, then by name
    notices: tuple[str, ...] = ()

    def find(self, name: str) -> Kind | None:
        return next((kind for kind in self.kinds if kind.name == name), None)

    @property
    def own(self) -> tuple[Kind, ...]:
        """Those somebody wrote."""
        return tuple(kind for kind in self.kinds if kind.source != "built-in")


def load_kinds(cwd: Path, home: Path | None) -> Catalog:
    found = {general().name: general()}
    notices: list[str] = []
    places: list[tuple[Source, Path]] = [("user", home / USER)] if home is not None else []
    for source, directory in (*places, ("project", cwd / PROJECT)):
        here: dict[str, Kind] = {}
        for kind in _kinds_in(directory, source, cwd, notices):
            if kind.name in here:
                notices.append(f"{kind.path}: another file beside it is called {kind.name} too; this one is not used.")
            else:
                here[kind.name] = kind
        found |= here
    ours, rest = found.pop(general().name), sorted(found.values(), key=lambda kind: kind.name)
    if len(rest) > MOST_KINDS:
        notices.append(f"There are {len(rest)} agent types; the first {MOST_KINDS} by name are used.")
    return Catalog((ours, *rest[:MOST_KINDS]), tuple(notices))


def _kinds_in(directory: Path, source: Source, cwd: Path, notices: list[str]) -> Iterator[Kind]:
    for path in _files(directory, source, cwd, notices):
        text = read_text(path if source == "project" else Path(os.path.realpath(path)), most=MOST_BYTES)
        if text is None:
            continue
        if isinstance(text, Unusable):
            notices.append(f"{path} is no agent type: it {text.problem}.")
            continue
        read = read_kind(text.text, source=source, path=str(path))
        if read.ignored:
            notices.append(f"{path}: {read.ignored}.")
        if read.kind is None:
            notices.append(f"{path} is no agent type: {read.problem}.")
        else:
            yield read.kind


def _files(directory: Path, source: Source, cwd: Path, notices: list[str]) -> list[Path]:
    """Sorted by name, so that every file system gives the same order."""
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in islice(entries, MOST_ENTRIES) if entry.name.endswith(SUFFIX))
    except (OSError, ValueError):
        return []
    if names and source == "project" and not _inside(directory, cwd):
        notices.append(f"{directory} leads out of the project, so no agent type is taken from there.")
        return []
    return [directory / name for name in names]


def _inside(directory: Path, cwd: Path) -> bool:
    return Path(os.path.realpath(directory)).is_relative_to(os.path.realpath(cwd))
