"""The stores of all places of memories, opened for reading.

Invariants: reading creates, repairs and writes nothing but caches, and not even those on a read-only page or in another agent's
directory. A place that cannot be read is named in `problems` and hides no other. Stores and libraries are not thread-safe, so `lock` covers
their reading; each change opens the memory anew (`MemoryPlaces.open`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import DiskError, LaminaError
from ..core.settings import Settings
from ..disk.trees.rootdir import RootDir
from ..memory.store.directory import DirectoryStore
from ..memory.store.modes import GatedStore
from ..memory.store.scopes import TEAM
from .memory_places import MemoryPlaces, Place

TEAM_PREFIX = f"{TEAM}/"


class MemoryStores:
    def __init__(self, places: MemoryPlaces) -> None:
        self.places = places
        self.lock = threading.RLock()
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """The places that could not be read, each with the reason."""
        return tuple(self._problems[place.id] for place in self.places.all() if place.id in self._problems)

    @contextmanager
    def stores(self, place: Place) -> Iterator[list[tuple[str, DirectoryStore]]]:
        """Yield the stores of a place with the prefix of their files, for reading only: nothing is created or repaired."""
        location = self.places.location(place)
        opened = list[tuple[str, DirectoryStore]]()
        try:
            for prefix, path in (("", location.path), (TEAM_PREFIX, location.team)):
                if path is not None and path.is_dir():
                    root = RootDir.open(path, create=False, shared=bool(prefix))
                    opened.append((prefix, DirectoryStore(root, scope="team" if prefix else "private")))
                    opened[-1][1].topic_files.read_only = True
            yield opened
        finally:
            for _, store in opened:
                store.close()

    @contextmanager
    def guarded(self, place: Place) -> Iterator[None]:
        """Note a place that cannot be read, and go on without it."""
        try:
            yield
        except (LaminaError, OSError) as error:
            self._problems[place.id] = f"{place.path}: {error}"
        else:
            self._problems.pop(place.id, None)

    def settings_of(self, place: Place) -> Settings:
        return self.places.settings_of(place) if place.agent is None else Settings()

    def directories(self, place: Place) -> list[Path]:
        location = self.places.location(place)
        return [path for path in (location.path, location.team) if path is not None]

    @contextmanager
    def gated(self, place: Place) -> Iterator[GatedStore]:
        """Yield the private store of a place for reading. Raises DiskError if it cannot be read."""
        with self.stores(place) as stores:
            if not stores:
                raise DiskError(str(place.path), "does not exist yet", "save a memory first")
            yield GatedStore(stores[0][1], self.places.settings_of(place).memory_mode["private"])


def size_of(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def mtime(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
