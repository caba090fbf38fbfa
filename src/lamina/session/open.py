"""Opens the transcript of a session: new, resumed or forked.

Each transcript has one writer. A session that is open elsewhere, or whose transcript another program wrote last, is forked: it
continues in a new file that names its source. If the home directory cannot be written, the session lives in memory and adds a
notice.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from .. import __version__
from ..core.errors import DiskError, InputError
from ..core.log import Log, seeded
from ..core.record_lines import Envelope
from ..core.records import Attachment, Forked, Message, new_id
from ..disk.paths.project import slug
from ..disk.regular_file import open_regular, read_start
from ..disk.transcripts.jsonl import Health
from ..disk.transcripts.search import find_transcript
from ..disk.transcripts.store import (
    FileTranscript,
    ForkedTranscript,
    InMemoryTranscript,
    LiveTranscript,
    SourceTranscript,
    TranscriptStore,
    load_bounded,
    read_origin,
    read_transcript,
    refuse_newer,
)

# Session ids are used as file names.
MAX_ID = 100
# A session's files are in a directory named after it, next to the project's `memory` directory.
TAKEN = frozenset({"memory"})
# The directory and file prefix that Claude Code uses for subagent transcripts.
SUBAGENTS = "subagents"
AGENT_FILE = "agent-"
# Limits for the first line of `.git/HEAD` and for the branch name, which every record repeats.
MAX_LINE = 4_096
MAX_BRANCH = 200
# Every record we write starts with these bytes.
RECORD_BEGINS = b'{"parentUuid":'


class OpenedTranscript(msgspec.Struct, frozen=True):
    session_id: str
    store: TranscriptStore
    live: LiveTranscript
    notices: tuple[str, ...]  # messages for the user


class Opening(msgspec.Struct, frozen=True):
    """A transcript that is about to be loaded."""

    name: str
    store: TranscriptStore
    notices: tuple[str, ...]
    path: Path  # the file that is read, which is the source of a fork


class AgentOf(msgspec.Struct, frozen=True):
    """The parent session of a subagent. The subagent's transcript is among the parent's files and names the parent."""

    session_id: str
    directory: Path | None  # the parent's files; None: the parent is in memory, and so is the subagent


class SessionPlace(msgspec.Struct, frozen=True):
    """The location of a session: home, working directory and, for a subagent, its parent. Without a home it is in memory only."""

    home: Path | None
    cwd: Path
    agent_of: AgentOf | None = None

    @property
    def projects(self) -> Path:
        assert self.home is not None
        return self.home / "projects"

    @property
    def project(self) -> str:
        return slug(self.cwd)

    def transcript(self, session_id: str) -> Path:
        if self.agent_of is not None and self.agent_of.directory is not None:
            return self.agent_of.directory / SUBAGENTS / f"{session_id}.jsonl"
        return self.projects / self.project / f"{session_id}.jsonl"

    def envelope(self, session_id: str) -> Envelope:
        if self.agent_of is not None:
            agent = session_id.removeprefix(AGENT_FILE)
            return Envelope(self.agent_of.session_id, str(self.cwd), __version__, git_branch(self.cwd), True, agent)
        return Envelope(session_id, str(self.cwd), __version__, git_branch(self.cwd))


def open_new(place: SessionPlace, session_id: str | None = None) -> OpenedTranscript:
    name = checked_id(session_id) if session_id is not None else new_id()
    if place.home is None:
        return OpenedTranscript(name, InMemoryTranscript(place.envelope(name)), LiveTranscript(Log(), 0, {}), ())
    path = place.transcript(name)
    try:
        store = FileTranscript.open(path, place.envelope(name))
    except DiskError as error:
        return _in_memory(place, name, error)
    # The lock is held, so no other process can start this session between the check and the first write.
    if store is None or path.stat().st_size:
        if store is not None:
            store.close()
        raise InputError("session_id", f"session {name!r} already exists", "open it with resume= instead")
    return OpenedTranscript(name, store, LiveTranscript(Log(), 0, {}), ())


def _in_memory(place: SessionPlace, name: str, error: DiskError) -> OpenedTranscript:
    notice = f"{error} This session is kept in memory only and cannot be resumed."
    return OpenedTranscript(name, InMemoryTranscript(place.envelope(name)), LiveTranscript(Log(), 0, {}), (notice,))


def open_again(place: SessionPlace, session: str | Path, clock: Callable[[], str]) -> OpenedTranscript:
    """Resume a session by its id, the start of its id, or its transcript file."""
    path = _locate(place, session)
    refuse_newer(path)
    _refuse_strange(place, path)
    if place.home is None:
        return _read_only(place, path, (), clock)
    try:
        if not read_origin(path).ours:
            return _fork(place, path, "it was last written by another program", clock)
        store = FileTranscript.open(path, place.envelope(path.stem))
        if store is None:
            return _fork(place, path, "it is open in another process", clock)
    except DiskError as error:
        return _read_only(place, path, (f"{error} The session continues in memory only: new messages will not be saved.",), clock)
    return _loaded(Opening(path.stem, store, (), path), place, clock)


def _read_only(place: SessionPlace, path: Path, notices: tuple[str, ...], clock: Callable[[], str]) -> OpenedTranscript:
    """Load the transcript's messages but keep new ones in memory."""
    store = InMemoryTranscript(place.envelope(path.stem), SourceTranscript(path))
    return _loaded(Opening(path.stem, store, notices, path), place, clock)


