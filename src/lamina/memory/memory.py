"""`lamina.Memory`: a project's memory as a Python API.

It finds the directories (`store.scopes`), opens their stores, applies the modes, and joins the private scope and the team
scope. The file of a team topic begins with `team/`, wherever the team directory is.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType
from typing import NamedTuple, Self, get_args

import msgspec

from ..core.errors import DiskError, InputError, PathRefused
from ..core.inputs import check_type
from ..core.settings import Finding, Mode, Scope, Settings
from ..disk.paths.memory_paths import check_root
from ..disk.regular_file import read_start
from ..disk.settings_files import checked_home, lamina_home, user_home
from ..disk.temp_files import Durability
from ..language.text import Text, message
from .recall.library import LoadedIndex, MemoryLibrary, ScopeName, scope_modes, with_prefix
from .recall.library import Recalled as Recalled
from .store.change_sets import ClientChange, SetChange, UndoneSet, find_client_changes, new_act, turn_act
from .store.contract import ChangeReason, MemoryVersion, Proposed, Saved, WriteRules
from .store.directory import DirectoryStore
from .store.draft import Draft
from .store.evidence import Freshness, check_evidence, pin_evidence, read_evidence
from .store.history import GUARD
from .store.history import HISTORY_DIRECTORY as HISTORY
from .store.journal import BlamedLine, blame, digest_of
from .store.modes import GatedStore, Proposal
from .store.project_identity import identify
from .store.scopes import INBOX, TEAM, AgentMemoryLocation, AgentScope, MemoryLocation, StrPath, locate_memory, project_root
from .store.topic import Kind, Topic, evidence_of, read_topic, write_topic
from .store.topic_files import TopicHeader, changed_meanwhile

SCOPES: Mapping[AgentScope, Scope] = {"user": "agentUser", "project": "agentProject", "local": "agentLocal"}
IGNORED = ".gitignore"
# A project's memories are committed; its history, pending proposals and locks stay on this machine.
_KEPT_OUT: Mapping[AgentScope, bytes] = {
    "project": f"# Lamina: memories are shared, their history is not.\n{HISTORY}/\n{INBOX}/\n{GUARD}\n{IGNORED}\n".encode(),
    "local": b"# Lamina: this machine's alone.\n*\n",
}
# Settings that decide where memory is stored and whether it is written.
_PLACING = frozenset({"autoMemoryDirectory", "teamMemoryDirectory", "lamina.remoteMemoryDirectory", "lamina.memoryMode"})
# The instruction files that most agents read, and far more than one of them contains.
INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
MOST_INSTRUCTIONS = 256 << 10
# Two weeks: a user who looks at the inbox now and then sees every change of a client.
RECENT_SECONDS = 14 * 86_400.0


class Merged(NamedTuple):
    """The result of a merge. `unfinished` is why the index may lack the new line; `redacted` lists the kinds of removed secrets."""

    topic: Topic
    act: str
    unfinished: str = ""
    redacted: tuple[str, ...] = ()


class Memory:
    """A project's memory. Open it with `Memory.open`, as a context manager. Not thread-safe."""

    __slots__ = ("_library", "_stores", "notices", "place")

    def __init__(
        self,
        place: MemoryLocation,
        stores: Mapping[ScopeName, GatedStore],
        *,
        project: Path | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.place = place
        self._stores = stores
        readable = {scope: gated.store.topic_files for scope, gated in stores.items() if gated.readable}
        self._library = MemoryLibrary(
            place, readable, project=project, clock=lambda: stores["private"].store.clock(), settings=settings
        )
        self.notices = tuple(notice for gated in stores.values() for notice in gated.store.notices)
        # A save never waits for a server: its vectors are made by the next search.
        if settings is not None and settings.recall_vectors in ("static", "encoder"):
            for scope in readable:
                stores[scope].store.after_change = partial(self._library.encode_saved, scope)

    @classmethod
    def open(
        cls,
        cwd: StrPath = ".",
        *,
        path: StrPath | None = None,
        home: StrPath | None = None,
        settings: Settings | None = None,
        read_only: bool = False,
    ) -> Self:
        """Open the memory of the project that `cwd` belongs to, or the one in `path`. The directory is created if missing.

        Without `settings`, the settings for `cwd` are loaded. With `read_only`, nothing is created or repaired, and writes are refused.
        Raises PathRefused for a directory that may not be used.
        """
        check_type("cwd", cwd, str, os.PathLike)
        check_type("path", path, str, os.PathLike, NoneType)
        check_type("home", home, str, os.PathLike, NoneType)
        own = checked_home(home) if home is not None else None
        # A caller that passes settings has seen their findings; otherwise nothing would report that memory is stored elsewhere.
        reported = settings is not None
        settings = Settings.given_or_loaded(settings, cwd, home=own)
        found = () if reported else tuple(finding.text for finding in settings.findings if _tells_place(finding))
        place = _place(cwd, path, own, settings)
        if not read_only and place.said_by == "default" and (base := own or lamina_home(os.environ)) is not None:
            identify(base, cwd)
        private, team = scope_modes(settings)
        opened: dict[ScopeName, GatedStore] = {}
        try:
            rules = _rules(settings, cwd)
            opened["private"] = _gated(place.path, "private", private, settings, rules, read_only)
            if place.team is not None:
                opened["team"] = _gated(place.team, "team", team, settings, rules, read_only)
        except DiskError:
            for gated in opened.values():
                gated.store.close()
            raise
        memory = cls(place, opened, project=project_root(cwd), settings=settings)
        memory.notices = (*found, *memory.notices)
        return memory

    @property
    def path(self) -> Path:
        """The directory of the private memories."""
        return self.place.path

    def close(self) -> None:
        """Close the stores. Nothing can be read or written afterwards."""
        for scope in self._stores.values():
            scope.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def store(self, scope: ScopeName = "private") -> GatedStore:
        """Return the store of a scope under its mode, for layers that write on their own."""
        check_type("scope", scope, str)
        if (found := self._stores.get(scope)) is None:
            if scope not in get_args(ScopeName):
                raise InputError("scope", Text("unknown scope {scope!r}", scope=scope), f"use {' or '.join(get_args(ScopeName))}")
            raise InputError("scope", "team memory is off", "enable it with the setting team")
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
        scope: ScopeName = "private",
        why: ChangeReason | None = None,
        base: str | None = None,
    ) -> Saved | Proposed:
        """Save or update a memory. Without `why` the user counts as its author. `modified` dates a memory created elsewhere.

        With `base`, the memory is saved only if its file still has that digest (`digest`); an empty one means a new memory.
        """
        for argument, text in (("name", name), ("description", description), ("body", body)):
            check_type(argument, text, str)
        check_type("modified", modified, int, float, NoneType, words="a number")
        reason = _reason(why)
        if name.strip() and not description.strip() and not body.strip():
            raise InputError(name.strip(), "has neither a description nor a text", "pass one of them")
        draft = Draft(name, type, description, body, self.pin(evidence), modified)
        done = self.store(scope).save(draft, why=reason, base=base)
        return done._replace(topic=with_prefix(done.topic, scope)) if isinstance(done, Saved) else done

    def put(self, file: str, text: str, *, expected: bytes | None, why: ChangeReason | None = None) -> Saved | Proposed:
        """Write the whole text of a memory's file; another `name` in it renames the memory.

        `expected` is the file as the writer knows it. Raises DiskError if it was changed since.
        """
        scope, asked = self._asked(file)[0]
        done = self.store(scope).put(asked, self.pin_text(asked, text), expected=expected, why=_reason(why))
        return done._replace(topic=with_prefix(done.topic, scope)) if isinstance(done, Saved) else done

    def pin_text(self, file: str, text: str) -> str:
        """Return the text of a memory's file with digests of the files of the project that it relies on."""
        check_type("file", file, str)
        check_type("text", text, str)
        topic = read_topic(file, text, 0)
        named = evidence_of(topic)
        pinned = self.pin(named)
        if pinned == named or "evidence" not in topic.fields:
            return text
        fields = topic.fields | {"evidence": list(pinned)}
        return write_topic(msgspec.structs.replace(topic, fields=fields), before=text)

    def pin(self, evidence: Sequence[str]) -> tuple[str, ...]:
        """Return evidence with the digests that the files of the project have now."""
        check_type("evidence", evidence, list, tuple, words="a list of paths")
        for path in evidence:
            check_type("evidence", path, str, words="a list of paths")
        return pin_evidence(evidence, self._library.project or self.path)

    def evidence(self, topic: Topic) -> Freshness | None:
        """Return whether the files that a memory relies on are unchanged; None if it names none."""
        check_type("topic", topic, Topic)
        found = evidence_of(topic)
        return check_evidence(read_evidence(found), self._library.project or self.path) if found else None

    def get(self, name: str) -> Topic | None:
        """Return a memory by name or file; the private one if both scopes have it."""
        for scope, asked in self._asked(name):
            if (topic := self.store(scope).get(asked)) is not None:
                return with_prefix(topic, scope)
        return None

    def digest(self, file: str) -> str:
        """Return the digest of a memory's file, for a change that must not overwrite a newer version; empty if there is none."""
        scope, asked = self._asked(file)[0]
        gated = self.store(scope)
        return digest_of(gated.store.topic_files.whole(asked)) if gated.readable else ""

    def topics(self) -> list[Topic]:
        """Return all memories with their text."""
        return [with_prefix(topic, scope) for scope, gated in self._stores.items() for topic in gated.topics()]

    def headers(self) -> list[TopicHeader]:
        """Return all memories without their bodies, newest first."""
        return self._library.headers()

    def recall(self, query: str, k: int = 5) -> list[Recalled]:
        """Return the memories that fit best, best first, each with its age and the state of its evidence.

        A local ranker chooses; no model is called. A memory with stale evidence comes after others that fit about as well.
        """
        check_type("query", query, str)
        check_type("k", k, int)
        found = self._library.recall(query, k)
        if self._library.problem and self._library.problem not in self.notices:
            self.notices += (self._library.problem,)
        return found

    def where(self, file: str) -> Path:
        """Return the full path of a topic's file in its scope."""
        check_type("file", file, str)
        return self._library.where(file)

    def remove(self, name: str, *, why: ChangeReason | None = None, base: str | None = None) -> bool:
        """Move a memory to the trash, from where `restore` brings it back. Return False if nothing was removed.

        With `base`, the file is removed only if it still has that digest.
        """
        reason = _reason(why)
        return any(self._remove(self.store(scope), asked, reason, base) for scope, asked in self._asked(name))

    def _remove(self, gated: GatedStore, name: str, why: ChangeReason, base: str | None) -> bool:
        if base is None:
            return gated.remove(name, why=why)
        there = gated.store.raw(name)
        if there is None or digest_of(there.data) != base:
            raise changed_meanwhile(name)
        return gated.drop(there.file, why=why, expected=there.data) is True

    def forget(self, name: str, *, why: ChangeReason | None = None) -> bool:
        """Deprecated name of `remove`: only `lamina forget` deletes for good."""
        warnings.warn("Memory.forget is now Memory.remove: it moves to the trash.", DeprecationWarning, stacklevel=2)
        return self.remove(name, why=why)

    def merge(
        self,
        name: str,
        gone: str,
        *,
        body: str,
        description: str = "",
        type: Kind | None = None,
        base: tuple[str, str] | None = None,
        why: ChangeReason | None = None,
    ) -> Merged:
        """Give a memory the text of two, and move the other one to the trash. `base` are the digests of both files as the caller
        knows them; a memory that was changed since is not overwritten. `undo(merged.act)` undoes it."""
        for argument, text in (("body", body), ("description", description)):
            check_type(argument, text, str)
        check_type("base", base, tuple, NoneType, words="the digests of both files")
        places = [scope for scope, asked in self._asked(name) if self.store(scope).get(asked) is not None]
        scope = places[0] if places else self._asked(name)[0][0]
        own, other = (next((asked for at, asked in self._asked(one) if at == scope), "") for one in (name, gone))
        if not other:
            raise InputError(gone, "is in another scope", "merge memories of one scope")
        why = _reason(why, f"merged {gone} into {name}")
        why = msgspec.structs.replace(why, act=why.act or new_act())
        kept = self.store(scope).get(own)
        evidence = evidence_of(kept) if kept is not None else ()
        draft = Draft(kept.name if kept is not None else own, type, description, body, evidence)
        done = self.store(scope).merge(draft, other, why=why, base=base)
        return Merged(with_prefix(done.topic, scope), why.act, done.unfinished, done.redacted)

    def index(self, scope: ScopeName = "private") -> str:
        """Return the content of the index, `MEMORY.md`."""
        return self.store(scope).index()

    def indexes(self) -> list[LoadedIndex]:
        """Return the indexes a session receives: each non-empty one, within its limits."""
        return self._library.indexes()

    def log(self, name: str | None = None) -> list[MemoryVersion]:
        """Return the changes, newest first."""
        scopes = self._asked(name) if name is not None else [(scope, None) for scope in self._stores]
        found = [with_prefix(version, scope) for scope, asked in scopes for version in self.store(scope).log(asked)]
        return sorted(found, key=lambda version: -version.time)

    def content(self, version_id: str) -> str | None:
        """Return the content of a memory after a change, given by its id in the log; None if the id is unknown."""
        found = (scope.content(version_id) for scope in self._stores.values())
        return next((text for text in found if text is not None), None)

    def diff(self, version_id: str) -> str:
        """Return one change as a unified diff."""
        check_type("version_id", version_id, str)
        found = (scope.store.history.diff(version_id) for scope in self._stores.values() if scope.readable)
        return next(filter(None, found), "")

    def blame(self, name: str) -> list[BlamedLine]:
        """Return the lines of a memory, each with the change it comes from; empty if the memory does not exist."""
        for scope, asked in self._asked(name):
            store = self.store(scope)
            found = store.store.raw(asked) if store.readable else None
            if found is not None:
                versions = store.store.history.versions(store.store.identity(found.file))
                return blame(versions, found.data.decode("utf-8", "replace"))
        return []

    def restore(
        self, name: str, version_id: str | None = None, *, why: ChangeReason | None = None, base: str | None = None
    ) -> Topic:
        """Restore a removed memory or an older version, byte for byte. With `base`, only if the file still has that digest."""
        asked = self._asked(name)
        scope, known = next(((scope, known) for scope, known in asked if self.store(scope).log(known)), asked[0])
        return with_prefix(self.store(scope).restore(known, version_id, why=_reason(why), base=base), scope)

    # Change sets

    def changes_for(self, session: str, messages: Collection[str]) -> list[SetChange]:
        """Return what was changed in memory for these messages of a session, by anyone, and what waits for approval."""
        acts = [turn_act(session, message) for message in messages]
        return [_with_prefix(change, scope) for scope, gated in self._stores.items() for change in gated.changes(acts)]

    def undo(self, *acts: str, why: ChangeReason | None = None, whole: bool = False) -> UndoneSet:
        """Undo change sets by their ids: a merge, a turn (`turn_act`), a dream, an approved proposal, an import or another undo.

        A memory that a set created goes to the trash, any other returns byte for byte. One that was changed since is left alone and
        named; with `whole`, nothing is done then. `redo(undone.act)` takes the undo back.
        """
        for act in acts:
            check_type("acts", act, str)
        reason = msgspec.structs.replace(_reason(why, "undid a change"), act=new_act())
        done = UndoneSet()
        for scope, gated in self._stores.items():
            if gated.readable:
                part = gated.undo(acts, why=reason, whole=whole)
                back, left = (tuple(_with_prefix(change, scope) for change in changes) for changes in (part.back, part.left))
                counts = done.withdrawn + part.withdrawn, done.waiting + part.waiting
                done = UndoneSet(part.act or done.act, (*done.back, *back), (*done.left, *left), *counts)
        return done

    def redo(self, act: str, *, why: ChangeReason | None = None) -> UndoneSet:
        """Redo what the undo with this id undid, unless one of its memories was changed since: then nothing is done."""
        return self.undo(act, why=_reason(why, "redid a change"), whole=True)

    # Proposals

    def recent_client_changes(self) -> list[ClientChange]:
        """Return what MCP clients changed without approval in the last days, newest first; `undo(*change.acts)` undoes it."""
        found = [
            each._replace(change=_with_prefix(each.change, scope))
            for scope, gated in self._stores.items()
            if gated.readable
            for each in find_client_changes(gated.store.history, gated.store.clock() - RECENT_SECONDS)
        ]
        return sorted(found, key=lambda each: -each.time)

    def waiting(self) -> list[Proposal]:
        """Return the pending changes."""
        return [proposal for scope in self._stores.values() for proposal in scope.inbox.waiting()]

    def accept(self, proposal_id: str) -> Saved | bool:
        """Apply a pending change. Raises InputError if it does not exist or the memory has changed since."""
        check_type("proposal_id", proposal_id, str)
        having = (scope for scope in self._stores.values() if any(each.id == proposal_id for each in scope.inbox.waiting()))
        return next(having, self._stores["private"]).accept(proposal_id)

    def reject(self, proposal_id: str) -> bool:
        """Reject a pending change. Return False if it does not exist."""
        check_type("proposal_id", proposal_id, str)
        return any(scope.inbox.reject(proposal_id) for scope in self._stores.values())

    def _asked(self, name: str) -> list[tuple[ScopeName, str]]:
        """Return the scopes a name may be in, with its name there."""
        check_type("name", name, str)
        if name.startswith(f"{TEAM}/") and TEAM in self._stores:
            return [("team", name.removeprefix(f"{TEAM}/"))]
        return [(scope, name) for scope in self._stores]


