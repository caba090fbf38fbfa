"""Opens the transcript of a session: new, resumed or forked.

Each transcript has one writer. A session that is open elsewhere, or whose transcript another program wrote last, is forked: it
continues in a new file that names its source. If the home directory cannot be written, the session lives in memory and adds a
notice.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from .. import __version__
from ..core.errors import DiskError, InputError
from ..core.log import Log, seeded
from ..core.record_lines import Envelope
from ..core.records import Attachment, Forked, Message, new_id
from ..disk.paths.project import slug
from ..disk.regular_file import open_regular, read_start
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
from ..language.text import Text

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


class Opening(NamedTuple):
    """A transcript that is about to be loaded."""

    name: str
    store: TranscriptStore
    notices: tuple[str, ...] = ()


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
    envelope, notices = place.envelope(name), tuple[str, ...]()
    store: TranscriptStore = InMemoryTranscript(envelope)
    if place.home is not None:
        path = place.transcript(name)
        try:
            file = FileTranscript.open(path, envelope)
        except DiskError as error:
            notices = (Text("{error} This session is kept in memory only and cannot be resumed.", error=error),)
        else:
            # The lock is held, so no other process can start this session between the check and the first write.
            if file is None or path.stat().st_size:
                if file is not None:
                    file.close()
                raise InputError("session_id", f"session {name!r} already exists", "open it with resume= instead")
            store = file
    return OpenedTranscript(name, store, LiveTranscript(Log(), 0, {}), notices)


def open_again(place: SessionPlace, session: str | Path, clock: Callable[[], str]) -> OpenedTranscript:
    """Resume a session by its id, the start of its id, or its transcript file."""
    path = _locate(place, session)
    refuse_newer(path)
    _refuse_strange(place, path)
    name, store, notices = _store_for(place, path, clock)
    try:
        live = load_bounded(store)
        if live is None:
            live = _load_end(store, path, place.cwd, clock())
            notices += (
                f"Session {path.stem} is too large to load ({path.stat().st_size / 1e6:,.0f} MB without a compaction). Its end is loaded, "
                f"and a summary made by rules replaces the rest. The transcript {path} has all of it.",
            )
    except BaseException:
        store.close()
        raise
    damage = store.health.sentence(str(path))
    problems = (f"{path}: {problem}" for problem in live.log.tree.problems())
    return OpenedTranscript(name, store, live, (*notices, *((damage,) if damage is not None else ()), *problems))


def _store_for(place: SessionPlace, path: Path, clock: Callable[[], str]) -> Opening:
    """Return where a session that continues a transcript writes: the file itself, a copy, or memory."""
    notices: tuple[str, ...] = ()
    if place.home is not None:
        try:
            ours = read_origin(path).ours
            file = FileTranscript.open(path, place.envelope(path.stem)) if ours else None
            if file is not None:
                return Opening(path.stem, file)
            name, reason = new_id(), "it is open in another process" if ours else "it was last written by another program"
            forked = Forked(new_id(), None, clock(), path.stem, str(path), reason)
            copy = ForkedTranscript(_path_of_copy(place, path, name), place.envelope(name), SourceTranscript(path), forked)
            form = Text("Session {stem} continues as {name}, because {reason}.")
            notice = Text(form, stem=path.stem, name=name, reason=Text.whole(reason))
            return Opening(name, copy, (notice,))
        except DiskError as error:
            notices = (f"{error} The session continues in memory only: new messages will not be saved.",)
    return Opening(path.stem, InMemoryTranscript(place.envelope(path.stem), SourceTranscript(path)), notices)


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


def _path_of_copy(place: SessionPlace, source: Path, name: str) -> Path:
    """Return where a copy goes: into the project of its session, whichever directory it is opened from."""
    if place.agent_of is not None:
        return place.transcript(name)
    if source.parent.parent == place.projects.absolute():
        return source.with_name(f"{name}.jsonl")
    from ..disk.transcripts.search import read_session_info  # only a copy of another program's session needs it

    info = read_session_info(source)
    return place.projects / (slug(info.cwd) if info is not None and info.cwd else place.project) / f"{name}.jsonl"


def _load_end(store: TranscriptStore, path: Path, cwd: Path, time: str) -> LiveTranscript:
    """Load the end of a transcript that is too large, and record a summary in place of the rest."""
    from ..disk.transcripts.resume import read_head
    from ..layers.l4_compact.offline import fold_head

    head = read_head(store)
    log = Log.load(lambda: store.read(head.cut), lambda: seeded(head.state))
    records = fold_head(log, head, start=head.cut, transcript=str(path), cwd=str(cwd), time=time)
    if isinstance(store, ForkedTranscript):
        store.begin_with(records)
    else:
        store.append(records)
    for record in records:
        log.add(record)
    return LiveTranscript(log, head.cut, head.state)


def checked_id(session_id: str) -> str:
    plain = session_id.replace("-", "").replace("_", "").replace(".", "")
    fits = 0 < len(session_id) <= MAX_ID and plain.isalnum() and plain.isascii() and not session_id.startswith(".")
    if not fits or session_id.lower() in TAKEN:
        raise InputError(
            "session id",
            Text("invalid session id {session_id!r}", session_id=session_id),
            Text("use up to {limit} letters, digits, '-' and '_'", limit=MAX_ID),
        )
    return session_id


def git_branch(cwd: Path) -> str:
    """Return the branch checked out at `cwd`, read from `.git/HEAD` without running git."""
    for directory in (cwd, *cwd.parents):
        dot = directory / ".git"
        if pointer := _first_line(dot):
            dot = directory / pointer.removeprefix("gitdir:").strip()
        if head := _first_line(dot / "HEAD"):
            name = head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else "HEAD"
            return "".join(char if char.isprintable() else "\ufffd" for char in name[:MAX_BRANCH])
    return ""


def _first_line(path: Path) -> str:
    """Return the first line of a regular file, or an empty string.

    Files in a working tree are untrusted: a named pipe must not block us, and a huge file must not be read whole.
    """
    return read_start(path, MAX_LINE).split(b"\n")[0].decode("utf-8", "replace").strip()
