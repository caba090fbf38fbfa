"""The places of memories: the directories of every project and agent type of Lamina, and those of other agents, which are only read.

Invariants: looking for places creates and writes nothing. A place opens for changes only if it is Lamina's and the page may change files.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.errors import DiskError, LaminaError
from ..core.settings import Settings
from ..disk.paths.project import slug
from ..disk.regular_file import list_entries, subdirectories
from ..disk.settings_files import settings_in_force, user_home
from ..history.places import NAMES, Origin
from ..memory.memory import Memory, open_agent_memory
from ..memory.store.project_identity import read_identity
from ..memory.store.scopes import (
    TEAM,
    AgentMemoryLocation,
    AgentScope,
    MemoryLocation,
    list_agent_roots,
    locate_agent_memory,
    locate_memory,
    project_root,
)

# Seconds that the list of places is kept, and the directories of a place: those move only with its project or the settings.
PLACES_FRESH = 2.0
LOCATIONS_FRESH = 60.0
_AGENT_SCOPES: tuple[AgentScope, ...] = ("user", "project", "local")


class Place(msgspec.Struct, frozen=True):
    """A directory of memories. `id` is used in addresses; `project` is the directory of its project, if that is known."""

    id: str
    name: str
    path: Path
    origin: Origin = "lamina"
    project: Path | None = None
    agent: AgentMemoryLocation | None = None

    @property
    def own(self) -> bool:
        return self.origin == "lamina"


class _Located(NamedTuple):
    at: float
    settings: Settings
    location: MemoryLocation


def told_apart(places: Iterable[Place]) -> Iterator[Place]:
    """Yield the places. Those that share a name get longer ones, with as many directories above as tell them apart."""
    found, groups = list(places), defaultdict[tuple[str, str], set[tuple[str, ...]]](set)
    for place in found:
        groups[place.origin, place.name].add(_parts(place))
    for place in found:
        others, depth = groups[place.origin, place.name], 1
        while len({parts[-depth:] for parts in others}) < len(others):
            depth += 1
        yield place if depth == 1 else msgspec.structs.replace(place, name="/".join(_parts(place)[-depth:]))


def _parts(place: Place) -> tuple[str, ...]:
    inside = (place.name,) if place.agent is not None or place.project is None else ()
    return (*(place.project.parts if place.project is not None else ()), *inside)


class MemoryPlaces:
    def __init__(
        self,
        *,
        cwd: Path,
        home: Path | None,
        settings: Callable[[], Settings],
        homes: Callable[[], Mapping[Origin, Path]],
        projects: Callable[[], Mapping[str, str]],
        environ: Mapping[str, str],
        read_only: bool,
    ) -> None:
        self._cwd, self._home, self._environ, self.read_only = cwd, home, environ, read_only
        self._settings, self._homes, self._projects = settings, homes, projects
        self._root = project_root(cwd)
        self._defaults = Settings()
        self._lock = threading.RLock()
        self._places: tuple[float, dict[str, Place]] = (float("-inf"), {})
        self._locations: dict[Place, _Located] = {}
        self._project_settings: dict[Path, Settings] = {}

    def all(self) -> list[Place]:
        """Return all places, those of Lamina first. The project of the working directory is there even if it has no memory yet."""
        with self._lock:
            at, known = self._places
            if time.monotonic() - at > PLACES_FRESH:
                self._root = project_root(self._cwd)
                known = {place.id: place for place in told_apart(self._find_places())}
                self._places = (time.monotonic(), known)
                self._locations = {place: one for place in known.values() if (one := self._still_located(place)) is not None}
            return list(known.values())

    def find(self, id: str) -> Place | None:
        return next((place for place in self.all() if place.id == id), None)

    def here(self) -> Place | None:
        """Return the place of the working directory's project; None if it cannot have one."""
        return next((place for place in self.all() if place.own and place.agent is None and place.project == self._root), None)

    def _find_places(self) -> Iterator[Place]:
        own_places = list(self._own_places())
        yield from own_places
        seen = {str(self._home)} if self._home is not None else set()
        if (claude := self._homes().get("claude-code")) is not None and str(claude) not in seen:
            own = {place.id: str(place.project) for place in own_places if place.agent is None and place.project is not None}
            projects = {**self._projects(), **own}
            for directory in subdirectories(claude / "projects"):
                if (directory / "memory").is_dir():
                    path = projects.get(directory.name)
                    name = os.path.basename(path) if path else directory.name
                    project = Path(path) if path else None
                    yield Place(f"claude-code.{directory.name}", name, directory / "memory", "claude-code", project)
        if (codex := self._homes().get("codex")) is not None and (codex / "memories").is_dir():
            yield Place("codex", NAMES["codex"], codex / "memories", "codex")

    def _own_places(self) -> Iterator[Place]:
        if self._home is None:
            return
        here, found = self._here(), list[Place]()
        for directory in subdirectories(self._home / "projects"):
            if (directory / "memory").is_dir():
                identity = read_identity(directory)
                path = identity.path if identity is not None else self._projects().get(directory.name, "")
                project = Path(path) if path else None
                found.append(
                    Place(directory.name, os.path.basename(path) or directory.name, directory / "memory", project=project)
                )
        if here is not None and not any(place.path == here.path for place in found):
            found.insert(0, here)
        yield from found
        yield from self._agent_places(("user",), self._cwd, "")
        for place in found:
            if place.project is not None and place.project.is_dir():
                yield from self._agent_places(("project", "local"), place.project, place.id)

    def _here(self) -> Place | None:
        root = self._root
        with suppress(LaminaError):
            location = self._located(self._cwd, self._settings())
            default = location.said_by == "default"
            return Place(slug(root) if default else "here", root.name or str(root), location.path, project=root)
        return None

    def _agent_places(self, scopes: tuple[AgentScope, ...], cwd: Path, within: str) -> Iterator[Place]:
        assert self._home is not None
        places: dict[str, Any] = {"cwd": cwd, "home": self._home, "settings": self._settings(), "user_home": self._person()}
        roots = dict(zip(_AGENT_SCOPES, list_agent_roots(**places), strict=True))
        for scope in scopes:
            for name in sorted(entry.name for entry in list_entries(roots[scope]) if entry.is_dir(follow_symlinks=False)):
                with suppress(LaminaError):
                    location = locate_agent_memory(name, scope, **places)
                    id = ".".join(part for part in ("agent", scope, name, within) if part)
                    yield Place(id, name, location.path, project=cwd if scope != "user" else None, agent=location)

    def _person(self) -> Path:
        return user_home(self._environ) or self._home or Path.home()

    def _located(self, cwd: Path, settings: Settings) -> MemoryLocation:
        return locate_memory(cwd=cwd, home=self._home or Path(), settings=settings, user_home=self._person())

    def settings_of(self, place: Place) -> Settings:
        """Return the settings in force in the project of a place; those of the page if its directory is gone."""
        if not place.own:
            return self._defaults
        project = place.project
        if project is None or project == self._root or not project.is_dir():
            return self._settings()
        with self._lock:
            known = self._project_settings.get(project)
            found = known.refreshed() if known is not None else settings_in_force(project, environ=self._environ)
            self._project_settings[project] = found
            return found

    def location(self, place: Place) -> MemoryLocation:
        """Return the directories of a place."""
        with self._lock:
            if (known := self._locations.get(place)) is None:
                settings = self.settings_of(place)
                known = self._locations[place] = _Located(time.monotonic(), settings, self._locate(place, settings))
            return known.location

    def _still_located(self, place: Place) -> _Located | None:
        """Return where a place was found, if its settings are the same and that was not long ago."""
        known = self._locations.get(place)
        fresh = known is not None and time.monotonic() - known.at < LOCATIONS_FRESH
        return known if known is not None and fresh and known.settings is self.settings_of(place) else None

    def _locate(self, place: Place, settings: Settings) -> MemoryLocation:
        if place.own and place.agent is None and place.project is not None:
            with suppress(LaminaError):
                found = self._located(place.project, settings)
                if found.path == place.path:
                    return found
        team = place.own and place.agent is None and settings.team
        return MemoryLocation(place.path, place.path / TEAM if team else None, "argument")

    @contextmanager
    def open(self, place: Place, *, create: bool = False) -> Iterator[Memory]:
        """Open a place for a change, under its modes. Only a place of Lamina is ever opened.

        Only a first memory creates the directory: one that vanished with its disk must not come back empty.
        """
        with self._open(place, create=create) as memory:
            yield memory

    def _open(self, place: Place, *, create: bool) -> Memory:
        if not place.own or self.read_only:
            raise DiskError(str(place.path), "belongs to another agent", "change it with that agent")
        if not create and not place.path.is_dir():
            raise DiskError(str(place.path), "no longer exists, so nothing was changed", "bring the directory back and try again")
        settings = self.settings_of(place)
        if place.agent is not None:
            return open_agent_memory(place.agent, settings=settings, cwd=place.project or self._cwd)
        if place.project is not None and self._locate(place, settings).said_by != "argument":  # as it is now
            return Memory.open(place.project, home=self._home, settings=settings)
        return Memory.open(place.project or place.path, path=place.path, home=self._home, settings=settings)
