"""The memories of all places as the page shows them: their heads, texts, evidence, authors, recalls, history, and what waits.

Invariants: reading creates, repairs and writes nothing but caches, and not even those on a read-only page or in another agent's
directory. A place that cannot be read is named in `problems` and hides no other. Libraries are not thread-safe, so one lock covers
their reading; each change opens the memory anew (`MemoryPlaces.open`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from ..core.errors import DiskError, LaminaError
from ..core.settings import Settings
from ..disk.trees.rootdir import RootDir
from ..memory.recall.library import MemoryLibrary, Recalled
from ..memory.recall.rank import Corpus, Ranked, SearchDocument
from ..memory.store.contract import MemoryVersion
from ..memory.store.decided import DECIDED, Decision, read_decisions
from ..memory.store.directory import DirectoryStore
from ..memory.store.evidence import Evidence, Freshness, check_each, check_evidence, read_evidence
from ..memory.store.history import HISTORY_DIRECTORY
from ..memory.store.journal import digest_of, find_trash
from ..memory.store.modes import INBOX, GatedStore, Inbox, Proposal
from ..memory.store.scopes import TEAM
from ..memory.store.topic import Topic, evidence_of, fold_name, read_topic
from ..memory.store.topic_files import HEAD_BYTES, TopicHeader, sort_newest_first
from ..memory.store.uses import read_uses
from ..sources.memories import MOST_BYTES, SourceMemory, read_memories
from ..sources.places import memory_files, open_plain
from ..sources.recalls import Recalls
from .memory_places import MemoryPlaces, Place, scan

T = TypeVar("T")
# Seconds that the state of evidence is kept: filters and their counts ask for it, and it reads the files that memories rely on.
EVIDENCE_FRESH = 5.0
_PREFIX = f"{TEAM}/"


class Card(NamedTuple):
    place: Place
    header: TopicHeader


class FoundCard(NamedTuple):
    """A memory that matches a search. `terms` are the matching words in name, description and text; `clear` if recall would choose it."""

    card: Card
    score: float
    terms: tuple[tuple[str, ...], ...]
    clear: bool


class PlaceFacts(NamedTuple):
    """By file: the change that wrote a memory, and how often it was recalled or read lately."""

    authors: Mapping[str, MemoryVersion]
    uses: Mapping[str, int]


class OneMemory(NamedTuple):
    """A memory with the state of its evidence, and the digest of its file, which forms carry."""

    topic: Topic
    evidence: Freshness | None
    digest: str
    path: str


class MemoryIndex:
    def __init__(self, places: MemoryPlaces, recalls: Callable[[], Mapping[str, Recalls]]) -> None:
        self.places = places
        self._recalls = recalls
        self._lock = threading.RLock()
        self._problems: dict[str, str] = {}
        self._libraries: dict[str, MemoryLibrary] = {}
        self._anchors: dict[str, dict[str, tuple[TopicHeader, Evidence | None]]] = {}
        self._states: dict[str, tuple[float, Mapping[str, Freshness]]] = {}
        self._facts: dict[str, tuple[Any, PlaceFacts]] = {}
        self._sections: dict[str, tuple[Any, list[SourceMemory]]] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """The places that could not be read, each with the reason."""
        return tuple(self._problems[place.id] for place in self.places.all() if place.id in self._problems)

    @contextmanager
    def _reading(self, place: Place) -> Iterator[MemoryLibrary]:
        with self._lock:
            settings = self.places.settings_of(place) if place.agent is None else Settings()
            project = place.project or place.path
            library = MemoryLibrary.open(
                self.places.location(place),
                settings=settings,
                project=project,
                after=self._libraries.get(place.id),
                read_only=self.places.read_only or not place.own,
            )
            with library:
                yield library
            self._libraries[place.id] = library

    @contextmanager
    def _stores(self, place: Place) -> Iterator[list[tuple[str, DirectoryStore]]]:
        """Yield the stores of a place with the prefix of their files, for reading only: nothing is created or repaired."""
        location = self.places.location(place)
        opened = list[tuple[str, DirectoryStore]]()
        try:
            for prefix, path in (("", location.path), (_PREFIX, location.team)):
                if path is not None and path.is_dir():
                    root = RootDir.open(path, create=False, shared=bool(prefix))
                    opened.append((prefix, DirectoryStore(root, scope="team" if prefix else "private")))
                    opened[-1][1].topic_files.read_only = True
            yield opened
        finally:
            for _, store in opened:
                store.close()

    def cards(self, places: Iterable[Place]) -> list[Card]:
        """Return the memories of places, newest first."""
        found = [Card(place, header) for place in places for header in self.headers(place)]
        found.sort(key=lambda card: -card.header.modified)
        return found

    def headers(self, place: Place) -> list[TopicHeader]:
        if place.origin == "codex":
            return sort_newest_first([_section_header(at, one) for at, one in enumerate(self._codex(place))])
        found = list[TopicHeader]()
        with self._guarded(place), self._reading(place) as library:
            found += library.headers()
        return found

    @contextmanager
    def _guarded(self, place: Place) -> Iterator[None]:
        """Note a place that cannot be read, and go on without it."""
        try:
            yield
        except (LaminaError, OSError) as error:
            self._problems[place.id] = f"{place.path}: {error}"
        else:
            self._problems.pop(place.id, None)

    def search(self, query: str, places: Iterable[Place], most: int) -> tuple[list[FoundCard], int]:
        """Return the memories that match, best first, and how many there are in all."""
        found, total = list[FoundCard](), 0
        for place in places:
            with self._guarded(place):
                cards, count = self._search(place, query, most)
                found, total = found + cards, total + count
        return sorted(found, key=lambda one: -one.score)[:most], total

    def _search(self, place: Place, query: str, most: int) -> tuple[list[FoundCard], int]:
        from ..memory.recall.threshold import clear_fits

        if place.origin == "codex":
            sections = self._codex(place)
            documents = [SearchDocument(one.path, one.name, one.description, one.body) for one in sections]
            ranked = Corpus(documents).rank(query, most)
            hits = [(_section_header(each.at, sections[each.at]), each) for each in ranked]
            total = len(sections)
        else:
            with self._reading(place) as library:
                result = library.search(query, most)
            hits, total = result.found, result.total
        ranks: list[Ranked] = [each._replace(at=at) for at, (_, each) in enumerate(hits)]
        clear = {fit.ranked.at for fit in clear_fits(query, ranks, [header.name for header, _ in hits], total)}
        cards = [
            FoundCard(Card(place, header), each.score, tuple(map(tuple, each.found)), at in clear)
            for at, (header, each) in enumerate(hits)
        ]
        return cards, total

    def read(self, cards: Iterable[Card]) -> dict[tuple[str, str], Recalled]:
        """Return memories with their age and evidence, by place and file. Removed ones are left out."""
        found, by_place = dict[tuple[str, str], Recalled](), dict[Place, list[Card]]()
        for card in cards:
            by_place.setdefault(card.place, []).append(card)
        for place, within in by_place.items():
            if place.origin != "codex":
                with self._guarded(place), self._reading(place) as library:
                    read = ((card.header.file, library.read(card.header)) for card in within)
                    found |= {(place.id, file): one for file, one in read if one is not None}
        return found

    def one(self, place: Place, file: str) -> OneMemory | None:
        """Return one memory, or None if its file does not exist."""
        if place.origin == "codex":
            return self._section(place, file)
        with self._lock, self._stores(place) as stores:
            for prefix, store in reversed(stores):
                if file.startswith(prefix) and store.topic_files.find(file.removeprefix(prefix)) == file.removeprefix(prefix):
                    name = file.removeprefix(prefix)
                    data = store.root.read_bytes(name, MOST_BYTES)
                    topic = store.topic_files.topic(name)
                    if topic is not None and data is not None:
                        evidence = self._evidence(place, topic)
                        return OneMemory(
                            msgspec.structs.replace(topic, file=file), evidence, digest_of(data), str(store.root.path / name)
                        )
        return None

    def _evidence(self, place: Place, topic: Topic) -> Freshness | None:
        named = evidence_of(topic)
        return check_evidence(read_evidence(named), place.project or place.path) if named else None

    def evidence_of(self, place: Place) -> Mapping[str, Freshness]:
        """Return the state of the evidence of all memories of a place that name some, by file. It is kept for EVIDENCE_FRESH seconds."""
        if place.origin == "codex":
            return {}
        with self._lock:
            at, known = self._states.get(place.id, (float("-inf"), {}))
            if time.monotonic() - at > EVIDENCE_FRESH:
                named = self._named_evidence(place)
                known = check_each(named, place.project or place.path)
                self._states[place.id] = (time.monotonic(), known)
            return known

    def _named_evidence(self, place: Place) -> dict[str, Evidence]:
        """Return the evidence that memories name. A second look reads only the heads of files that changed."""
        before, found = self._anchors.get(place.id, {}), dict[str, tuple[TopicHeader, Evidence | None]]()
        headers = self.headers(place)
        with self._guarded(place), self._stores(place) as stores:
            for header in headers:
                held = before.get(header.file)
                if held is None or held[0] != header:
                    prefix, store = next(one for one in reversed(stores) if header.file.startswith(one[0]))
                    held = (header, _head_evidence(store, header.file.removeprefix(prefix)))
                found[header.file] = held
        self._anchors[place.id] = found
        return {file: evidence for file, (_, evidence) in found.items() if evidence is not None}

    def facts(self, place: Place) -> PlaceFacts:
        """Return who wrote the memories of a place, and how often they were recalled; read again when its history changed."""
        if place.origin == "codex":
            return PlaceFacts({}, {})
        state = [_state_of(path / HISTORY_DIRECTORY) for path in self._directories(place)]
        with self._lock:
            known = self._facts.get(place.id)
            if known is not None and known[0] == state:
                return known[1]
            facts = PlaceFacts({}, {})
            with self._guarded(place), self._stores(place) as stores:
                authors, uses = dict[str, MemoryVersion](), dict[str, int]()
                for prefix, store in stores:
                    authors |= {prefix + file: version for file, version in _authors(store.log()).items()}
                    uses |= {prefix + file: count for file, count in read_uses(store.root).items()}
                facts = PlaceFacts(authors, uses)
            self._facts[place.id] = (state, facts)
            return facts

    def recalls(self, place: Place, facts: PlaceFacts, file: str) -> Recalls:
        """Return how often a memory was recalled, and when last; the time is empty if only the memory's own count knows."""
        counted = self._recalls().get(f"{place.path}/{file}")
        uses = facts.uses.get(fold_name(file), facts.uses.get(file, 0))
        return Recalls(max(counted.times, uses), counted.last) if counted is not None else Recalls(uses, "")

    def history(self, place: Place, file: str) -> list[tuple[MemoryVersion, str | None]]:
        """Return the versions of a memory with their texts, newest first."""
        if place.origin == "codex":
            return []
        found = list[tuple[MemoryVersion, str | None]]()
        with self._lock, self._guarded(place), self._stores(place) as stores:
            for prefix, store in stores:
                if file.startswith(prefix):  # the last store whose prefix fits is the narrowest
                    found = store.history.versions(store.identity(file.removeprefix(prefix)))[::-1]
        return found

    def renamed(self, place: Place, file: str) -> str:
        """Return the file that a memory has now, if it had this one before; empty if it has none."""
        versions = self.history(place, file)
        now = versions[0][0].file if versions and versions[0][0].digest else ""
        prefix = _PREFIX if file.startswith(_PREFIX) and not now.startswith(_PREFIX) else ""
        return f"{prefix}{now}" if now and self.one(place, f"{prefix}{now}") is not None else ""

    def trash(self, places: Iterable[Place]) -> list[tuple[Place, MemoryVersion]]:
        """Return the removals that can be restored, newest first."""
        found = list[tuple[Place, MemoryVersion]]()
        for place in places:
            if place.own:
                with self._lock, self._guarded(place), self._stores(place) as stores:
                    for prefix, store in stores:
                        gone = find_trash(store.log())
                        found += [(place, msgspec.structs.replace(one, file=prefix + one.file)) for one in gone]
        return sorted(found, key=lambda one: -one[1].time)

    def waiting(self, places: Iterable[Place] | None = None) -> list[tuple[Place, Proposal]]:
        """Return the proposals of all places, oldest first."""
        found = self._kept_in(places, INBOX, lambda store: Inbox(store).waiting())
        return sorted(found, key=lambda one: (one[1].time, one[1].id))

    def decided(self, places: Iterable[Place] | None = None) -> list[tuple[Place, Decision]]:
        """Return the decisions on proposals that are kept, newest first."""
        found = self._kept_in(places, DECIDED, lambda store: read_decisions(store.root))
        return sorted(found, key=lambda one: -one[1].time)

    def _kept_in(
        self, places: Iterable[Place] | None, directory: str, read: Callable[[DirectoryStore], Iterable[T]]
    ) -> list[tuple[Place, T]]:
        """Return what is kept in a directory of each place. A place without one is not opened."""
        found = list[tuple[Place, T]]()
        for place in self.places.all() if places is None else places:
            if place.own and any(_has_files(path / directory) for path in self._directories(place)):
                with self._lock, self._guarded(place), self._stores(place) as stores:
                    found += [(place, one) for _, store in stores for one in read(store)]
        return found

    def _directories(self, place: Place) -> list[Path]:
        location = self.places.location(place)
        return [path for path in (location.path, location.team) if path is not None]

    def count_waiting(self) -> int:
        return len(self.waiting())

    def state(self) -> Any:
        """Return what changes whenever a memory, its history or the inbox does."""
        return [
            [place.id, *(_mtime(place.path / name) for name in ("", HISTORY_DIRECTORY, INBOX, TEAM, ".dreams"))]
            for place in self.places.all()
        ]

    @contextmanager
    def gated(self, place: Place) -> Iterator[GatedStore]:
        """Yield the private store of a place for reading. Raises DiskError if it cannot be read."""
        with self._stores(place) as stores:
            if not stores:
                raise DiskError(str(place.path), "does not exist yet", "save a memory first")
            yield GatedStore(stores[0][1], self.places.settings_of(place).memory_mode["private"])

    # Codex

    def _codex(self, place: Place) -> list[SourceMemory]:
        found = list[SourceMemory]()
        for origin, path, _ in memory_files({"codex": place.path.parent}, []):
            with suppress(OSError), open_plain(path) as opened:
                info = os.fstat(opened.fileno())
                state = (info.st_size, info.st_mtime_ns)
                known = self._sections.get(path)
                if known is None or known[0] != state:
                    known = (state, list(read_memories(origin, path, opened.read(MOST_BYTES), info.st_mtime)))
                    self._sections[path] = known
                found += known[1]
        return found

    def _section(self, place: Place, file: str) -> OneMemory | None:
        for at, one in enumerate(self._codex(place)):
            if _section_header(at, one).file == file:
                return OneMemory(Topic(file, one.name, one.description, None, one.body, {}, one.modified), None, "", one.path)
        return None


