"""Finds the transcript file of a session: by its id, by the start of its id, or the newest of a project. Lists sessions from the head and
the tail of each transcript, without reading the rest.

A transcript may have gigabytes. Everything a list shows (id, directory, time, title) is at its two ends, so each file costs at
most two bounded reads, whatever its size.

Titles, tags and similar lines have no id and stay where they were written. Other programs that list sessions read only the end of
a file, so after a compaction, which adds many lines, the newest line of each kind is repeated. These lines are searched within
bounds: at the beginning of the file, and after our last compaction, where they were repeated last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import InputError, NoSuchSession
from ...core.record_lines import FORMAT
from ...language.wording import shorten
from ..regular_file import list_entries, open_regular, subdirectories
from .jsonl import decode_object, raw_lines_back

# Minimum length of an abbreviated id.
MIN_BEGINNING = 4

_RANDOM_ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

# Kinds of title lines, with the field that contains the title.
TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
# Other kinds of lines for session lists.
OTHERS = ("tag", "agent-name", "agent-color", "mode", "permission-mode", "pr-link")
# Maximum length of such a line; longer ones belong to the conversation.
LONGEST = 16 << 10
# The first prompt follows hooks, snapshots and listings; titles are repeated near the end.
HEAD_BYTES = 256 << 10
TAIL_BYTES = 64 << 10
PROMPT_CHARS = 200
_KINDS = tuple(f'"{kind}"'.encode() for kind in (*TITLES, *OTHERS))
TITLE_CHARS = 120

# Texts that programs insert as user messages; they are not used as titles.
_INJECTED = ("<system-reminder>", "<command-", "<local-command", "Caveat:", "[Request interrupted")


def find_transcript(projects: Path, slug: str, session_id: str) -> Path:
    """Find a session by its id or the start of it, first in this project, then in all others.

    Only random ids can be abbreviated; an id that a program chose must be given in full, so `user-1` never opens `user-12`.
    """
    directories = [projects / slug, *(entry for entry in subdirectories(projects) if entry.name != slug)]
    for directory in directories:
        if (exact := directory / f"{session_id}.jsonl").is_file():
            return exact
    for directory in directories if len(session_id) >= MIN_BEGINNING else ():
        begins = [
            path
            for path in list_transcripts(directory)
            if path.stem.startswith(session_id) and re.fullmatch(_RANDOM_ID, path.stem)
        ]
        if len(begins) > 1:
            raise InputError("session id", f"{session_id!r} matches {len(begins)} sessions", "give more characters of the id")
        if begins:
            return begins[0]
    raise NoSuchSession(session_id, str(projects))


def newest_transcript(projects: Path, slug: str) -> Path:
    """Return the transcript that was written last. Empty ones are skipped."""
    files: list[tuple[int, Path]] = []
    for path in list_transcripts(projects / slug):
        with suppress(FileNotFoundError):
            if (info := path.stat()).st_size:
                files.append((info.st_mtime_ns, path))
    if not files:
        raise NoSuchSession("(the newest)", str(projects / slug))
    return max(files)[1]


def list_transcripts(directory: Path) -> Iterator[Path]:
    """Yield the transcript files of one project. Only regular files count."""
    for entry in list_entries(directory):
        if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


class SessionInfo(msgspec.Struct, frozen=True):
    id: str
    path: str
    source: str  # lamina | claude-code
    cwd: str
    title: str
    started: str  # ISO time of the first record that has one
    modified: float  # seconds since the epoch
    size: int


def list_sessions(directories: Iterable[Path]) -> list[SessionInfo]:
    """List all sessions of these project directories, newest first."""
    sessions = [
        info for directory in directories for path in list_transcripts(directory) if (info := read_session_info(path)) is not None
    ]
    return sorted(sessions, key=lambda info: info.modified, reverse=True)


def read_session_info(path: Path) -> SessionInfo | None:
    """Read the list entry of one transcript; None if it is unreadable or empty."""
    try:
        stat = path.stat()
        if not stat.st_size:
            return None
        with open_regular(path) as file:
            head = file.read(HEAD_BYTES)
            tail = b""
            if stat.st_size > HEAD_BYTES:
                file.seek(max(HEAD_BYTES, stat.st_size - TAIL_BYTES))
                tail = file.read(TAIL_BYTES)
    except OSError:
        return None
    first = tuple(_objects(head))
    rows = (*first, *_objects(tail))
    return SessionInfo(
        id=path.stem,
        path=str(path),
        source="lamina" if any("lamina" in row for row in rows) else "claude-code",
        cwd=next((row["cwd"] for row in first if isinstance(row.get("cwd"), str)), ""),
        title=_title(rows),
        started=next((row["timestamp"] for row in first if isinstance(row.get("timestamp"), str)), ""),
        modified=stat.st_mtime,
        size=stat.st_size,
    )


def _objects(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects on complete lines. Lines cut at either end do not parse and are skipped."""
    return (value for line in data.split(b"\n") if (value := decode_object(line)) is not None)


def _title(rows: Sequence[dict[str, Any]]) -> str:
    """Return the last title, or the first prompt if there is no title."""
    values = (row.get(TITLES[row["type"]]) for row in reversed(rows) if row.get("type") in tuple(TITLES))
    titles = (text for text in values if isinstance(text, str))
    title = next(chain(titles, filter(None, map(_prompt, rows))), "")
    return shorten(" ".join(title.split()), TITLE_CHARS)


def _prompt(row: dict[str, Any]) -> str:
    if row.get("type") != "user" or row.get("isMeta") or row.get("isCompactSummary") or not isinstance(row.get("message"), dict):
        return ""
    content = row["message"].get("content")
    blocks = content if isinstance(content, list) else ()
    parts = [content] if isinstance(content, str) else [block.get("text") for block in blocks if isinstance(block, dict)]
    texts = [part for part in parts if isinstance(part, str) and part.strip() and not part.lstrip().startswith(_INJECTED)]
    return next(iter(texts), "")


def listed_lines(path: Path, *, title: str, prompt: str, leaf: str | None) -> list[bytes]:
    """Return the lines to repeat. `title` is used if the file has no title line; `prompt` is the user's last message."""
    newest: dict[str, dict[str, Any]] = {}
    with open_regular(path) as file:
        head = file.read(HEAD_BYTES)
    recent = list[bytes]()  # since our last compaction, the last line first
    for _, line in raw_lines_back(path):
        if b'"compact_boundary"' in line and b'"lamina"' in line:
            break
        if len(line) <= LONGEST:
            recent.append(line)
    for line in (*head.split(b"\n"), *reversed(recent)):
        if (value := _listed(line)) is not None:
            newest.pop(value["type"], None)
            newest[value["type"]] = value
    if title and not any(kind in TITLES for kind in newest):
        newest["summary"] = {"type": "summary", "summary": title, "leafUuid": leaf}
    if prompt:
        newest["last-prompt"] = {"type": "last-prompt", "lastPrompt": prompt[:PROMPT_CHARS]}
    # Marked as ours, because the last line tells which program wrote last.
    rows = [{**value, "sessionId": path.stem, "lamina": {"v": FORMAT}} for value in newest.values()]
    for row in rows:
        if row["type"] == "summary":
            del row["sessionId"]  # it names the message it belongs to instead, and strict readers reject both
    return [msgspec.json.encode(row) for row in rows]


def _listed(line: bytes) -> dict[str, Any] | None:
    if len(line) > LONGEST or not any(kind in line for kind in _KINDS):
        return None
    value = decode_object(line)
    is_listed = value is not None and "uuid" not in value and value.get("type") in (*TITLES, *OTHERS)
    return value if is_listed else None
