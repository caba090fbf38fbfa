"""Where agent types lie: `.claude/agents` of the working directory and of those above it up to the top of its working tree, and `agents`
of the person's own home, each with its folders.

Of two types with one name the nearest to the working directory is taken, then the person's, as Claude Code does, and a file's before
ours. Invariants: whatever lies there, a session starts: a file that can't be used is one sentence; in a project no link is followed,
and what is read is bounded in number and size.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ...disk.home.agent_files import list_agent_files, list_agent_places
from ...prompt.safe_read import Unusable, read_text
from .types import Kind, Source, general, read_kind

USER = "agents"
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


def load_kinds(cwd: Path, home: Path | None, *, trusted: bool = False) -> Catalog:
    """`trusted`: the person trusts the working tree, so its files may turn on an agent's memory too (F2)."""
    found = {general().name: general()}
    notices: list[str] = []
    places: list[tuple[Source, Path]] = [("user", home / USER)] if home is not None else []
    places += [("project", place) for place in reversed(list_agent_places(cwd))]  # the nearest last, so that it holds
    for source, directory in places:
        here: dict[str, Kind] = {}
        for kind in _kinds_in(directory, source, notices, trusted=trusted or source == "user"):
            if kind.name in here:
                notices.append(f"{kind.path}: another file beside it is called {kind.name} too; this one is not used.")
            else:
                here[kind.name] = kind
        found |= here
    ours, rest = found.pop(general().name), sorted(found.values(), key=lambda kind: kind.name)
    if len(rest) > MOST_KINDS:
        notices.append(f"There are {len(rest)} agent types; the first {MOST_KINDS} by name are used.")
    return Catalog((ours, *rest[:MOST_KINDS]), tuple(notices))


def _kinds_in(directory: Path, source: Source, notices: list[str], *, trusted: bool) -> Iterator[Kind]:
    files = list_agent_files(directory)
    if files and source == "project" and not _stays(directory):
        notices.append(f"{directory} leads out of the project, so no agent type is taken from there.")
        return
    for path in files:
        text = read_text(path if source == "project" else Path(os.path.realpath(path)), most=MOST_BYTES)
        if text is None:
            continue
        if isinstance(text, Unusable):
            notices.append(f"{path} is no agent type: it {text.problem}.")
            continue
        read = read_kind(text.text, source=source, path=str(path), trusted=trusted)
        if read.ignored:
            notices.append(f"{path}: {read.ignored}.")
        if read.kind is None:
            notices.append(f"{path} is no agent type: {read.problem}.")
        else:
            yield read.kind


def _stays(directory: Path) -> bool:
    """Whether it lies where it says: two levels below a directory of the working tree, and no link on the way leads elsewhere."""
    tree = directory.parents[1]
    return Path(os.path.realpath(directory)) == Path(os.path.realpath(tree)) / directory.relative_to(tree)
