"""Who wrote each memory and how often it was recalled, its versions, what was removed, what waits for the user, and what was decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from ..disk.regular_file import list_entries
from ..history.places import NAMES
from ..history.recalls import Recalls
from ..memory.memory import RECENT_SECONDS
from ..memory.store.change_sets import ClientChange, find_client_changes
from ..memory.store.contract import MemoryVersion
from ..memory.store.directory import DirectoryStore
from ..memory.store.history import HISTORY_DIRECTORY
from ..memory.store.journal import find_trash
from ..memory.store.modes import DECIDED, Decision, Inbox, Proposal
from ..memory.store.scopes import INBOX
from ..memory.store.topic import fold_name
from ..memory.store.uses import read_uses
from .memory_places import MemoryPlaces, Place
from .memory_stores import MemoryStores, mtime

T = TypeVar("T")
# The changes that write a content, with those first that tell who wrote it: a file that was put back outside was not written there.
_OF_WRITING = {"save": 2, "outside": 1}


class PlaceFacts(NamedTuple):
    """By file: the change that wrote a memory, and how often it was recalled or read lately. `clients`: what MCP clients changed without
    approval."""

    authors: Mapping[str, MemoryVersion]
    uses: Mapping[str, int]
    clients: tuple[ClientChange, ...] = ()


NO_FACTS = PlaceFacts({}, {})


class MemoryHistories(MemoryStores):
    def __init__(self, places: MemoryPlaces, recalls: Callable[[], Mapping[str, Recalls]]) -> None:
        super().__init__(places)
        self._recalls = recalls
        self._facts: dict[str, tuple[Any, PlaceFacts]] = {}

    def facts(self, place: Place) -> PlaceFacts:
        """Return who wrote the memories of a place, and how often they were recalled; read again when its history changed."""
        if place.origin == "codex":
            return NO_FACTS
        state = [_state_of(path / HISTORY_DIRECTORY) for path in self.directories(place)]
        with self.lock:
            known = self._facts.get(place.id)
            if known is not None and known[0] == state:
                return known[1]
            facts = NO_FACTS
            with self.guarded(place), self.stores(place) as stores:
                authors, uses, clients = dict[str, MemoryVersion](), dict[str, int](), list[ClientChange]()
                for prefix, store in stores:
                    authors |= {prefix + file: version for file, version in find_writers(store.log()).items()}
                    uses |= {prefix + file: count for file, count in read_uses(store.root).items()}
                    clients += find_client_changes(store.history, 0.0)
                facts = PlaceFacts(authors, uses, tuple(clients))
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
        with self.lock, self.guarded(place), self.stores(place) as stores:
            for prefix, store in stores:
                if file.startswith(prefix):  # the last store whose prefix fits is the narrowest
                    found = store.history.versions(store.identity(file.removeprefix(prefix)))[::-1]
        return found

    def trash(self, places: Iterable[Place]) -> list[tuple[Place, MemoryVersion]]:
        """Return the removals that can be restored, newest first."""
        found = list[tuple[Place, MemoryVersion]]()
        for place in places:
            if place.own:
                with self.lock, self.guarded(place), self.stores(place) as stores:
                    for prefix, store in stores:
                        gone = find_trash(store.log())
                        found += [(place, msgspec.structs.replace(one, file=prefix + one.file)) for one in gone]
        return sorted(found, key=lambda one: -one[1].time)

    def waiting(self, places: Iterable[Place] | None = None) -> list[tuple[Place, Proposal]]:
        """Return the proposals of all places, oldest first."""
        found = self._kept_in(places, INBOX, lambda store: Inbox(store).waiting())
        return sorted(found, key=lambda one: (one[1].time, one[1].id))

    def recent(self, now: float, places: Iterable[Place] | None = None) -> list[tuple[Place, ClientChange]]:
        """Return what MCP clients changed lately without approval, newest first."""
        own = (place for place in (self.places.all() if places is None else places) if place.own)
        found = [(place, one) for place in own for one in self.facts(place).clients if one.time >= now - RECENT_SECONDS]
        return sorted(found, key=lambda each: -each[1].time)

    def decided(self, places: Iterable[Place] | None = None) -> list[tuple[Place, Decision]]:
        """Return the decisions on proposals that are kept, newest first."""
        found = self._kept_in(places, DECIDED, lambda store: Inbox(store).decided())
        return sorted(found, key=lambda one: -one[1].time)

    def _kept_in(
        self, places: Iterable[Place] | None, directory: str, read: Callable[[DirectoryStore], Iterable[T]]
    ) -> list[tuple[Place, T]]:
        """Return what is kept in a directory of each place. A place without one is not opened."""
        found = list[tuple[Place, T]]()
        for place in self.places.all() if places is None else places:
            if place.own and any(_has_files(path / directory) for path in self.directories(place)):
                with self.lock, self.guarded(place), self.stores(place) as stores:
                    found += [(place, one) for _, store in stores for one in read(store)]
        return found

    def count_waiting(self) -> int:
        return len(self.waiting())


def author_of(facts: PlaceFacts, place: Place, file: str) -> str:
    """Return who wrote a memory: one of Lamina's authors, or the name of another agent."""
    if not place.own:
        return NAMES[place.origin]
    version = facts.authors.get(file)
    return "outside" if version is None or version.why is None else version.why.who


def find_writers(log: list[MemoryVersion]) -> dict[str, MemoryVersion]:
    """Return for each file the change that wrote its memory, given all changes, newest first.

    That is the newest save of the content that the memory has now: a restore, an undo or a rename writes nothing new.
    Without a save, a change made outside counts; without that, the oldest change since which the journal knows the content.
    """
    files, contents, written = dict[str, str](), dict[str, str](), dict[str, MemoryVersion]()
    for version in log:
        memory, digest = version.memory, version.digest
        files.setdefault(version.file, memory)
        if digest and digest == contents.setdefault(memory, digest):
            known = written.setdefault(memory, version)
            if _OF_WRITING.get(version.action, 0) > _OF_WRITING.get(known.action, 0) or known.action not in _OF_WRITING:
                written[memory] = version
    return {file: written[memory] for file, memory in files.items() if memory in written}


def _state_of(directory: Path) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((entry.name, mtime(directory / entry.name)) for entry in list_entries(directory)))


def _has_files(directory: Path) -> bool:
    return any(entry.name.endswith(".json") for entry in list_entries(directory))