def _with_prefix(change: SetChange, scope: ScopeName) -> SetChange:
    return change._replace(file=f"{TEAM}/{change.file}") if scope == TEAM else change


def _tells_place(finding: Finding) -> bool:
    """Tell whether memory may be elsewhere because of a finding: a setting of its place, or a whole file, whose key is its source."""
    return finding.key in _PLACING or finding.key == finding.source


def _reason(why: ChangeReason | None, note: str = "") -> ChangeReason:
    """Return why a memory changes. Without a reason, the user changes it."""
    check_type("why", why, ChangeReason, NoneType)
    return why or ChangeReason("user", note)


def _place(cwd: StrPath, path: StrPath | None, home: Path | None, settings: Settings) -> MemoryLocation:
    own, person = home or lamina_home(os.environ), user_home(os.environ)
    if path is not None:
        checked = check_root(os.path.abspath(path), home=person or own or os.path.expanduser("~"))
        return MemoryLocation(checked, checked / TEAM if settings.team else None, "argument")
    if own is None:
        raise PathRefused("memory", "the home directory is unknown", "set LAMINA_HOME or give a path")
    return locate_memory(cwd=cwd, home=own, settings=settings, user_home=person or own)


def _durability(settings: Settings) -> Durability:
    return "process" if settings.durability == "process" else "full"


