"""`lamina.Memory`: a project's memory for people who write programs.

Owns nothing on disk itself: it finds the directories (`place`), opens their stores, applies the modes, and joins the private scope and
the team's. A team's topic has a file that begins with `team/`, wherever the team keeps its directory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from ..core.errors import DiskError, InputError, PathRefused
from ..core.settings import Mode, Settings
from ..disk.paths.memory_paths import check_root
from ..disk.settings_files import lamina_home, load_settings, user_home
from ..disk.temp_files import Durability
from .recall.library import Look, Scope, Where, shown_in
from .recall.library import Recalled as Recalled
from .store.blame import Blamed, blame
from .store.contract import Proposed, Saved, Version, Why
from .store.directory import DirectoryStore
from .store.draft import Draft
from .store.inbox import Proposal
from .store.index import INDEX, loaded
from .store.modes import GatedStore
from .store.project_identity import identify
from .store.scan import Header
from .store.scopes import TEAM, Place, memory_place, project_root
from .store.topic import Kind, Topic

# Settings that decide where memory lies and whether it is written.
_PLACING = frozenset({"autoMemoryDirectory", "teamMemoryDirectory", "lamina.remoteMemoryDirectory", "lamina.memoryMode"})


class LoadedIndex(NamedTuple):
    """An index as a session is sent it (S4). `path` is for its heading."""

    path: Path
    text: str


class Memory:
    """Open it with `Memory.open`; a context manager. Not for two threads at once."""

    __slots__ = ("_git", "_look", "_private", "_team", "notices", "place")

    def __init__(
        self,
        place: Place,
        private: GatedStore,
        team: GatedStore | None = None,
        *,
        project: Path | None = None,
        git: bool = False,
    ) -> None:
        self.place = place
        self._git = git  # whether git follows what is changed here
        self._private = private
        self._team = team
        readable = [Scope(where, self.store(where).store.shelf) for where in self._names() if self.store(where).readable]
        self._look = Look(place, readable, project=project, clock=lambda: private.store.clock())
        self.notices = tuple(notice for scope in self._scopes() for notice in scope.store.notices)

    @classmethod
    def open(
        cls,
        cwd: str | os.PathLike[str] = ".",
        *,
        path: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        settings: Settings | None = None,
    ) -> Self:
        """The memory of the project `cwd` belongs to, or the one in `path`. The directory is made if it is missing.

        Without `settings` those that hold in `cwd` are read. PathRefused for a directory that may not be used.
        """
        own = Path(home) if home is not None else None
        said: tuple[str, ...] = ()
        if settings is None:
            settings = load_settings(cwd=Path(cwd), environ=os.environ, home=own)
            # Who brings settings has seen what is wrong with them; here nobody else would say that memory lies elsewhere.
            said = tuple(finding.text for finding in settings.findings if finding.key in _PLACING)
        place = _place(cwd, path, own, settings)
        if place.said_by == "default" and (base := own or lamina_home(os.environ)) is not None:
            identify(base, cwd)
        durability: Durability = "process" if settings.durability == "process" else "full"
        modes = settings.memory_mode
        opened: list[GatedStore] = []
        try:
            private: Mode = modes["private"] if settings.memory else "off"
            opened.append(GatedStore(DirectoryStore.open(place.path, durability=durability), private))
            if place.team is not None:
                team: Mode = modes["team"] if settings.memory else "off"
                opened.append(GatedStore(DirectoryStore.open(place.team, scope="team", durability=durability), team))
        except DiskError:
            for scope in opened:
                scope.store.close()
            raise
        memory = cls(place, *opened, project=project_root(cwd), git=settings.history_git)
        memory.notices = (*said, *memory.notices)
        return memory

    @property
    def path(self) -> Path:
        return self.place.path

    def close(self) -> None:
        """Lets git follow what was changed; then nothing can be read or written any more."""
        store, git, self._git = self._private.store, self._git, False
        if git and store.history.written:
            from .store.git import follow

            follow(store.root, store.history, environ=os.environ)
        for scope in self._scopes():
            scope.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def store(self, scope: Where = "private") -> GatedStore:
        """The store of a scope under its mode: what layers that write by themselves are handed."""
        found = self._private if scope == "private" else self._team
        if found is None:
            raise InputError("scope", "there is no team memory here", "turn it on with the setting team")
        return found

    def save(
        self,
        name: str,
        *,
        type: Kind | None = None,
        description: str = "",
        body: str = "",
        evidence: Sequence[str] = (),
        modified: float | None = None,
        scope: Where = "private",
        why: Why | None = None,
    ) -> Saved | Proposed:
        """Saves or updates a memory. Without `why` it is the person's own doing; `modified` dates what was made elsewhere."""
        draft = Draft(name, type, description, body, tuple(evidence), modified)
        done = self.store(scope).save(draft, why=why or Why("user"))
        return done._replace(topic=shown_in(done.topic, scope)) if isinstance(done, Saved) else done

    def get(self, name: str) -> Topic | None:
        """By name or file; the private one where both scopes have it."""
        for scope, asked in self._asked(name):
            if (topic := self.store(scope).get(asked)) is not None:
                return shown_in(topic, scope)
        return None

    def topics(self) -> list[Topic]:
        return [shown_in(topic, scope) for scope in self._names() for topic in self.store(scope).topics()]

    def headers(self) -> list[Header]:
        """All memories without their bodies, the newest first (S11)."""
        return self._look.headers()

    def recall(self, query: str, k: int = 5) -> list[Recalled]:
        """The memories that fit best, best first, each with its age and what the project says of its evidence (B8).

        By a local ranker: no model is asked. A memory whose evidence is stale comes behind others that fit about as well.
        """
        return self._look.recall(query, k)

    def where(self, file: str) -> Path:
        """The full path of a topic's file, wherever its scope lies."""
        return self._look.where(file)

    def forget(self, name: str, *, why: Why | None = None) -> bool:
        """To the trash, from where `restore` brings it back; False when nothing was removed."""
        return any(self.store(scope).remove(asked, why=why or Why("user")) for scope, asked in self._asked(name))

    def index(self, scope: Where = "private") -> str:
        return self.store(scope).index()

    def indexes(self) -> list[LoadedIndex]:
        """What a session is sent: each index that holds something, within its limits."""
        found = [LoadedIndex(scope.store.root.path / INDEX, loaded(scope.index())) for scope in self._scopes()]
        return [index for index in found if index.text]

    def log(self, name: str | None = None) -> list[Version]:
        """The changes, newest first."""
        scopes = self._asked(name) if name is not None else [(scope, None) for scope in self._names()]
        found = [version for scope, asked in scopes for version in _versions(self.store(scope).log(asked), scope)]
        return sorted(found, key=lambda version: -version.time)

    def content(self, version_id: str) -> str | None:
        found = (scope.content(version_id) for scope in self._scopes())
        return next((text for text in found if text is not None), None)

    def diff(self, version_id: str) -> str:
        """What one change did, as a unified diff."""
        found = (scope.store.history.diff(version_id) for scope in self._scopes() if scope.readable)
        return next(filter(None, found), "")

    def blame(self, name: str) -> list[Blamed]:
        """The lines of a memory, each with the change it comes from; empty when there is no such memory."""
        for scope, asked in self._asked(name):
            store = self.store(scope)
            found = store.store.raw(asked) if store.readable else None
            if found is not None:
                return blame(store.store.history.versions(found.file), found.data.decode("utf-8", "replace"))
        return []

    def restore(self, name: str, version_id: str | None = None, *, why: Why | None = None) -> Topic:
        """Brings back what was removed, or an older version, byte for byte."""
        asked = self._asked(name)
        scope, known = next(((scope, known) for scope, known in asked if self.store(scope).log(known)), asked[0])
        return shown_in(self.store(scope).restore(known, version_id, why=why or Why("user")), scope)

    # Proposals

    def waiting(self) -> list[Proposal]:
        return [proposal for scope in self._scopes() for proposal in scope.inbox.waiting()]

    def accept(self, proposal_id: str) -> Saved | bool:
        having = (scope for scope in self._scopes() if any(each.id == proposal_id for each in scope.inbox.waiting()))
        return next(having, self._private).accept(proposal_id)

    def reject(self, proposal_id: str) -> bool:
        return any(scope.inbox.reject(proposal_id) for scope in self._scopes())

    def _scopes(self) -> list[GatedStore]:
        return [self._private] if self._team is None else [self._private, self._team]

    def _names(self) -> list[Where]:
        return ["private"] if self._team is None else ["private", "team"]

    def _asked(self, name: str) -> list[tuple[Where, str]]:
        """Which scopes a name may be in, and how it is called there."""
        if name.startswith(f"{TEAM}/") and self._team is not None:
            return [("team", name.removeprefix(f"{TEAM}/"))]
        return [(scope, name) for scope in self._names()]


def _place(cwd: str | os.PathLike[str], path: str | os.PathLike[str] | None, home: Path | None, settings: Settings) -> Place:
    own, person = home or lamina_home(os.environ), user_home(os.environ)
    if path is not None:
        checked = check_root(os.path.abspath(path), home=person or own or os.path.expanduser("~"))
        return Place(checked, checked / TEAM if settings.team else None, "argument")
    if own is None:
        raise PathRefused("memory", "no home directory is known", "set LAMINA_HOME or give a path")
    return memory_place(cwd=cwd, home=own, settings=settings, user_home=person or own)


def _versions(found: Sequence[Version], scope: Where) -> list[Version]:
    return [*found] if scope == "private" else [msgspec.structs.replace(each, file=f"{TEAM}/{each.file}") for each in found]
