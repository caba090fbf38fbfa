"""Which files there are, and of what kind (B11): read off their places. Follows no link, writes nothing.

Invariant: every regular file below the home and the memory directories has exactly one kind, also one that a later version put
there: what is not known is treated by its ending.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...disk.files import is_bookkeeping
from ...disk.locks.lock_file import live_holder
from ...disk.transcripts.store import lock_path
from ...memory.store.index import INDEX
from ...memory.store.scopes import TEAM

# A person's own words to the program: not changed behind their back, but reported where they hold what was to go.
SETTINGS = frozenset(
    {"settings.json", "settings.local.json", "flags.json", "trust.json", "include-approvals.json", "project.json"}
)
AGENT_MEMORY = ("agent-memory", "agent-memory-local")
MEMORY = "memory"


class Root(NamedTuple):
    """A memory directory."""

    path: Path
    kind: str  # memories | team memory | agent memory
    shared: bool = False


class Session(NamedTuple):
    """A transcript, which may be missing, and the directory of the session's other files, which may be missing too."""

    transcript: Path
    directory: Path

    def holder(self) -> str | None:
        """Who has it open now."""
        return live_holder(lock_path(self.transcript))


class Places(NamedTuple):
    roots: tuple[Root, ...]
    sessions: tuple[Session, ...]
    others: tuple[Path, ...]  # of the home itself


def places(home: Path, projects: list[Path], *, memory: list[Root], trees: list[Path]) -> Places:
    """`projects` are directories below `<home>/projects`, `memory` directories elsewhere, `trees` working trees with agents' memory."""
    roots = [root for project in projects for root in memory_roots(project / MEMORY, "memories")]
    roots += memory
    bases = [home / AGENT_MEMORY[0], *(tree / ".claude" / name for tree in trees for name in AGENT_MEMORY)]
    roots += [Root(path, "agent memory") for base in bases for path in directories(base)]
    found = [session for project in projects for session in sessions(project)]
    apart = {home / "projects", home / AGENT_MEMORY[0]}
    others = [path for path in files(home, skip=apart) if path.name not in SETTINGS]
    return Places(tuple(dict.fromkeys(roots)), tuple(found), tuple(others))


def memory_roots(path: Path, kind: str, *, shared: bool = False) -> list[Root]:
    """The directory and the team's in it, where they are."""
    found = [Root(path, kind, shared)] if path.is_dir() else []
    inner = path / TEAM
    return [*found, Root(inner, "team memory", True)] if inner.is_dir() and not inner.is_symlink() else found


def sessions(project: Path) -> list[Session]:
    names = {path.stem for path in _here(project) if path.suffix == ".jsonl"}
    names |= {path.name for path in directories(project) if path.name != MEMORY}
    return [Session(project / f"{name}.jsonl", project / name) for name in sorted(names)]


def files(directory: Path, *, skip: set[Path] | None = None) -> Iterator[Path]:
    """All regular files below, without locks and temporary files, in order."""
    yield from _here(directory)
    for below in directories(directory):
        if skip is None or below not in skip:
            yield from files(below, skip=skip)


def no_files(directory: Path) -> Iterator[Path]:
    """Links, pipes and the like below: neither files nor directories."""
    for entry in _entries(directory):
        if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
            yield Path(entry.path)
    for below in directories(directory):
        yield from no_files(below)


def _here(directory: Path) -> list[Path]:
    return sorted(
        Path(entry.path) for entry in _entries(directory) if entry.is_file(follow_symlinks=False) and _counts(entry.name)
    )


def _counts(name: str) -> bool:
    return not is_bookkeeping(name) and name != "writer.lock"


def directories(directory: Path) -> list[Path]:
    return sorted(Path(entry.path) for entry in _entries(directory) if entry.is_dir(follow_symlinks=False))


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return list(found)
    except OSError:
        return []


def memory_kind(root: Root, path: Path) -> str:
    """Of a file in a memory directory."""
    first, *rest = path.relative_to(root.path).parts
    if first == ".history":
        return "history" if rest[0].startswith("journal-") else "git history" if rest[0] == "git" else "caches"
    if first == ".inbox":
        return "inbox"
    if first == ".dreams":
        return "dreams"
    if first == "logs":
        return "daily logs"
    if path.name == INDEX:
        return "indexes"
    return root.kind


def session_kind(session: Session, path: Path) -> str:
    if path.suffix == ".jsonl":
        return "transcripts"
    first = path.relative_to(session.directory).parts[0]
    return {"session-memory": "notes", "tool-results": "spills"}.get(first, "session files")
