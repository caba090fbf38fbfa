"""Which part of all that is kept a command speaks of: this project or every one (B11), with the memory directories of the
settings.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...core.errors import DiskError
from ...core.settings import Settings
from ...disk.paths.project import slug
from ...disk.transcripts.search import project_directories
from ...memory.store.project_identity import known_projects
from ...memory.store.scopes import agent_roots, memory_place, project_root
from .files import Places, Root, directories, memory_roots, places


def project_of(home: Path, cwd: Path) -> list[Path]:
    """The directories below `<home>/projects` that belong to the project at `cwd`: its own, and those of its subdirectories."""
    root = project_root(cwd)
    named = [home / "projects" / slug(root), home / "projects" / slug(cwd)]
    below = [known.directory for known in known_projects(home) if known.path == root or root in known.path.parents]
    return list(dict.fromkeys(path for path in (*named, *below) if path.is_dir()))


def scope(home: Path, cwd: Path, settings: Settings, *, person: Path | None, everywhere: bool) -> Places:
    projects = project_directories(home / "projects") if everywhere else project_of(home, cwd)
    trees = list(dict.fromkeys((project_root(cwd), Path(os.path.realpath(cwd)))))
    if everywhere:
        trees += [known.path for known in known_projects(home) if known.path not in trees]
    agents = agent_roots(cwd=cwd, home=home, settings=settings, user_home=person)
    elsewhere = [Root(path, "agent memory") for base in agents for path in directories(base)]
    return places(home, projects, memory=[*_elsewhere(home, cwd, settings, person), *elsewhere], trees=trees)


def _elsewhere(home: Path, cwd: Path, settings: Settings, person: Path | None) -> list[Root]:
    """Memory directories that settings name; one that may not be used holds nothing of ours."""
    try:
        found = memory_place(cwd=cwd, home=home, settings=settings, user_home=person)
    except DiskError:
        return []
    roots = memory_roots(found.path, "memories")
    if found.team is not None and found.team.is_dir():
        roots.append(Root(found.team, "team memory", True))
    return list(dict.fromkeys(roots))
