"""Finds the pairs of memories that look alike or contradict each other. A large memory is compared in a thread, and the page follows it.

Invariants: every memory is compared, however many there are. A pair is shown only while both its files are as they were compared. Pairs
that were found stay until the next comparison is done, so a decision about one pair does not hide the others.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from ..core.errors import LaminaError
from ..memory.store.distinct import are_distinct, read_distinct
from ..memory.store.topic import Topic
from ..memory.store.topic_files import TopicHeader
from .memory_index import MemoryIndex
from .memory_places import Place
from .views_made import Stopped

MOST_PAIRS = 50
# A view waits this many seconds for the comparison of so few memories. Of more, the event stream tells when they are compared.
PATIENCE = 0.1
FEW = 100


class Pair(NamedTuple):
    place: Place
    left: Topic
    right: Topic
    digests: tuple[str, str]
    contradictions: tuple[tuple[str, str], ...]


class FoundPair(NamedTuple):
    """The files of a pair, and the sentences that may contradict each other."""

    left: str
    right: str
    contradictions: tuple[tuple[str, str], ...]


class ComparedMemory(NamedTuple):
    """The result of a comparison, with the heads of the files as they were compared."""

    heads: dict[str, TopicHeader]
    pairs: tuple[FoundPair, ...]


class LookedPairs(NamedTuple):
    """The pairs to show, out of `found`. `comparing` is the number of memories that are being compared now."""

    pairs: list[Pair]
    found: int
    comparing: int


class PairSearch:
    def __init__(self, index: MemoryIndex) -> None:
        self._index = index
        self._lock = threading.Lock()
        self._compared: dict[str, ComparedMemory] = {}
        self._running: dict[str, threading.Event] = {}
        self._turn = threading.Lock()  # one comparison at a time
        self._ended = 0

    def state(self) -> object:
        """Return what changes when a comparison has ended."""
        return self._ended

    def look(self, places: Iterable[Place]) -> LookedPairs:
        """Return the pairs of places, and compare the memories of those that changed since the last time."""
        heads = {place.id: {one.file: one for one in self._index.headers(place)} for place in places if place.own}
        self._compare([place for place in places if len(heads.get(place.id, ())) > 1], heads)
        found = [(place, one) for place in places for one in self._current(place, heads.get(place.id, {}))]
        pairs = [pair for place, one in found[:MOST_PAIRS] if (pair := self._pair(place, one)) is not None]
        return LookedPairs(pairs, len(found), sum(len(heads[id]) for id in [*self._running] if id in heads))

    def _compare(self, places: list[Place], heads: dict[str, dict[str, TopicHeader]]) -> None:
        """Have the places that changed compared, each in a thread, and wait a moment for them."""
        asked = list[threading.Event]()
        for place in places:
            known = self._compared.get(place.id)
            if known is None or known.heads != heads[place.id]:
                started = self._start(place, heads[place.id])
                asked += [started] if len(heads[place.id]) <= FEW else []
        until = time.monotonic() + PATIENCE
        for done in asked:
            done.wait(max(0.0, until - time.monotonic()))

    def _start(self, place: Place, heads: dict[str, TopicHeader]) -> threading.Event:
        """Start a comparison, unless one runs already; return what is set when it has ended."""
        with self._lock:
            if (running := self._running.get(place.id)) is not None:
                return running
            done = self._running[place.id] = threading.Event()
        threading.Thread(target=self._run, args=(place, heads, done), name="lamina-duplicates", daemon=True).start()
        return done

    def _run(self, place: Place, heads: dict[str, TopicHeader], done: threading.Event) -> None:
        try:
            with self._turn, suppress(LaminaError, OSError, Stopped), self._index.gated(place) as gated:
                pause = self._index.pause if len(heads) > FEW else lambda: None  # a view waits for few
                pause()
                self._compared[place.id] = ComparedMemory(heads, find_pairs(gated.store.topics(), pause))
        finally:
            with self._lock:
                del self._running[place.id]
                self._ended += 1
            done.set()

    def _current(self, place: Place, heads: dict[str, TopicHeader]) -> list[FoundPair]:
        """Return the pairs whose files are as they were compared, without those that the user called distinct."""
        known = self._compared.get(place.id)
        pairs = [one for one in known.pairs if _is_current(one, known.heads, heads)] if known is not None else []
        if not pairs:
            return []
        with self._index.gated(place) as gated:
            store = gated.store
            return [one for one in pairs if not are_distinct(store, one.left, one.right)] if read_distinct(store.root) else pairs

    def _pair(self, place: Place, one: FoundPair) -> Pair | None:
        left, right = (self._index.one(place, file) for file in (one.left, one.right))
        if left is None or right is None:
            return None
        return Pair(place, left.topic, right.topic, (left.digest, right.digest), one.contradictions)


def find_pairs(topics: list[Topic], pause: Callable[[], None]) -> tuple[FoundPair, ...]:
    """Return the pairs that look alike, then those that only contradict each other. `pause` is called before each memory."""
    from ..layers.l6_dream.tidy import find_similar_pairs
    from ..memory.guard.contradictions import find_contradictions  # it compiles the patterns of dates in all languages

    found = dict[tuple[str, str], list[tuple[str, str]]]()
    for pair in find_similar_pairs(topics, pause):
        found.setdefault((topics[min(pair)].file, topics[max(pair)].file), [])
    at = {topic.file: place for place, topic in enumerate(topics)}
    for clash in find_contradictions(topics, pause=pause):
        first, second = sorted((clash.old.topic.file, clash.new.topic.file), key=at.__getitem__)
        found.setdefault((first, second), []).append((clash.old.text, clash.new.text))
    return tuple(FoundPair(left, right, tuple(clashes)) for (left, right), clashes in found.items())


def _is_current(pair: FoundPair, compared: dict[str, TopicHeader], now: dict[str, TopicHeader]) -> bool:
    return all(now.get(file) == compared.get(file) for file in (pair.left, pair.right))
