"""Finds the transcript file of a session: by its id, by the start of its id, or the newest of a project. Opens no file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ...core.errors import InputError, NoSuchSession

# Minimum length of an abbreviated id.
MIN_BEGINNING = 4

_RANDOM_ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def find_transcript(projects: Path, slug: str, session_id: str) -> Path:
    """Find a session by its id or the start of it, first in this project, then in all others.

    Only random ids can be abbreviated; an id that a program chose must be given in full, so `user-1` never opens `user-12`.
    """
    directories = [projects / slug, *(entry for entry in project_directories(projects) if entry.name != slug)]
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
            if (found := path.stat()).st_size:
                files.append((found.st_mtime_ns, path))
    if not files:
        raise NoSuchSession("(the newest)", str(projects / slug))
    return max(files)[1]


def list_transcripts(directory: Path) -> Iterator[Path]:
    """Yield the transcript files of one project. Only regular files count."""
    for entry in _entries(directory):
        if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


def project_directories(projects: Path) -> list[Path]:
    return sorted(Path(entry.path) for entry in _entries(projects) if entry.is_dir(follow_symlinks=False))


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []
