"""The memories of all places as the page shows them: their heads, texts, evidence, authors, recalls, history, and what waits.

Invariants: reading creates, repairs and writes nothing but caches, and not even those on a read-only page or in another agent's
directory. A place that cannot be read is named in `problems` and hides no other. Libraries are not thread-safe, so one lock covers
their reading; each change opens the memory anew (`MemoryPlaces.open`). The files of a place are looked at when one of its directories
has changed, as it does whenever a file is made, replaced, renamed or removed. What another program writes into a file in place is looked
for in a thread, a moment after a view; `state` then changes, and the page shows itself again. The same thread makes ready what the next
views need, place by place, and lets every view pass before each step.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from ..core.errors import DiskError, LaminaError
from ..core.settings import Settings
from ..disk.trees.rootdir import RootDir
from ..memory.recall.library import MemoryLibrary, Recalled, scope_modes
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
from ..sources.places import NAMES, memory_files, open_plain
from ..sources.recalls import Recalls
from .memory_places import MemoryPlaces, Place, scan

T = TypeVar("T")
# Seconds after which a view has files looked at for changes in place, and until that look: the view comes first.
LOOK_AGAIN = 2.0
LOOK_AFTER = 1.0
# A directory that changed less than this before a look may change again unnoticed: file systems count time in ticks.
SETTLED_NS = 2_000_000_000
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


NO_FACTS = PlaceFacts({}, {})


class PlaceCounts(NamedTuple):
    """How many memories of a place have each type and each author, and how many were never recalled."""

    kinds: Counter[str]
    authors: Counter[str]
    never: int


class _Looked(NamedTuple):
    """The memories of a place as of a look at its files. `times` are those of its directories; None if they are too new to rely on."""

    at: float
    times: Any
    headers: list[TopicHeader]
    folders: frozenset[str] = frozenset()


class OneMemory(NamedTuple):
    """A memory with the state of its evidence, and the digest of its file, which forms carry."""

    topic: Topic
    evidence: Freshness | None
    digest: str
    path: str


class MemoryIndex:
    def __init__(
        self, places: MemoryPlaces, recalls: Callable[[], Mapping[str, Recalls]], pause: Callable[[], None] = lambda: None
    ) -> None:
        """`pause` is called between two places that are looked at in the background."""
        self.places = places
        self.pause = pause
        self._recalls = recalls
        self._lock = threading.RLock()
        self._problems: dict[str, str] = {}
        self._libraries: dict[str, MemoryLibrary] = {}
        self._looked: dict[str, _Looked] = {}
        self._looking = threading.Lock()  # held from when a look in the background is asked for until it ends
        self._found_in_place = 0  # changes
        self._prepared: dict[str, list[TopicHeader]] = {}
        self.after_looks: list[Callable[[], object]] = []  # called after each look in the background
        self._merged: tuple[list[list[TopicHeader]], list[Card]] = ([], [])
        self._counts: dict[str, tuple[tuple[Any, ...], PlaceCounts]] = {}
        self._anchors: dict[str, dict[str, tuple[TopicHeader, Evidence | None]]] = {}
        self._states: dict[str, tuple[float, Mapping[str, Freshness]]] = {}
        self._facts: dict[str, tuple[Any, PlaceFacts]] = {}
        self._sections: dict[str, tuple[Any, list[SourceMemory]]] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """The places that could not be read, each with the reason."""
        return tuple(self._problems[place.id] for place in self.places.all() if place.id in self._problems)

    @contextmanager
    def _reading(self, place: Place, *, unchanged: bool = True) -> Iterator[MemoryLibrary]:
        """Open a place. What it lists is that of the last look, if there was one; else, and if not `unchanged`, it looks at the files."""
        with self._lock:
            looked = self._looked.get(place.id)
            library = MemoryLibrary.open(
                self.places.location(place),
                settings=self._settings_of(place),
                project=place.project or place.path,
                after=self._libraries.get(place.id),
                read_only=self.places.read_only or not place.own,
                unchanged=unchanged and looked is not None and looked.times is not None,
            )
            with library:
                yield library
            self._libraries[place.id] = library

    def _settings_of(self, place: Place) -> Settings:
        return self.places.settings_of(place) if place.agent is None else Settings()

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
        listed = [(place, self.headers(place)) for place in places]
        known, cards = self._merged
        if [id(headers) for _, headers in listed] != [id(headers) for headers in known]:
            cards = [Card(place, header) for place, headers in listed for header in headers]
            cards.sort(key=lambda card: -card.header.modified)
            self._merged = ([headers for _, headers in listed], cards)
        return cards

    def newest(self, count: int) -> list[Card] | None:
        """Return the newest memories; None until all places have been looked at."""
        places = self.places.all()
        return self.cards(places)[:count] if all(place.id in self._looked for place in places) else None

    def headers(self, place: Place) -> list[TopicHeader]:
        """Return the memories of a place, newest first: the same list as the last time if nothing changed."""
        if place.origin == "codex":
            return self._codex_headers(place)
        looked = self._looked.get(place.id)
        if looked is None or looked.times is None or looked.times != self._times(place, looked.folders):
            return self._look(place)
        if time.monotonic() - looked.at > LOOK_AGAIN:
            self.look_later()
        return looked.headers

    def _codex_headers(self, place: Place) -> list[TopicHeader]:
        found = sort_newest_first([_section_header(at, one) for at, one in enumerate(self._codex(place))])
        looked = self._looked.get(place.id)
        if looked is None or looked.headers != found:
            looked = self._looked[place.id] = _Looked(0.0, None, found)
        return looked.headers

    def _times(self, place: Place, folders: Iterable[str]) -> Any:
        """Return what changes when a file of a place is made, replaced, renamed or removed, or its scopes are switched."""
        times = {str(top / folder): _mtime(top / folder) for top in self._directories(place) for folder in folders}
        return scope_modes(self._settings_of(place)), times

    def _look(self, place: Place) -> list[TopicHeader]:
        """Look at the files of a place, and return its memories."""
        with self._lock:
            before, began = self._looked.get(place.id), time.time_ns()
            known, found = before.folders if before is not None else frozenset({""}), list[TopicHeader]()
            times = self._times(place, known)
            with self._guarded(place), self._reading(place, unchanged=False) as library:
                found += library.headers()
            folders = frozenset({"", *(header.file.rpartition("/")[0] for header in found)})
            newest = max((*(header.mtime_ns for header in found), *times[1].values()), default=0)
            if newest > began - SETTLED_NS or folders - known:
                times = None
            if before is not None and before.headers == found:
                found = before.headers  # views know by the list whether something changed
            self._looked[place.id] = _Looked(time.monotonic(), times, found, folders)
            return found

    def look_later(self) -> None:
        """Look in a moment at all files, for what was changed in place. Nothing waits for it."""
        if self._looking.acquire(blocking=False):
            timer = threading.Timer(LOOK_AFTER, self._look_again)
            timer.daemon = True
            timer.start()

    def _look_again(self) -> None:
        try:
            for place in self.places.all():
                self.pause()
                before, found = self._looked.get(place.id), self._look(place) if place.origin != "codex" else None
                if before is not None and found is not None and found is not before.headers:
                    self._found_in_place += 1
                if found is not None and self._prepared.get(place.id) is not found:
                    self._prepare(place, found)
            for work in (lambda: self.cards(self.places.all()), *self.after_looks):
                self.pause()
                with suppress(OSError, LaminaError):
                    work()
        finally:
            self._looking.release()

    def _prepare(self, place: Place, headers: list[TopicHeader]) -> None:
        """Make what the next list, search and filter of a place need. A view tells what is wrong with it."""
        with suppress(LaminaError, OSError):
            self.pause()
            with self._reading(place) as library:
                library.prepare()
            self.pause()
            self.evidence_of(place)
            self.counts(place)
        self._prepared[place.id] = headers

    def counts(self, place: Place) -> PlaceCounts:
        """Return how many memories of a place have each type and author; counted again when one of them changed."""
        headers, facts, recalls = self.headers(place), self.facts(place), self._recalls()
        known = self._counts.get(place.id)
        if known is None or any(old is not new for old, new in zip(known[0], (headers, facts, recalls), strict=True)):
            kinds: Counter[str] = Counter(header.type or "none" for header in headers)
            authors = Counter(author_of(facts, Card(place, header)) for header in headers)
            never = sum(not self.recalls(place, facts, header.file).times for header in headers) if place.own else 0
            known = self._counts[place.id] = ((headers, facts, recalls), PlaceCounts(kinds, authors, never))
        return known[1]

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
        found, total = list[tuple[Place, TopicHeader, Ranked, bool]](), 0
        for place in places:
            with self._guarded(place):
                hits, count = self._search(place, query, most)
                found, total = found + hits, total + count
        found.sort(key=lambda one: -one[2].score)
        cards = [FoundCard(Card(place, header), one.score, one.found, clear) for place, header, one, clear in found[:most]]
        return cards, total

    def _search(self, place: Place, query: str, most: int) -> tuple[list[tuple[Place, TopicHeader, Ranked, bool]], int]:
        """Return the memories of a place that match, each with whether recall would choose it, and how many the place has."""
        from ..memory.recall.threshold import clear_fits

        self.headers(place)
        if place.origin == "codex":
            sections = self._codex(place)
            documents = [SearchDocument(one.path, one.name, one.description, one.body) for one in sections]
            ranked = Corpus(documents).rank(query, most)
            hits = [(_section_header(each.at, sections[each.at]), each._replace(at=at)) for at, each in enumerate(ranked)]
            total = len(sections)
        else:
            with self._reading(place) as library:
                hits, total = library.search(query, most)
        clear = {fit.ranked.at for fit in clear_fits(query, [one for _, one in hits], [head.name for head, _ in hits], total)}
        return [(place, header, one, one.at in clear) for header, one in hits], total

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
            return NO_FACTS
        state = [_state_of(path / HISTORY_DIRECTORY) for path in self._directories(place)]
        with self._lock:
            known = self._facts.get(place.id)
            if known is not None and known[0] == state:
                return known[1]
            facts = NO_FACTS
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
        times = [
            [place.id, *(_mtime(place.path / name) for name in ("", HISTORY_DIRECTORY, INBOX, TEAM, ".dreams"))]
            for place in self.places.all()
        ]
        return [self._found_in_place, *times]

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


def author_of(facts: PlaceFacts, card: Card) -> str:
    """Return who wrote a memory: one of Lamina's authors, or the name of another agent."""
    if not card.place.own:
        return NAMES[card.place.origin]
    version = facts.authors.get(card.header.file)
    return "outside" if version is None or version.why is None else version.why.who


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
