"""Find, check and search recorded sessions.

Read-only. A file counts as a transcript if it has at least one message; damaged lines are tolerated.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import DiskError, InputError, LaminaError, NoSuchSession
from ..core.records import Attachment, Message, Record
from ..core.wording import counted
from ..disk.paths.project import slug
from ..disk.settings_files import lamina_home, user_home
from ..disk.transcripts.jsonl import Health
from ..disk.transcripts.search import find_transcript, list_transcripts, project_directories
from ..disk.transcripts.session_list import SessionInfo, list_sessions
from ..disk.transcripts.store import read_transcript

REMEDY = "run `lamina sessions list` to see the sessions"
# Enough bytes to tell text from binary data.
LOOKED_AT = 4_096
# Characters shown on each side of a search hit.
AROUND = 80


def list_homes(source: str = "all") -> list[Path]:
    """Return the directories that contain `projects/`, without duplicates."""
    person = user_home(os.environ)
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    claude = Path(named) if named else person / ".claude" if person is not None else None
    own = lamina_home(os.environ)
    wanted = [own] if source == "lamina" else [own, claude]
    return list(dict.fromkeys(path.absolute() for path in wanted if path is not None))


def find_sessions(cwd: Path | None, source: str = "all") -> list[SessionInfo]:
    """Return the sessions of `cwd`, or of all directories, newest first; `source` selects the program."""
    directories = [
        directory
        for home in list_homes(source)
        for directory in (project_directories(home / "projects") if cwd is None else [home / "projects" / slug(cwd)])
    ]
    return list_sessions(directories)


def locate(session: str, cwd: Path) -> Path:
    """Return the transcript of a session given by id, id prefix or file; InputError if it has no messages."""
    is_file = os.sep in session or session.endswith(".jsonl")
    path = Path(session).expanduser().absolute() if is_file else _find_by_id(session, cwd)
    _check(path)
    return path


class CountedTranscript:
    """A transcript that can be read repeatedly; `records` and `health` describe the last read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records = 0
        self.health = Health()

    def __call__(self) -> Iterator[Record]:
        self.records, self.health = 0, Health()
        for record in read_transcript(self._path, health=self.health):
            self.records += 1
            yield record


def _find_by_id(session: str, cwd: Path) -> Path:
    from ..session.open import checked_id

    error: NoSuchSession | None = None
    for home in list_homes():
        try:
            return find_transcript(home / "projects", slug(cwd), checked_id(session))
        except NoSuchSession as missing:
            error = error or missing
    if Path(session).is_file():
        return Path(session).absolute()
    raise error or NoSuchSession(session, "any home directory")


def _check(path: Path) -> None:
    """Raise InputError if the file is not a transcript."""
    head, read = _head(path), CountedTranscript(path)
    if not head:
        raise InputError("session", f"{path} is empty", REMEDY)
    if not any(isinstance(record, Message | Attachment) for record in read()):
        raise InputError("session", f"{path} is not a transcript: {_why(head, read.records, read.health.skipped)}", REMEDY)


def _head(path: Path) -> bytes:
    """Return the first bytes, without blocking on a pipe or device."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise InputError("session", f"{path} is a directory, not a transcript", REMEDY)
        if not stat.S_ISREG(mode):
            raise InputError("session", f"{path} is not a regular file", REMEDY)
        return os.read(fd, LOOKED_AT)
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(fd)


def _unreadable(path: Path, error: OSError) -> DiskError | InputError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return InputError("session", f"file {path} not found", REMEDY)
    if error.errno in (errno.EACCES, errno.EPERM):
        return DiskError(str(path), "permission denied", "change its permissions or ask its owner")
    return DiskError(str(path), f"cannot be read ({os.strerror(error.errno or 0).lower()})")


def _why(head: bytes, read: int, skipped: int) -> str:
    if b"\0" in head:
        return "it is binary"
    if not read:
        return "none of its lines is a JSON object" if skipped else "it has only blank lines"
    return f"it has {counted(read, 'record')} but no messages"


def search_sessions(term: str, cwd: Path, unread: list[str]) -> Iterator[dict[str, str]]:
    """Search the sessions of this directory, newest first. Errors of unreadable transcripts are appended to `unread`."""
    home = lamina_home(os.environ)
    directory = (home or Path()) / "projects" / slug(cwd)
    if home is None or not directory.is_dir():
        return
    for path in sorted(list_transcripts(directory), key=lambda each: -each.stat().st_mtime):
        try:
            messages = [record for record in read_transcript(path) if isinstance(record, Message)]
        except (LaminaError, OSError) as error:
            unread.append(str(error))
            continue
        for record in reversed(messages):
            for text in _texts(record):
                if (around := _around(text, term)) is not None:
                    yield {"session_id": path.stem, "time": record.time, "role": record.role, "text": around}
                    break


def _texts(record: Message) -> Iterator[str]:
    """Yield the texts of a message, including those in tool results."""
    for block in record.blocks:
        wire = block.wire
        content = wire.get("text") if wire.get("type") == "text" else wire.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def _around(text: str, term: str) -> str | None:
    at = text.casefold().find(term.casefold())
    if at < 0:
        return None
    start, end = max(0, at - AROUND), at + len(term) + AROUND
    line = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"
