"""Listing sessions without reading them: the head and the tail of each file say enough.

A transcript may hold gigabytes; what a list shows (who, where, when, about what) stands at its two ends, so each file costs at
most two bounded reads whatever its size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from .titles import TITLES
from .transcript_search import transcripts

# The first prompt follows hooks, snapshots and listings; titles are written again near the end.
HEAD_BYTES = 256 << 10
TAIL_BYTES = 64 << 10
TITLE_CHARS = 120

# Texts that programs put in the user's mouth: no title.
_INJECTED = ("<system-reminder>", "<command-", "<local-command", "Caveat:", "[Request interrupted")


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
    """All sessions of these project directories, newest first."""
    found = [info for directory in directories for path in transcripts(directory) if (info := look(path)) is not None]
    return sorted(found, key=lambda info: info.modified, reverse=True)


def project_directories(projects: Path) -> list[Path]:
    try:
        with os.scandir(projects) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def look(path: Path) -> SessionInfo | None:
    """What a list shows of one transcript; None when it cannot be read or has not begun."""
    try:
        stat = path.stat()
        if not stat.st_size:
            return None
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
            tail = b""
            if stat.st_size > HEAD_BYTES:
                file.seek(max(HEAD_BYTES, stat.st_size - TAIL_BYTES))
                tail = file.read(TAIL_BYTES)
    except OSError:
        return None
    first = list(_objects(head))
    last = list(_objects(tail))
    return SessionInfo(
        id=path.stem,
        path=str(path),
        source="lamina" if any("lamina" in row for row in (*first, *last)) else "claude-code",
        cwd=next((row["cwd"] for row in first if isinstance(row.get("cwd"), str)), ""),
        title=_title(first, last),
        started=next((row["timestamp"] for row in first if isinstance(row.get("timestamp"), str)), ""),
        modified=stat.st_mtime,
        size=stat.st_size,
    )


def _objects(data: bytes) -> Iterator[dict[str, Any]]:
    """Whole lines that are objects; the cut ones at either end are not."""
    for line in data.split(b"\n"):
        try:
            value = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _title(first: list[dict[str, Any]], last: list[dict[str, Any]]) -> str:
    for row in reversed((*first, *last)):
        for kind, field in TITLES.items():
            if row.get("type") == kind and isinstance(row.get(field), str):
                return _short(row[field])
    for row in (*first, *last):
        said = _prompt(row)
        if said:
            return _short(said)
    return ""


def _prompt(row: dict[str, Any]) -> str:
    if row.get("type") != "user" or row.get("isMeta") or row.get("isCompactSummary") or not isinstance(row.get("message"), dict):
        return ""
    content = row["message"].get("content")
    blocks = content if isinstance(content, list) else ()
    parts = [content] if isinstance(content, str) else [block.get("text") for block in blocks if isinstance(block, dict)]
    texts = [part for part in parts if isinstance(part, str) and part.strip() and not part.lstrip().startswith(_INJECTED)]
    return texts[0] if texts else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"