def _section_header(at: int, one: SourceMemory) -> TopicHeader:
    return TopicHeader(f"{os.path.basename(one.path)}/{at}", one.name, one.description, None, one.modified, 0, 0, 0)


def _authors(log: list[MemoryVersion]) -> dict[str, MemoryVersion]:
    """Return for each file the change that wrote its memory: the newest save, even if the memory was restored or renamed since."""
    files, written = dict[str, str](), dict[str, MemoryVersion]()
    for version in log:
        files.setdefault(version.file, version.memory)
        if version.action in ("save", "outside"):
            written.setdefault(version.memory, version)
    return {file: written[memory] for file, memory in files.items() if memory in written}


def _head_evidence(store: DirectoryStore, file: str) -> Evidence | None:
    """Return the evidence in a file's head; None if it names none. Most name none, and are not parsed."""
    data = store.root.read_bytes(file, MOST_BYTES)
    if data is None or b"\nevidence:" not in data[:HEAD_BYTES]:
        return None
    named = evidence_of(read_topic(file, data.decode("utf-8", "replace"), 0))
    return read_evidence(named) if named else None


def _state_of(directory: Path) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((entry.name, _mtime(directory / entry.name)) for entry in scan(directory)))


def _has_files(directory: Path) -> bool:
    return any(entry.name.endswith(".json") for entry in scan(directory))


def _mtime(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
