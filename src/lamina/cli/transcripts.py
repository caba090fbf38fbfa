"""Find and check recorded sessions.

Read-only. A file counts as a transcript if it has at least one message; damaged lines are tolerated.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..core.errors import DiskError, InputError, NoSuchSession
from ..core.records import Attachment, Message, Record
from ..disk.paths.project import slug
from ..disk.regular_file import IrregularFile, open_regular
from ..disk.settings_files import settings_in_force
from ..disk.transcripts.jsonl import Health
from ..disk.transcripts.search import MIN_BEGINNING, find_transcript
from ..history import sessions as sources
from ..history.places import NAMES
from ..history.sessions import SourceSession, fold_subagents, format_of, homes_of
from ..language.text import Text
from ..language.wording import counted
from .console import ProgressLine, capped, notice, notice_unread

REMEDY = "run `lamina sessions list` to see the sessions"
# The first part of a random id, and with the second and third one.
SHORT_LENGTHS = (8, 13, 18)
# Sentences about files with the same id; a copied directory makes many.
MOST_SHARED = 5
# Enough bytes to tell text from binary data.
LOOKED_AT = 4_096


def find_sessions(cwd: Path | None, source: str = "all", unread: list[str] | None = None) -> list[SourceSession]:
    """Return the sessions of the project of `cwd`, or of all projects, newest first; `source` selects the program."""
    with ProgressLine(" …") as progress:

        def tell(done: int, of: int) -> None:
            progress.show(f"reading new sessions, {done:,} of {of:,}")

        found = sources.sessions(settings_in_force(cwd or Path.cwd()), cwd, unread=unread, tell=tell)
    return [session for session in fold_subagents(found) if source in ("all", session.origin)]


def name_rows(found: list[SourceSession]) -> tuple[list[str], list[str]]:
    """Return the beginnings of the sessions' ids that tell them apart, and sentences about files with the same id.

    Such files are numbered; each is opened by its path.
    """
    counts = Counter(name[:length] for name in {one.id for one in found} for length in SHORT_LENGTHS)
    files: dict[str, dict[str, int]] = {}
    for one in found:
        same = files.setdefault(one.id, {})
        same.setdefault(one.path, len(same) + 1)

    def short(name: str) -> str:
        return next((name[:length] for length in SHORT_LENGTHS if counts[name[:length]] == 1), name)

    names = [short(one.id) + (f" ({files[one.id][one.path]})" if len(files[one.id]) > 1 else "") for one in found]
    shared = [
        f"{len(same)} files have the id {short(name)}: {', '.join(f'({number}) {path}' for path, number in same.items())}. "
        "Pass the file instead of the id to choose one."
        for name, same in files.items()
        if len(same) > 1
    ]
    return names, capped(shared, MOST_SHARED, Text("… and {count:,} more. Use --json to list the files."))


def locate(session: str, cwd: Path, *, edit: bool = False) -> Path:
    """Return the transcript of a session given by id, id prefix or file; InputError if it has no messages.

    With `edit`, a session in a format that Lamina only reads is refused.
    """
    is_file = os.sep in session or session.endswith(".jsonl")
    path = Path(session).expanduser().absolute() if is_file else _find_by_id(session, cwd)
    _check(path)
    if edit and (origin := format_of(path)) in ("codex", "pi"):
        raise InputError("session", f"{path} was written by {NAMES[origin]}, and Lamina only reads it", "choose another session")
    return path


def locate_newest(cwd: Path) -> Path:
    """Return the transcript of the newest session in a directory, of any program."""
    unread: list[str] = []
    found = find_sessions(cwd, unread=unread)
    notice_unread(unread)
    if not found:
        raise InputError("session", f"no session was recorded in {cwd}", "run `lamina sessions list --all` to see the others")
    path = Path(found[0].path)
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
        for record in sources.read(self._path, health=self.health):
            self.records += 1
            yield record


def _find_by_id(session: str, cwd: Path) -> Path:
    from ..session.open import checked_id

    name, settings = checked_id(session), settings_in_force(cwd)
    homes = homes_of(settings, os.environ)
    paths: list[Path] = []
    for home in dict.fromkeys(home for origin, home in homes.items() if origin in ("lamina", "claude-code")):
        with suppress(NoSuchSession):
            paths.append(find_transcript(home / "projects", slug(cwd), name))
    paths = [path for path in paths if path.stem == name] or paths
    if (count := len({path.stem for path in paths})) > 1:
        raise InputError("session id", f"{session!r} matches {count} sessions", "give more characters of the id")
    if paths:
        notice(*(f"Another file has the same id: {path}" for path in paths[1:]))
        return paths[0]
    if Path(session).is_file():
        return Path(session).absolute()
    unread: list[str] = []
    listed = sources.sessions(settings, unread=unread)
    found = [one for one in listed if one.id == name or (len(name) >= MIN_BEGINNING and one.id.startswith(name))]
    # The ids of Codex begin with the time, so those of a session and its subagents may begin alike.
    found = [one for one in found if one.id == name] or [one for one in found if not one.parent] or found
    if (count := len({one.id for one in found})) > 1:
        raise InputError("session id", f"{session!r} matches {count} sessions", "give more characters of the id")
    if found:
        notice(*(f"Another file has the same id: {one.path}" for one in found[1:]))
        return Path(found[0].path)  # the one with the newest message
    notice_unread(unread)
    raise NoSuchSession(session, f"the sessions of {', '.join(NAMES[origin] for origin in homes) or 'any agent'}")


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
        with open_regular(path) as file:
            return file.read(LOOKED_AT)
    except IrregularFile as error:
        problem = "is a directory, not a transcript" if error.kind == "a directory" else "is not a regular file"
        raise InputError("session", f"{path} {problem}", REMEDY) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> DiskError | InputError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return InputError("session", f"file {path} not found", REMEDY)
    if error.errno in (errno.EACCES, errno.EPERM):
        return DiskError(str(path), "permission denied", "change its permissions or ask its owner")
    return DiskError(str(path), Text("cannot be read ({reason})", reason=os.strerror(error.errno or 0).lower()))


def _why(head: bytes, read: int, skipped: int) -> str:
    if b"\0" in head:
        return "it is binary"
    if not read:
        return "none of its lines is a JSON object" if skipped else "it has only blank lines"
    return f"it has {counted(read, 'record')} but no messages"
