"""The memories of all places as the page shows them: their heads, texts, evidence, and what a search finds.

The files of a place are looked at when one of its directories has changed, as it does whenever a file is made, replaced, renamed or
removed. What another program writes into a file in place is looked for in a thread, a moment after a view; `state` then changes, and the
page shows itself again. The same thread looks at all places for the first time, makes ready what the next views need, place by place, and
lets every view pass before each step.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple

import msgspec

from ..core.errors import LaminaError
from ..history.memories import MOST_BYTES
from ..history.recalls import Recalls
from ..memory.recall.library import MemoryLibrary, Recalled, scope_modes
from ..memory.recall.rank import Ranked
from ..memory.store.contract import MOST_READ
from ..memory.store.directory import DirectoryStore
from ..memory.store.evidence import Evidence, Freshness, check_each, check_evidence, read_evidence
from ..memory.store.history import HISTORY_DIRECTORY
from ..memory.store.journal import digest_of
from ..memory.store.scopes import INBOX, TEAM
from ..memory.store.topic import Topic, evidence_of, read_topic
from ..memory.store.topic_files import HEAD_BYTES, TopicHeader, decode_text
from .codex_memories import CodexMemories
from .memory_history import MemoryHistories, author_of
from .memory_places import MemoryPlaces, Place
from .memory_stores import TEAM_PREFIX, mtime, size_of
from .views_made import Stopped, ViewsMade, Work

# Seconds after which a view has files looked at for changes in place, and until that look: the view comes first.
LOOK_AGAIN = 2.0
LOOK_AFTER = 1.0
# What changed less than this before a look may change again unnoticed: file systems count time in ticks. A view looks again at files that
# are so new. A directory alone is looked at again in the background: the first look writes a cache there.
SETTLED_NS = 2_000_000_000
# Seconds that the state of evidence is kept: filters and their counts ask for it, and it reads the files that memories rely on.
EVIDENCE_FRESH = 5.0


class Card(NamedTuple):
    place: Place
    header: TopicHeader


class FoundCard(NamedTuple):
    """A memory that matches a search. `terms` are the matching words in name, description and text; `clear` if recall would choose it."""

    card: Card
    score: float
    terms: tuple[tuple[str, ...], ...]
    clear: bool


class PlaceCounts(NamedTuple):
    """How many memories of a place have each type and each author, and how many were never recalled."""

    kinds: Counter[str]
    authors: Counter[str]
    never: int


class _Looked(NamedTuple):
    """The memories of a place as of a look at its files. `times` are those of its directories; None if a file is too new to rely on them.
    `settled` says that the directories are not new either."""

    at: float
    times: Any
    headers: list[TopicHeader]
    folders: frozenset[str] = frozenset()
    settled: bool = True


class OneMemory(NamedTuple):
    """A memory with the state of its evidence, and the digest of its file, which forms carry.

    `only_read` is why the store refuses to change the file: it is too large, so that only its beginning is read, or it is not text.
    """

    topic: Topic
    evidence: Freshness | None
    digest: str
    path: str
    size: int = 0  # of the file, in bytes
    only_read: Literal["", "large", "not text"] = ""


class MemoryIndex(MemoryHistories):
    def __init__(self, places: MemoryPlaces, recalls: Callable[[], Mapping[str, Recalls]], views: ViewsMade) -> None:
        super().__init__(places, recalls)
        self._views = views
        self.pause = views.pause(Work.LATER)  # called between two steps in the background
        self._read = threading.Event()  # all places have been looked at once
        self._codex = CodexMemories()
        self._libraries: dict[str, MemoryLibrary] = {}
        self._looked: dict[str, _Looked] = {}
        self._looking = threading.Lock()  # held from when a look in the background is asked for until it ends
        self._found_in_place = 0  # changes
        self._prepared: dict[str, list[TopicHeader]] = {}
        self._searchable: dict[str, list[TopicHeader]] = {}
        self.after_looks: list[Callable[[], object]] = []  # called after each look in the background
        self._merged: tuple[list[list[TopicHeader]], list[Card]] = ([], [])
        self._counts: dict[str, tuple[tuple[Any, ...], PlaceCounts]] = {}
        self._anchors: dict[str, dict[str, tuple[TopicHeader, Evidence | None]]] = {}
        self._states: dict[str, tuple[float, Mapping[str, Freshness]]] = {}

    @contextmanager
    def _reading(self, place: Place, *, unchanged: bool = True) -> Iterator[MemoryLibrary]:
        """Open a place. What it lists is that of the last look, if there was one; else, and if not `unchanged`, it looks at the files."""
        with self.lock:
            looked = self._looked.get(place.id)
            library = MemoryLibrary.open(
                self.places.location(place),
                settings=self.settings_of(place),
                project=place.project or place.path,
                after=self._libraries.get(place.id),
                read_only=self.places.read_only or not place.own,
                unchanged=unchanged and looked is not None and looked.times is not None,
            )
            with library:
                yield library
            self._libraries[place.id] = library

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
        """Return the newest memories; None until all places have been looked at once. A place that is new since then is looked at soon."""
        places = self.places.all()
        known = [place for place in places if place.id in self._looked]
        if len(known) < len(places) and self._read.is_set():
            self.look_later()
        return self.cards(known)[:count] if self._read.is_set() else None

    def headers(self, place: Place) -> list[TopicHeader]:
        """Return the memories of a place, newest first: the same list as the last time if nothing changed."""
        if place.origin == "codex":
            return self._kept_list(place, self._codex.headers(place))
        looked = self._looked.get(place.id)
        if looked is None or looked.times is None or looked.times != self._times(place, looked.folders):
            return self._look(place)
        if not looked.settled or time.monotonic() - looked.at > LOOK_AGAIN:
            self.look_later()
        return looked.headers

    def _kept_list(self, place: Place, found: list[TopicHeader]) -> list[TopicHeader]:
        looked = self._looked.get(place.id)
        if looked is None or looked.headers != found:
            looked = self._looked[place.id] = _Looked(0.0, None, found)
        return looked.headers

    def _times(self, place: Place, folders: Iterable[str]) -> Any:
        """Return what changes when a file of a place is made, replaced, renamed or removed, or its scopes are switched."""
        times = {str(top / folder): mtime(top / folder) for top in self.directories(place) for folder in folders}
        return scope_modes(self.settings_of(place)), times

    def _look(self, place: Place) -> list[TopicHeader]:
        """Look at the files of a place, and return its memories."""
        with self.lock:
            before, began = self._looked.get(place.id), time.time_ns()
            known, found = before.folders if before is not None else frozenset({""}), list[TopicHeader]()
            times = self._times(place, known)
            with self.guarded(place), self._reading(place, unchanged=False) as library:
                found += library.headers()
            folders = frozenset({"", *(header.file.rpartition("/")[0] for header in found)})
            settled = began - SETTLED_NS
            if folders - known or any(header.mtime_ns > settled for header in found):
                times = None
            if before is not None and before.headers == found:
                found = before.headers  # views know by the list whether something changed
            is_settled = times is not None and max(times[1].values(), default=0) <= settled
            self._looked[place.id] = _Looked(time.monotonic(), times, found, folders, is_settled)
            return found

    def distrust(self) -> None:
        """Look at places anew whose directories may have changed without another time. The next view shows what was changed here."""
        for id, looked in [*self._looked.items()]:
            if not looked.settled:
                self._looked[id] = looked._replace(times=None)

    def is_read(self, wait: float) -> bool:
        """Whether all places have been looked at. If not, that begins now, and is waited for so many seconds."""
        if not self._read.is_set():
            self.look_later()
            with self._views.waiting(Work.DATA):
                self._read.wait(wait)
        return self._read.is_set()

    def look_later(self) -> None:
        """Look in a moment at all files, for what was changed in place; the first time at once. No view waits for it."""
        if self._looking.acquire(blocking=False):
            timer = threading.Timer(LOOK_AFTER if self._read.is_set() else 0, self._look_again)
            timer.daemon = True
            timer.start()

    def _look_again(self) -> None:
        try:
            with suppress(Stopped):
                self._look_and_prepare()
        finally:
            self._read.set()  # what could not be read, a view tells
            self._looking.release()

    def _look_and_prepare(self) -> None:
        looked = [(place, self._look_in_background(place)) for place in self.places.all() if place.origin != "codex"]
        self._read.set()
        for work in (lambda: self.cards(self.places.all()), *self.after_looks):
            self.pause()
            with suppress(OSError, LaminaError):
                work()
        for place, found in looked:
            if self._prepared.get(place.id) is not found:
                self._prepare(place, found)

    def _look_in_background(self, place: Place) -> list[TopicHeader]:
        self._views.wait()
        before, found = self._looked.get(place.id), self._look(place)
        if before is not None and found is not before.headers:
            self._found_in_place += 1
        return found

    def _prepare(self, place: Place, headers: list[TopicHeader]) -> None:
        """Make what the next list, search and filter of a place need. A view tells what is wrong with it."""
        self._make_searchable(place, headers, self.pause)
        with suppress(LaminaError, OSError):
            self.pause()
            self.evidence_of(place)
            self.counts(place)
        self._prepared[place.id] = headers

    def is_searchable(self) -> bool:
        """Whether a search is fast: the first one reads every memory. Those of Codex have no files of their own to read."""
        return all(self._searchable.get(id) is looked.headers for id, looked in [*self._looked.items()] if looked.folders)

    def make_searchable(self) -> None:
        """Make what a search of all places needs, for a view that waits for it."""
        for place in self.places.all():
            if place.origin != "codex" and self._searchable.get(place.id) is not (found := self.headers(place)):
                self._make_searchable(place, found, self._views.pause(Work.INDEX))

    def _make_searchable(self, place: Place, headers: list[TopicHeader], pause: Callable[[], None]) -> None:
        with suppress(LaminaError, OSError):
            pause()
            with self._reading(place) as library:
                library.prepare()
        self._searchable[place.id] = headers

    def counts(self, place: Place) -> PlaceCounts:
        """Return how many memories of a place have each type and author; counted again when one of them changed."""
        headers, facts, recalls = self.headers(place), self.facts(place), self._recalls()
        known = self._counts.get(place.id)
        if known is None or any(old is not new for old, new in zip(known[0], (headers, facts, recalls), strict=True)):
            kinds: Counter[str] = Counter(header.type or "none" for header in headers)
            authors = Counter(author_of(facts, place, header.file) for header in headers)
            never = sum(not self.recalls(place, facts, header.file).times for header in headers) if place.own else 0
            known = self._counts[place.id] = ((headers, facts, recalls), PlaceCounts(kinds, authors, never))
        return known[1]

    def search(self, query: str, places: Iterable[Place], most: int) -> tuple[list[FoundCard], int]:
        """Return the memories that match, best first, and how many there are in all."""
        found, total = list[tuple[Place, TopicHeader, Ranked, bool]](), 0
        for place in places:
            with self.guarded(place):
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
            hits, total = self._codex.search(place, query, most)
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
                with self.guarded(place), self._reading(place) as library:
                    read = ((card.header.file, library.read(card.header)) for card in within)
                    found |= {(place.id, file): one for file, one in read if one is not None}
        return found

    def one(self, place: Place, file: str) -> OneMemory | None:
        """Return one memory, or None if its file does not exist."""
        if place.origin == "codex":
            section = self._codex.find(place, file)
            return OneMemory(section[0], None, "", section[1]) if section is not None else None
        with self.lock, self.stores(place) as stores:
            for prefix, store in reversed(stores):
                if file.startswith(prefix) and store.topic_files.find(file.removeprefix(prefix)) == file.removeprefix(prefix):
                    name = file.removeprefix(prefix)
                    data = store.root.read_bytes(name, MOST_BYTES)
                    topic = store.topic_files.topic(name)
                    if topic is not None and data is not None:
                        evidence, path = self._evidence(place, topic), store.root.path / name
                        named = msgspec.structs.replace(topic, file=file)
                        return OneMemory(named, evidence, digest_of(data), str(path), size_of(path), _only_read(data))
        return None

    def renamed(self, place: Place, file: str) -> str:
        """Return the file that a memory has now, if it had this one before; empty if it has none."""
        versions = self.history(place, file)
        last = versions[0][0] if versions else None
        if last is None or not last.digest:
            return ""
        prefix = TEAM_PREFIX if file.startswith(TEAM_PREFIX) and not last.file.startswith(TEAM_PREFIX) else ""
        if self.one(place, f"{prefix}{last.file}") is not None:
            return f"{prefix}{last.file}"
        # A file that was moved by hand has the same content.
        alike = (header.file for header in self.headers(place) if header.name == last.name)
        return next((one for one in alike if (found := self.one(place, one)) is not None and found.digest == last.digest), "")

    def _evidence(self, place: Place, topic: Topic) -> Freshness | None:
        named = evidence_of(topic)
        return check_evidence(read_evidence(named), place.project or place.path) if named else None

    def evidence_of(self, place: Place) -> Mapping[str, Freshness]:
        """Return the state of the evidence of all memories of a place that name some, by file. It is kept for EVIDENCE_FRESH seconds."""
        if place.origin == "codex":
            return {}
        with self.lock:
            at, known = self._states.get(place.id, (float("-inf"), {}))
            if time.monotonic() - at > EVIDENCE_FRESH:
                named = self._named_evidence(place)
                known = check_each(named, place.project or place.path)
                self._states[place.id] = (time.monotonic(), known)
            return known

    def is_evidence_known(self) -> bool:
        """Whether the evidence of all memories can be checked fast: the first check reads every memory."""
        return all(id in self._anchors for id, looked in [*self._looked.items()] if looked.folders)

    def check_all_evidence(self) -> None:
        """Check the evidence of all places, for a view that waits for it."""
        for place in self.places.all():
            self._views.wait(Work.INDEX)
            self.evidence_of(place)

    def _named_evidence(self, place: Place) -> dict[str, Evidence]:
        """Return the evidence that memories name. A second look reads only the heads of files that changed."""
        before, found = self._anchors.get(place.id, {}), dict[str, tuple[TopicHeader, Evidence | None]]()
        headers = self.headers(place)
        with self.guarded(place), self.stores(place) as stores:
            for header in headers:
                held = before.get(header.file)
                if held is None or held[0] != header:
                    prefix, store = next(one for one in reversed(stores) if header.file.startswith(one[0]))
                    held = (header, _head_evidence(store, header.file.removeprefix(prefix)))
                found[header.file] = held
        self._anchors[place.id] = found
        return {file: evidence for file, (_, evidence) in found.items() if evidence is not None}

    def state(self) -> Any:
        """Return what changes whenever a memory, its history or the inbox does."""
        return self._state("", HISTORY_DIRECTORY, INBOX, TEAM, ".dreams")

    def files_state(self) -> Any:
        """Return what changes whenever the file of a memory does."""
        return self._state("", TEAM)

    def _state(self, *names: str) -> Any:
        times = [[place.id, *(mtime(place.path / name) for name in names)] for place in self.places.all()]
        return [self._found_in_place, *times]


def _only_read(data: bytes) -> Literal["", "large", "not text"]:
    """Return why a file can't be changed, as `TopicFiles.whole` decides it."""
    if len(data) >= MOST_READ:
        return "large"
    return "" if decode_text(data).encode() == data else "not text"


def _head_evidence(store: DirectoryStore, file: str) -> Evidence | None:
    """Return the evidence in a file's head; None if it names none. Most name none, and are not parsed."""
    data = store.root.read_bytes(file, MOST_BYTES)
    if data is None or b"\nevidence:" not in data[:HEAD_BYTES]:
        return None
    named = evidence_of(read_topic(file, data.decode("utf-8", "replace"), 0))
    return read_evidence(named) if named else None
