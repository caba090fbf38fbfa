"""The memory library: list, search and read a project's memories.

It joins the private scope and the team scope: the file of a team topic begins with `team/`, wherever the team directory is.
It only reads, and loads no code that writing needs, because recall runs before the user's first message is sent. Invariants:
a scope whose mode is off is empty here; a second look at unchanged memories reads no file again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias, TypeVar

import msgspec

from ...core.errors import DiskError, EncoderUnavailable
from ...core.settings import Mode, Settings
from ...disk.trees.rootdir import RootDir
from ...language.invisible import remove_invisible
from ...language.terms import sought
from ..store.contract import MemoryVersion
from ..store.evidence import Freshness, check_evidence, read_evidence
from ..store.scopes import TEAM, MemoryLocation
from ..store.topic import Topic, evidence_of
from ..store.topic_files import LARGE, TopicFiles, TopicHeader, sort_newest_first
from .fusion import DEPTH, SimilarMemory, fuse
from .rank import Corpus, Ranked, SearchDocument, explain, rank_indexed

if TYPE_CHECKING:  # loaded only for a large directory, or if the settings ask for vectors
    from ..store.search_index import SearchIndex
    from .vectors import VectorTables

ScopeName: TypeAlias = Literal["private", "team"]

# The weight of a stale memory's score: it can still win if nothing else fits nearly as well.
STALE_SHARE = 0.5
# Stale memories move back, so a few more are read than requested.
SPARE = 5
# Bodies are read for the newest memories up to this number; for older ones only name and description are searched. This takes
# at most 160 MB.
MOST_BODIES = 10_000
_PREFIX = f"{TEAM}/"


class Recalled(NamedTuple):
    """A memory that fits a question. `age` is in seconds; `why` lists the matching terms by field."""

    topic: Topic
    score: float
    age: float
    evidence: Freshness
    why: str


class LoadedIndex(NamedTuple):
    """An index as a session receives it. `path` is for the heading."""

    path: Path
    text: str


class FoundMemories(NamedTuple):
    """The result of a search, best first, out of `total` memories. A ranked memory's `at` is its place in `found`."""

    found: list[tuple[TopicHeader, Ranked]]
    total: int