def _rules(settings: Settings, cwd: StrPath) -> WriteRules:
    return WriteRules(settings.mcp_writes == "wait", settings.keep_architecture, partial(_read_instructions, cwd))


def _read_instructions(cwd: StrPath) -> list[str]:
    """Return the project's own instruction files, as far as they can be read."""
    starts = (read_start(project_root(cwd) / name, MOST_INSTRUCTIONS) for name in INSTRUCTION_FILES)
    return [start.decode("utf-8", "replace") for start in starts if start]


# The memory of an agent type


def agent_memory_mode(scope: AgentScope | None, settings: Settings) -> Mode:
    """Return the mode of an agent type's memory; off for a type without one."""
    return settings.memory_mode[SCOPES[scope]] if scope is not None and settings.memory else "off"


def _gated(path: Path, scope: ScopeName, mode: Mode, settings: Settings, rules: WriteRules, read_only: bool) -> GatedStore:
    if not read_only:
        return GatedStore(DirectoryStore.open(path, scope=scope, durability=_durability(settings)), mode, rules)
    return GatedStore(DirectoryStore.open_to_read(path, scope=scope), "off" if mode == "off" else "read-only")


def open_agent_memory(place: AgentMemoryLocation, *, settings: Settings, cwd: StrPath, read_only: bool = False) -> Memory:
    """Open an agent type's memory, a store like any other. Raises DiskError if the directory can't be created.

    The .gitignore is written once, when the directory is created. After a crash in between, the next open writes it.
    """
    durability, here = _durability(settings), MemoryLocation(place.path, None, place.scope)
    if read_only:
        gated = GatedStore(DirectoryStore.open_to_read(place.path, scope=SCOPES[place.scope], below=place.below), "read-only")
        return Memory(here, {"private": gated}, project=project_root(cwd))
    store = DirectoryStore.open(place.path, scope=SCOPES[place.scope], durability=durability, below=place.below)
    kept_out = _KEPT_OUT.get(place.scope) if place.below is not None else None
    try:
        if kept_out is not None and store.root.stat(IGNORED) is None:
            store.root.replace(IGNORED, kept_out, durability=durability)
    except DiskError as error:
        store.notices += (message(error),)
    gated = GatedStore(store, agent_memory_mode(place.scope, settings), _rules(settings, cwd))
    return Memory(here, {"private": gated}, project=project_root(cwd))
