"""Find the stored files and their kinds, by their location (B11). Follows no links and writes nothing.

Invariant: every regular file below the home and the memory directories has exactly one kind. Unknown files, such as those of a
later version, are classified by their suffix.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..core.errors import DiskError
from ..core.settings import Settings
from ..disk.files import is_bookkeeping
from ..disk.locks.lock_file import live_holder
from ..disk.paths.project import slug
from ..disk.regular_file import list_entries, open_regular, subdirectories
from ..disk.temp_files import is_temp
from ..disk.transcripts.store import lock_path
from ..memory.store.index import INDEX
from ..memory.store.project_identity import list_known_projects
from ..memory.store.scopes import TEAM, list_agent_roots, locate_memory, project_root

# The user's own configuration: never changed by `forget`, but reported if it contains the subject.
SETTINGS = frozenset(
    {"settings.json", "settings.local.json", "flags.json", "trust.json", "include-approvals.json", "project.json"}
)
AGENT_MEMORY = ("agent-memory", "agent-memory-local")
MEMORY = "memory"
# The directory of unfinished forgets. Each file names its subject until it is done, so no other forget cleans it.
FORGET = "forget"


class MemoryRoot(NamedTuple):
    """A memory directory."""

    path: Path
    kind: str  # memories | team memory | agent memory
    shared: bool = False


class SessionFiles(NamedTuple):
    """A session's transcript and the directory of its other files; either may be missing."""

    transcript: Path
    directory: Path

    @property
    def id(self) -> str:
        return self.transcript.stem

    def holder(self) -> str | None:
        """Return the process that has the session open, if any."""
        return live_holder(lock_path(self.transcript))


class KeptFiles(NamedTuple):
    roots: tuple[MemoryRoot, ...]
    sessions: tuple[SessionFiles, ...]
    others: tuple[Path, ...]  # directly in the home


def kept_files(home: Path, cwd: Path, settings: Settings, *, person: Path | None, everywhere: bool) -> KeptFiles:
    """Return the stored files of one project, or of all, including memory directories set by settings and agents."""
    projects = subdirectories(home / "projects") if everywhere else directories_of_project(home, cwd)
    trees = [project_root(cwd), Path(os.path.realpath(cwd))]
    if everywhere:
        trees += [known.path for known in list_known_projects(home)]
    own = home / AGENT_MEMORY[0]
    agents = [
        *list_agent_roots(cwd=cwd, home=home, settings=settings, user_home=person or home),
        own,
        *(tree / ".claude" / name for tree in trees for name in AGENT_MEMORY),
    ]
    roots = [root for project in projects for root in _memory_roots(project / MEMORY)]
    roots += _named_by_settings(home, cwd, settings, person)
    roots += [MemoryRoot(path, "agent memory") for base in agents for path in subdirectories(base)]
    others = [path for path in regular_files(home, skip={home / "projects", home / FORGET, own}) if path.name not in SETTINGS]
    found = [session for project in projects for session in session_files(project)]
    return KeptFiles(tuple(dict.fromkeys(roots)), tuple(found), tuple(others))


def directories_of_project(home: Path, cwd: Path) -> list[Path]:
    """Return the directories below `<home>/projects` of the project at `cwd` and of its subdirectories."""
    root = project_root(cwd)
    named = [home / "projects" / slug(root), home / "projects" / slug(cwd)]
    below = [known.directory for known in list_known_projects(home) if known.path == root or root in known.path.parents]
    return list(dict.fromkeys(path for path in (*named, *below) if path.is_dir()))


def _named_by_settings(home: Path, cwd: Path, settings: Settings, person: Path | None) -> list[MemoryRoot]:
    """Return the memory directories named by the settings; a refused path contains nothing of ours."""
    try:
        found = locate_memory(cwd=cwd, home=home, settings=settings, user_home=person or home)
    except DiskError:
        return []
    team = [MemoryRoot(found.team, "team memory", True)] if found.team is not None and found.team.is_dir() else []
    return [*_memory_roots(found.path), *team]


def _memory_roots(path: Path) -> list[MemoryRoot]:
    """Return the memory directory and the team directory in it, if they exist."""
    found = [MemoryRoot(path, "memories")] if path.is_dir() else []
    inner = path / TEAM
    return [*found, MemoryRoot(inner, "team memory", True)] if inner.is_dir() and not inner.is_symlink() else found


def session_files(project: Path) -> list[SessionFiles]:
    names = {path.stem for path in _files_in(project) if path.suffix == ".jsonl"}
    names |= {path.name for path in subdirectories(project) if path.name != MEMORY}
    return [SessionFiles(project / f"{name}.jsonl", project / name) for name in sorted(names)]


def regular_files(directory: Path, *, skip: set[Path] | None = None) -> Iterator[Path]:
    """Yield all regular files below `directory` in order, without locks and temporary files. See `unlisted_directories`."""
    yield from _files_in(directory)
    for below in subdirectories(directory):
        if skip is None or below not in skip:
            yield from regular_files(below, skip=skip)


def irregular_files(directory: Path) -> Iterator[Path]:
    """Yield everything below `directory` that is neither a file nor a directory: links, pipes, devices."""
    for entry in list_entries(directory):
        if not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
            yield Path(entry.path)
    for below in subdirectories(directory):
        yield from irregular_files(below)


def unlisted_directories(directory: Path) -> Iterator[tuple[Path, OSError]]:
    """Yield the directories below `directory`, itself included, that cannot be listed. Other listings leave them out."""
    try:
        with os.scandir(directory) as found:
            below = sorted(Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield directory, error
        return
    for one in below:
        yield from unlisted_directories(one)


def directories_with_temps(directory: Path) -> Iterator[Path]:
    """Yield the directories below `directory`, itself included, that contain temporary files."""
    if any(is_temp(entry.name) for entry in list_entries(directory)):
        yield directory
    for below in subdirectories(directory):
        yield from directories_with_temps(below)


def _files_in(directory: Path) -> list[Path]:
    found = (entry for entry in list_entries(directory) if entry.is_file(follow_symlinks=False))
    return sorted(Path(entry.path) for entry in found if not is_bookkeeping(entry.name) and entry.name != "writer.lock")


def windows(path: Path, size: int, overlap: int) -> Iterator[bytes]:
    """Read a file in parts that overlap, so that every text shorter than `overlap` is complete in one of them."""
    with open_regular(path) as file:
        end = b""
        while part := file.read(size):
            yield end + part
            end = (end + part)[-overlap:]


def memory_kind(root: MemoryRoot, path: Path) -> str:
    """Return the kind of a file in a memory directory."""
    first, *rest = path.relative_to(root.path).parts
    if first == ".history":
        return "history" if rest[0].startswith("journal-") else "git history" if rest[0] == "git" else "caches"
    of_directory = {".inbox": "inbox", ".dreams": "dreams", "logs": "daily logs"}.get(first)
    return of_directory or ("indexes" if path.name == INDEX else root.kind)


def session_kind(session: SessionFiles, path: Path) -> str:
    if path.suffix == ".jsonl":
        return "transcripts"
    first = path.relative_to(session.directory).parts[0]
    return {"session-memory": "notes", "tool-results": "spills"}.get(first, "session files")