def _locate(place: SessionPlace, session: str | Path) -> Path:
    if isinstance(session, Path) or os.sep in session or session.endswith(".jsonl"):
        path = Path(session).expanduser()
        if not path.is_file():
            raise InputError("resume", f"{path} is not a file" if path.exists() else f"file {path} not found")
        return path.absolute()
    if place.home is None:
        raise InputError("resume", "an in-memory session cannot look up ids", "pass the transcript file instead")
    return find_transcript(place.projects, place.project, checked_id(session))


def _refuse_strange(place: SessionPlace, path: Path) -> None:
    """Refuse to append to a file that is not a transcript.

    Two kinds of files without messages are still accepted: files in our own directory, which only we create, and files that
    start like one of our records, whose first write was interrupted.
    """
    if place.home is not None and path.is_relative_to(place.projects.absolute()):
        return
    with open_regular(path) as file:
        head = file.read(len(RECORD_BEGINS))
    if RECORD_BEGINS.startswith(head):
        return
    if not any(isinstance(record, Message | Attachment) for record in read_transcript(path)):
        raise InputError(
            "resume", f"{path} is not a transcript: it contains no messages", "pass a session id or a transcript file"
        )


def _fork(place: SessionPlace, source: Path, reason: str, clock: Callable[[], str]) -> OpenedTranscript:
    name = new_id()
    notice = f"Session {source.stem} continues as {name}, because {reason}."
    forked = Forked(new_id(), None, clock(), source.stem, str(source), reason)
    store = ForkedTranscript(_path_of_copy(place, source, name), place.envelope(name), SourceTranscript(source), forked)
    return _loaded(Opening(name, store, (notice,), source), place, clock)


def _path_of_copy(place: SessionPlace, source: Path, name: str) -> Path:
    """Return where a copy goes: into the project of its session, whichever directory it is opened from."""
    if place.agent_of is not None:
        return place.transcript(name)
    if source.parent.parent == place.projects.absolute():
        return source.with_name(f"{name}.jsonl")
    from ..disk.transcripts.session_list import read_session_info  # only a copy of another program's session needs it

    info = read_session_info(source)
    return place.projects / (slug(info.cwd) if info is not None and info.cwd else place.project) / f"{name}.jsonl"


def _loaded(opening: Opening, place: SessionPlace, clock: Callable[[], str]) -> OpenedTranscript:
    store, notices = opening.store, opening.notices
    try:
        live = load_bounded(store)
        if live is None:
            live = _load_end(opening, place, clock())
            notices += (_too_large(opening),)
    except BaseException:
        store.close()
        raise
    notices += _damage(store.health, opening.path)
    notices += tuple(f"{opening.path}: {problem}" for problem in live.log.tree.problems())
    return OpenedTranscript(opening.name, store, live, notices)


def _load_end(opening: Opening, place: SessionPlace, time: str) -> LiveTranscript:
    """Load the end of a transcript that is too large, and record a summary in place of the rest."""
    from ..disk.transcripts.oversized import read_head
    from ..layers.l4_compact.head_summary import fold_head

    store = opening.store
    head = read_head(store)
    log = Log.load(lambda: store.read(head.cut), lambda: seeded(head.state))
    made = fold_head(log, head, start=head.cut, transcript=str(opening.path), cwd=str(place.cwd), time=time)
    if isinstance(store, ForkedTranscript):
        store.begin_with(made)
    else:
        store.append(made)
    for record in made:
        log.add(record)
    return LiveTranscript(log, head.cut, head.state)


def _too_large(opening: Opening) -> str:
    size = f"{opening.path.stat().st_size / 1e6:,.0f} MB"
    return (
        f"Session {opening.path.stem} is too large to load ({size} without a compaction). Its end is loaded, and a summary made by rules "
        f"replaces the rest. The transcript {opening.path} has all of it."
    )


def _damage(health: Health, path: Path | None) -> tuple[str, ...]:
    sentence = health.sentence(str(path))
    return (sentence,) if sentence is not None else ()


def checked_id(session_id: str) -> str:
    plain = session_id.replace("-", "").replace("_", "").replace(".", "")
    fits = 0 < len(session_id) <= MAX_ID and plain.isalnum() and plain.isascii() and not session_id.startswith(".")
    if not fits or session_id.lower() in TAKEN:
        raise InputError("session id", f"invalid session id {session_id!r}", f"use up to {MAX_ID} letters, digits, '-' and '_'")
    return session_id


def git_branch(cwd: Path) -> str:
    """Return the branch checked out at `cwd`, read from `.git/HEAD` without running git."""
    for directory in (cwd, *cwd.parents):
        dot = directory / ".git"
        if pointed := _first_line(dot):
            dot = directory / pointed.removeprefix("gitdir:").strip()
        if head := _first_line(dot / "HEAD"):
            name = head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else "HEAD"
            return "".join(char if char.isprintable() else "\ufffd" for char in name[:MAX_BRANCH])
    return ""


def _first_line(path: Path) -> str:
    """Return the first line of a regular file, or an empty string.

    Files in a working tree are untrusted: a named pipe must not block us, and a huge file must not be read whole.
    """
    return read_start(path, MAX_LINE).split(b"\n")[0].decode("utf-8", "replace").strip()
