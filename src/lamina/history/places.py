"""Finds the session and memory files of Lamina and of other agents, where each of them keeps its own.

Reads directories only. Invariants: no link is followed below an agent's directory, so a link that leads in a circle or out of it
is never opened; a directory that is missing or unreadable gives no files, and the unreadable ones are named. Nothing here says
where Lamina writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..disk.home.agent_homes import ORIGINS as ORIGINS
from ..disk.home.agent_homes import Origin as Origin
from ..disk.home.agent_homes import agent_homes as agent_homes
from ..disk.regular_file import FileStamp, stamp
from ..language.text import Text, system_reason

NAMES: dict[Origin, str] = {"lamina": "Lamina", "claude-code": "Claude Code", "codex": "Codex", "pi": "pi"}

# Codex nests sessions by year, month and day; nothing nests deeper.
MOST_DEPTH = 4
# A memory directory may contain the team's, which may contain directories.
MEMORY_DEPTH = 2
SUBAGENTS = "subagents"
# Where Codex keeps its sessions.
ROLLOUTS = ("sessions", "archived_sessions")
# Between a path and the reason, in a sentence about what cannot be read.
MEMORY = "memory"


class SourceFile(NamedTuple):
    """A session file with what a directory listing knows about it. `parent` is the session of a subagent."""

    origin: Origin
    path: str
    stamp: FileStamp
    parent: str = ""


def session_files(homes: Mapping[Origin, Path], unread: list[str]) -> Iterator[SourceFile]:
    """Yield every session file once. Directories that cannot be listed are appended to `unread`."""
    seen: set[Path] = set()
    for origin, home in homes.items():
        if home in seen:
            continue
        seen.add(home)
        match origin:
            case "lamina" | "claude-code":
                for project in _directories(home / "projects", unread):
                    yield from _project_files(origin, project, unread)
            case "codex":
                for name in ROLLOUTS:
                    yield from _nested(origin, home / name, unread, MOST_DEPTH)
            case "pi":
                yield from _nested(origin, home / "sessions", unread, 2)


def _project_files(origin: Origin, project: str, unread: list[str]) -> Iterator[SourceFile]:
    """Yield the sessions of a project, and those of their subagents, which lie in a directory named after the session."""
    below: list[os.DirEntry[str]] = []
    for entry in _entries(project, unread):
        if entry.is_dir(follow_symlinks=False):
            below.append(entry)
        else:
            yield from _file(origin, entry)
    for session in below:
        if session.name != MEMORY and os.path.isdir(inner := os.path.join(session.path, SUBAGENTS)):
            for entry in _entries(inner, unread):
                yield from _file(origin, entry, parent=session.name)


def _nested(origin: Origin, directory: Path | str, unread: list[str], depth: int) -> Iterator[SourceFile]:
    for entry in _entries_below(directory, unread, depth):
        yield from _file(origin, entry)


def _entries_below(directory: Path | str, unread: list[str], depth: int) -> Iterator[os.DirEntry[str]]:
    for entry in _entries(directory, unread):
        if not entry.is_dir(follow_symlinks=False):
            yield entry
        elif depth > 0:
            yield from _entries_below(entry.path, unread, depth - 1)


def find_rollout(path: str, id: str) -> str | None:
    """Return the rollout with this id in the Codex home that holds `path`, or beside a file that lies elsewhere."""
    above = next((parent for parent in Path(path).parents if parent.name in ROLLOUTS), None)
    places = [above.parent / name for name in ROLLOUTS] if above is not None else [Path(path).parent]
    names = (f"-{id}.jsonl", f"_{id}.jsonl")  # a reverted session has further files, each with an id of its own
    entries = (entry for place in places for entry in _entries_below(place, [], MOST_DEPTH if above is not None else 0))
    return next((entry.path for entry in entries if entry.name.endswith(names) and entry.is_file(follow_symlinks=False)), None)


def _file(origin: Origin, entry: os.DirEntry[str], parent: str = "") -> Iterator[SourceFile]:
    if not entry.name.endswith(".jsonl"):
        return
    try:
        if not entry.is_file(follow_symlinks=False):
            return
        info = entry.stat(follow_symlinks=False)
    except OSError:
        return  # gone since it was listed
    if info.st_size:
        yield SourceFile(origin, entry.path, stamp(info), parent)


def _directories(directory: Path | str, unread: list[str]) -> list[str]:
    return sorted(entry.path for entry in _entries(directory, unread) if entry.is_dir(follow_symlinks=False))


def _entries(directory: Path | str, unread: list[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        note_unread(unread, _blocked(os.fspath(directory)), error)
        return []


def note_unread(unread: list[str], path: str, error: OSError) -> None:
    """Append a sentence about a file or directory that cannot be read, once."""
    sentence = Text("{path} could not be read: {reason}.", path=path, reason=system_reason(error))
    if sentence not in unread:
        unread.append(sentence)


def _blocked(directory: str) -> str:
    """Return the highest directory that cannot be entered on the way to this one: one sentence is enough for all below it."""
    above = [str(parent) for parent in Path(directory).parents]
    return next((parent for parent in reversed(above) if os.path.isdir(parent) and not os.access(parent, os.X_OK)), directory)


def memory_files(homes: Mapping[Origin, Path], unread: list[str]) -> Iterator[tuple[Origin, str, str]]:
    """Yield the memory files of the agents as origin, path and name of the project's directory, which is empty for Codex."""
    for origin, home in homes.items():
        match origin:
            case "lamina" | "claude-code":
                for project in _directories(home / "projects", unread):
                    for path in markdown_files(os.path.join(project, MEMORY), unread):
                        yield origin, path, os.path.basename(project)
            case "codex":
                for name in ("memories", "memories/extensions/ad_hoc/notes"):
                    for path in markdown_files(home / name, unread, 0):
                        yield origin, path, ""
            case "pi":
                pass  # pi keeps no memories


def markdown_files(directory: Path | str, unread: list[str], depth: int = MEMORY_DEPTH) -> Iterator[str]:
    """Yield the markdown files of a memory directory, without logs and hidden directories."""
    for entry in _entries(directory, unread):
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth > 0 and entry.name != "logs":
                yield from markdown_files(entry.path, unread, depth - 1)
        elif entry.name.endswith(".md") and entry.is_file(follow_symlinks=False):
            yield entry.path
