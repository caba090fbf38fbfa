"""Where memory lies (S1, S2, W1): from settings that are already resolved, never from the working tree.

Owns the choice of directories. Invariant: whatever names the directory, G1 is asked about it before anything is made there. That
settings in the working tree cannot name it is the settings table's rule (`tree="never"`). Makes nothing, writes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ..core.settings import Settings
from ..disk.paths import canonical_git_root, check_root, slug

TEAM = "team"


class Place(NamedTuple):
    """`team` is None unless team memory is on. `said_by` names what decided: a variable, a setting's level, or "default"."""

    path: Path
    team: Path | None
    said_by: str


def project_root(cwd: str | os.PathLike[str]) -> Path:
    """The directory that stands for the project: one for all worktrees and subdirectories of a repository."""
    return canonical_git_root(cwd) or Path(os.path.realpath(cwd))


def memory_place(
    *,
    cwd: str | os.PathLike[str],
    home: str | os.PathLike[str],
    settings: Settings,
    user_home: str | os.PathLike[str] | None = None,
) -> Place:
    """The memory directories of the project `cwd` belongs to; PathRefused for a directory that may not be used.

    `home` is Lamina's own directory, `user_home` the person's: what G1 protects and `~/` stands for.
    """
    person = user_home if user_home is not None else home
    path, said_by = _private(cwd, home, settings, person)
    if not settings.team:
        return Place(path, None, said_by)
    named = settings.team_memory_directory
    return Place(path, check_root(named, home=person) if named else path / TEAM, said_by)


def _private(
    cwd: str | os.PathLike[str], home: str | os.PathLike[str], settings: Settings, person: str | os.PathLike[str]
) -> tuple[Path, str]:
    if named := settings.memory_directory:
        resolved = settings.resolved("memory_directory")
        return check_root(named, home=person), resolved.detail or resolved.source
    if settings.remote and (stand_in := settings.remote_memory_directory):
        base, said_by = _expanded(stand_in, person), "remoteMemoryDirectory"
    else:
        base, said_by = os.path.abspath(home), "default"
    return check_root(default_path(base, cwd), home=person), said_by


def _expanded(text: str, person: str | os.PathLike[str]) -> str:
    return os.path.join(person, text[2:]) if text.startswith("~/") else text


def default_path(home: str, cwd: str | os.PathLike[str]) -> str:
    return os.path.join(home, "projects", slug(project_root(cwd)), "memory")