class MemoryLibrary:
    """Open it with `MemoryLibrary.open`, as a context manager; a `Memory` holds one. Not thread-safe, except for `read`."""

    __slots__ = ("_clock", "_corpus", "_scopes", "_settings", "_vectors", "place", "problem", "project")

    def __init__(
        self,
        place: MemoryLocation,
        scopes: Mapping[ScopeName, TopicFiles],
        *,
        project: Path | None,
        clock: Callable[[], float] = time.time,
        settings: Settings | None = None,
    ) -> None:
        self.place = place
        self.problem = ""  # why the last search compared words only, though the settings ask for vectors
        self._settings = settings
        self._vectors: dict[ScopeName, VectorTables] = {}
        self.project = project  # the root for checking evidence
        self._scopes = scopes
        self._clock = clock
        self._corpus: tuple[list[TopicHeader], Corpus] | None = None

    @classmethod
    def open(
        cls,
        place: MemoryLocation,
        *,
        settings: Settings,
        project: Path,
        after: MemoryLibrary | None = None,
        read_only: bool = False,
        unchanged: bool = False,
    ) -> Self:
        """Open the memories in `place` for reading; nothing is created or repaired. Raises DiskError for an unreadable
        directory.

        `after` is an earlier library, closed or not: its search data is reused if nothing has changed. `read_only` writes no
        cache either. `unchanged` says that nothing has changed since `after` listed its memories.
        """
        private, team = scope_modes(settings)
        scopes: dict[ScopeName, TopicFiles] = {}
        before = after._scopes if after is not None else {}
        try:
            if private != "off" and os.path.lexists(place.path):
                root = RootDir.open(place.path, create=False)
                scopes["private"] = TopicFiles(root, after=before.get("private"), read_only=read_only, unchanged=unchanged)
            if place.team is not None and team != "off" and place.team.is_dir():
                root = RootDir.open(place.team, create=False, shared=True)
                scopes["team"] = TopicFiles(root, after=before.get("team"), read_only=read_only, unchanged=unchanged)
        except DiskError:
            for files in scopes.values():
                files.root.close()
            raise
        look = cls(place, scopes, project=project, settings=settings)
        if after is not None:
            look._corpus, look._vectors = after._corpus, after._vectors
        return look

    def close(self) -> None:
        for files in self._scopes.values():
            files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def headers(self) -> list[TopicHeader]:
        """Return all memories without their bodies, newest first."""
        if [*self._scopes] == ["private"]:
            return self._scopes["private"].headers()
        return sort_newest_first([with_prefix(each, where) for where, files in self._scopes.items() for each in files.headers()])

    def indexes(self) -> list[LoadedIndex]:
        """Return the indexes a session receives: each non-empty one, within its limits. A full one tells what it leaves out."""
        from ..store.index import INDEX, is_full, load_index, note_rest, read_entries
        from ..store.index_file import IndexFile

        found: list[LoadedIndex] = []
        for files in self._scopes.values():
            text = remove_invisible(IndexFile(files.root).text())
            left = len(files.files()) - len(read_entries(text)) if text and is_full(text) else 0
            found.append(LoadedIndex(files.root.path / INDEX, note_rest(load_index(text), left)))
        return [index for index in found if index.text]

    def search(self, query: str, most: int) -> FoundMemories:
        """Return the memories that share a term with the query, best first; with vectors also those of a similar meaning. A query
        without a term, such as one emoji, means nothing that could be similar."""
        if self._settings is None or self._settings.recall_vectors == "none" or most <= 0 or not sought(query):
            return self.search_words(query, most)
        words = self.search_words(query, max(most, DEPTH))
        similar, share = self._similar(query, [header.file for header, _ in words.found])
        return FoundMemories(fuse(words.found, similar, most, share), words.total)

    def _similar(self, query: str, beside: Sequence[str]) -> tuple[dict[str, SimilarMemory], float]:
        """Return the memories closest to the query in meaning, and those `beside`, and how much that counts. Empty if there are
        no vectors."""
        found, share, self.problem = dict[str, SimilarMemory](), 0.0, ""
        try:
            for where, files in self._scopes.items():
                tables = self._tables(where)
                share = sum(each.share for each in tables.encoders)
                self._follow(files, tables)
                own = [file.removeprefix(_PREFIX) for file in beside if self._scope_of(file) == where]
                for file, cosine in tables.similarities(query, own, DEPTH).items():
                    header = with_prefix(tables.headers[file], where)
                    found[header.file] = SimilarMemory(header, cosine)
        except EncoderUnavailable as error:
            self.problem = str(error)
            return {}, 0.0
        return found, share

    def _tables(self, where: ScopeName) -> VectorTables:
        from .encoders import load_encoders
        from .vectors import VectorTables

        encoders = load_encoders(self._settings) if self._settings is not None else ()
        tables = self._vectors.get(where)
        if tables is None or [each.encoder.name for each in tables.encoders] != [each.encoder.name for each in encoders]:
            tables = self._vectors[where] = VectorTables(encoders)
        return tables

    def encode_saved(self, where: ScopeName, changed: Collection[str]) -> None:
        """Store the vectors of memories that were just saved. If this fails, the next search makes them and reports why."""
        files = self._scopes[where]
        with suppress(DiskError, EncoderUnavailable):
            self._tables(where).add(files.root, files.read_headers(changed), files.headers, partial(_texts, files))

    def _follow(self, files: TopicFiles, tables: VectorTables) -> None:
        """Bring the vectors of a scope up to date. After a few saves, only what they changed is compared."""
        texts, known, before = partial(_texts, files), tables.headers, tables.state
        if (read := files.read_index(lambda index: (index.state(), index.headers(before.last or 0)))) is None:
            tables.follow(files.root, files.headers(), texts)
        elif before != (state := read[0]):
            new = [each for each in read[1] if known.get(each.file) != each]
            replaced = sum(each.file in known for each in new)
            if state.changes - before.changes == len(new) + replaced:  # nothing else was removed
                tables.follow_new(files.root, new, texts)
            else:
                tables.follow(files.root, files.headers(), texts)
            tables.state = state

    def prepare(self) -> None:
        """Make what the first search for words needs. A large scope has its index on disk, which takes long to make: it is left alone."""
        headers = [with_prefix(each, where) for where, files in self._scopes.items() for each in files.headers()]
        if 0 < len(headers) < LARGE:
            self._searched(sort_newest_first(headers) if len(self._scopes) > 1 else headers).index(LARGE)

    def search_words(self, query: str, most: int) -> FoundMemories:
        """Return the memories that share a term with the query, best first."""
        found, total, small = list[tuple[TopicHeader, Ranked]](), 0, list[TopicHeader]()
        for where, files in self._scopes.items():
            large = self._in_index(where, query, most)
            headers = files.headers() if large is None else []
            headers = headers if where == "private" else [with_prefix(each, where) for each in headers]
            if len(headers) >= LARGE:
                large = self._in_index(where, query, most, create=True)
            if large is None:
                small += headers
            else:
                found, total = found + large.found, total + large.total
        if small:
            headers = sort_newest_first(small) if len(self._scopes) > 1 else small
            found += [(headers[each.at], each) for each in self._searched(headers).rank(query, most)]
        found.sort(key=lambda each: (-each[1].score, each[0].file))
        placed = [(head, Ranked(at, *each[1:])) for at, (head, each) in enumerate(found[:most])]
        return FoundMemories(placed, total + len(small))

    def _in_index(self, where: ScopeName, query: str, most: int, *, create: bool = False) -> FoundMemories | None:
        """Search the index of a large scope; None if it has none."""

        def read(index: SearchIndex) -> FoundMemories:
            found = rank_indexed(index, query, most)
            return FoundMemories([(with_prefix(header, where), each) for header, each in found], index.total())

        return self._scopes[where].read_index(read, create=create)

    def _searched(self, headers: list[TopicHeader]) -> Corpus:
        """Return the corpus of these memories; the previous one if nothing changed."""
        if self._corpus is None or self._corpus[0] != headers:
            bodies = self._bodies(headers[:MOST_BODIES])
            documents = (SearchDocument(each.file, each.name, each.description, bodies.get(each.file, "")) for each in headers)
            self._corpus = headers, Corpus(documents)
        return self._corpus[1]

    def _bodies(self, headers: list[TopicHeader]) -> dict[str, str]:
        found: dict[str, str] = {}
        for where, files in self._scopes.items():
            inside = [header for header in headers if self._scope_of(header.file) == where]
            if where == "private":
                found |= files.bodies(inside)
            else:
                own = [msgspec.structs.replace(header, file=header.file.removeprefix(_PREFIX)) for header in inside]
                found |= {_PREFIX + file: text for file, text in files.bodies(own).items()}
        return found

    def recall(self, query: str, k: int) -> list[Recalled]:
        """Return the memories that fit best, best first. One with stale evidence comes after others that fit about as well."""
        found = [self.read(header, ranked) for header, ranked in self.search(query, max(0, k) + SPARE).found]
        known = [each for each in found if each is not None]
        return sorted(known, key=lambda each: (-each.score, each.topic.file))[: max(0, k)]

    def read(self, header: TopicHeader, ranked: Ranked | None = None) -> Recalled | None:
        """Read a memory with its age and the state of its evidence; None if it no longer exists. Thread-safe."""
        where = self._scope_of(header.file)
        files = self._scopes.get(where)
        topic = files.topic(header.file.removeprefix(_PREFIX if where == "team" else "")) if files is not None else None
        if topic is None:
            return None
        evidence = check_evidence(read_evidence(evidence_of(topic)), self.project or self.place.path)
        score = ranked.score * (STALE_SHARE if evidence.state == "stale" else 1.0) if ranked is not None else 0.0
        age = max(0.0, self._clock() - topic.modified)
        return Recalled(with_prefix(topic, where), score, age, evidence, explain(ranked) if ranked is not None else "")

    def where(self, file: str) -> Path:
        """Return the full path of a topic's file in its scope."""
        if self.place.team is not None and self._scope_of(file) == "team":
            return self.place.team / file.removeprefix(_PREFIX)
        return self.place.path / file

    def _scope_of(self, file: str) -> ScopeName:
        return "team" if self.place.team is not None and file.startswith(_PREFIX) else "private"


def _texts(files: TopicFiles, headers: Sequence[TopicHeader]) -> list[str]:
    """Return what is encoded of memories: name, description and body."""
    bodies = files.read_bodies(headers)
    return [f"{header.name}\n{header.description}\n{bodies.get(header.file, '')}" for header in headers]


def scope_modes(settings: Settings) -> tuple[Mode, Mode]:
    """Return the modes of the private and the team memory."""
    modes = settings.memory_mode
    return (modes["private"], modes["team"]) if settings.memory else ("off", "off")


Prefixed = TypeVar("Prefixed", Topic, TopicHeader, MemoryVersion)


def with_prefix(found: Prefixed, where: ScopeName) -> Prefixed:
    """Return the value with the file name that callers see. No member of a team writes about the user: that type does not count there."""
    if where == "private":
        return found
    if getattr(found, "type", None) == "user":
        found = msgspec.structs.replace(found, type=None)
    return msgspec.structs.replace(found, file=f"{_PREFIX}{found.file}")
