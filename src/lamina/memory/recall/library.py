"""A look at a project's memories: what there is, what fits a question, one of them read.

Owns the joining of the private scope and the team's: a team's topic has a file that begins with `team/`, wherever the team keeps its
directory. Reads only, and loads nothing that writing needs, since recall looks before a person's first message leaves. Invariants:
a scope whose mode is off is empty here; a look at what did not change since the one before reads no file again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Self, TypeAlias, TypeVar

import msgspec

from ...core.errors import DiskError
from ...core.settings import Mode, Settings
from ...disk.trees.rootdir import RootDir
from ..store.evidence import Freshness, check, read_evidence
from ..store.lookup import Shelf
from ..store.scan import Header, newest_first
from ..store.scopes import TEAM, Place
from ..store.topic import Topic, evidence_of
from .rank import Corpus, Document, Ranked, explained

Where: TypeAlias = Literal["private", "team"]

# What a stale memory's score counts for: it can still be the best, where nothing else fits nearly as well.
STALE_SHARE = 0.5
# Stale memories move back, so a few more are looked at than are asked for.
SPARE = 5
# Bodies are read for the newest so many memories; of older ones name and description are searched. That is 160 MB at the very most.
MOST_BODIES = 10_000
_PREFIX = f"{TEAM}/"


class Recalled(NamedTuple):
    """A memory that fits a question. `age` in seconds; `why` names the terms that fit, field by field."""

    topic: Topic
    score: float
    age: float
    evidence: Freshness
    why: str


class Scope(NamedTuple):
    where: Where
    shelf: Shelf


class Look:
    """`Look.at` opens one, a context manager; `Memory` has one of its own. Not for two threads at once, but for `read`."""

    __slots__ = ("_clock", "_corpus", "_scopes", "place", "project")

    def __init__(
        self, place: Place, scopes: Sequence[Scope], *, project: Path | None, clock: Callable[[], float] = time.time
    ) -> None:
        self.place = place
        self.project = project  # what evidence is checked against
        self._scopes = tuple(scopes)
        self._clock = clock
        self._corpus: tuple[list[Header], Corpus] | None = None

    @classmethod
    def at(cls, place: Place, *, settings: Settings, project: Path, after: Look | None = None) -> Self:
        """What is in `place` now: nothing is made or mended. DiskError for a directory that may not be read.

        `after` is an earlier look, closed or not: what it prepared for searching is used again where nothing changed since.
        """
        private, team = _modes(settings)
        scopes = list[Scope]()
        before = {scope.where: scope.shelf for scope in after._scopes} if after is not None else {}
        try:
            if private != "off" and os.path.lexists(place.path):
                scopes.append(Scope("private", Shelf(RootDir.open(place.path, create=False), after=before.get("private"))))
            if place.team is not None and team != "off" and place.team.is_dir():
                root = RootDir.open(place.team, create=False, shared=True)
                scopes.append(Scope("team", Shelf(root, after=before.get("team"))))
        except DiskError:
            for scope in scopes:
                scope.shelf.root.close()
            raise
        look = cls(place, scopes, project=project)
        look._corpus = after._corpus if after is not None else None
        return look

    def close(self) -> None:
        for scope in self._scopes:
            scope.shelf.root.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def headers(self) -> list[Header]:
        """All memories without their bodies, the newest first (S11)."""
        if [scope.where for scope in self._scopes] == ["private"]:
            return self._scopes[0].shelf.scanner.headers()
        return newest_first([shown_in(each, scope.where) for scope in self._scopes for each in scope.shelf.scanner.headers()])

    def ranked(self, headers: list[Header], query: str, most: int) -> list[tuple[Header, Ranked]]:
        """Those of the headers that share a term with the query, best first."""
        return [(headers[each.at], each) for each in self._searched(headers).rank(query, most)]

    def _searched(self, headers: list[Header]) -> Corpus:
        """The corpus of these memories; the one before where nothing changed."""
        if self._corpus is None or self._corpus[0] != headers:
            bodies = self._bodies(headers[:MOST_BODIES])
            documents = (Document(each.file, each.name, each.description, bodies.get(each.file, "")) for each in headers)
            self._corpus = headers, Corpus(documents)
        return self._corpus[1]

    def _bodies(self, headers: list[Header]) -> dict[str, str]:
        found: dict[str, str] = {}
        for scope in self._scopes:
            inside = [header for header in headers if self.scope_of(header.file) == scope.where]
            if scope.where == "private":
                found |= scope.shelf.scanner.bodies(inside)
            else:
                own = [msgspec.structs.replace(header, file=header.file.removeprefix(_PREFIX)) for header in inside]
                found |= {_PREFIX + file: text for file, text in scope.shelf.scanner.bodies(own).items()}
        return found

    def recall(self, query: str, k: int) -> list[Recalled]:
        """The memories that fit best, best first; one whose evidence is stale behind others that fit about as well (B8)."""
        found = [self.read(header, ranked) for header, ranked in self.ranked(self.headers(), query, k + SPARE)]
        known = [each for each in found if each is not None]
        return sorted(known, key=lambda each: (-each.score, each.topic.file))[: max(0, k)]

    def read(self, header: Header, ranked: Ranked | None = None) -> Recalled | None:
        """A memory with its age and what the project says of its evidence; None where it is gone. From any thread."""
        where = self.scope_of(header.file)
        shelf = next((scope.shelf for scope in self._scopes if scope.where == where), None)
        topic = shelf.topic(header.file.removeprefix(_PREFIX if where == "team" else "")) if shelf is not None else None
        if topic is None:
            return None
        evidence = check(read_evidence(list(evidence_of(topic))), self.project or self.place.path)
        score = ranked.score * (STALE_SHARE if evidence.state == "stale" else 1.0) if ranked is not None else 0.0
        age = max(0.0, self._clock() - topic.modified)
        return Recalled(shown_in(topic, where), score, age, evidence, explained(ranked) if ranked is not None else "")

    def where(self, file: str) -> Path:
        """The full path of a topic's file, wherever its scope lies."""
        if self.place.team is not None and self.scope_of(file) == "team":
            return self.place.team / file.removeprefix(_PREFIX)
        return self.place.path / file

    def scope_of(self, file: str) -> Where:
        return "team" if self.place.team is not None and file.startswith(_PREFIX) else "private"


def _modes(settings: Settings) -> tuple[Mode, Mode]:
    modes = settings.memory_mode
    return (modes["private"], modes["team"]) if settings.memory else ("off", "off")


Shown = TypeVar("Shown", Topic, Header)


def shown_in(found: Shown, where: Where) -> Shown:
    """With the file as who asks sees it."""
    return found if where == "private" else msgspec.structs.replace(found, file=f"{_PREFIX}{found.file}")
