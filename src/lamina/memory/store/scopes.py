"""Where memory lies (S1, S2, W1, A5): from settings that are already resolved, never from the working tree.

Owns the choice of directories. Invariant: whatever names the directory, G1 is asked about it before anything is made there. That
settings in the working tree cannot name it is the settings table's rule (`tree="never"`). Makes nothing, writes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, assert_never

from ...core.errors import PathRefused
from ...core.settings import Settings
from ...disk.paths.file_names import bad_name, shown
from ...disk.paths.memory_paths import check_root
from ...disk.paths.project import canonical_git_root, slug

TEAM = "team"
AgentScope: TypeAlias = Literal["user", "project", "local"]
AGENTS = "agent-memory"
AGENTS_LOCAL = "agent-memory-local"
IN_TREE = ".claude"


class Place(NamedTuple):
    """`team` is None unless team memory is on. `said_by` names what decided: a variable, a setting's level, or "default"."""

    path: Path
    team: Path | None
    said_by: str


class AgentPlace(NamedTuple):
    """The memory directory of an agent type. From `below` on no link is followed: a working tree is anybody's."""

    path: Path
    scope: AgentScope
    below: Path | None = None


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


def agent_place(
    agent: str,
    scope: AgentScope,
    *,
    cwd: str | os.PathLike[str],
    home: str | os.PathLike[str],
    settings: Settings,
    user_home: str | os.PathLike[str] | None = None,
) -> AgentPlace:
    """A5: where the agent type `agent` keeps what it remembers; PathRefused for a directory that may not be used."""
    person = user_home if user_home is not None else home
    base, below = _agents_base(scope, cwd, home, settings, person)
    # A type may be called `plugin:name`; no system but Windows forbids the colon in a name, and no path of ours has one.
    name = agent.replace(":", "-")
    if name in ("", ".", "..") or "/" in name or bad_name(name):
        raise PathRefused(shown(agent), "is no name of an agent type", "use letters, digits, '-' and '_'")
    asked = os.path.join(base, name)
    path = check_root(asked, home=person)
    if below is not None and path != Path(asked):
        raise PathRefused(asked, "leads elsewhere through a link", "remove the link; an agent's memory is a directory of its own")
    return AgentPlace(path, scope, below)


def agent_roots(
    *,
    cwd: str | os.PathLike[str],
    home: str | os.PathLike[str],
    settings: Settings,
    user_home: str | os.PathLike[str] | None = None,
) -> tuple[Path, ...]:
    """Where agents of all types have theirs, each scope once."""
    person = user_home if user_home is not None else home
    scopes: tuple[AgentScope, ...] = ("user", "project", "local")
    return tuple(Path(_agents_base(scope, cwd, home, settings, person)[0]) for scope in scopes)


def _agents_base(
    scope: AgentScope,
    cwd: str | os.PathLike[str],
    home: str | os.PathLike[str],
    settings: Settings,
    person: str | os.PathLike[str],
) -> tuple[str, Path | None]:
    root = project_root(cwd)
    match scope:
        case "user":
            return os.path.join(os.path.abspath(home), AGENTS), None
        case "project":
            return os.path.join(root, IN_TREE, AGENTS), root
        case "local":
            if settings.remote and (stand_in := settings.remote_memory_directory):
                return os.path.join(_expanded(stand_in, person), "projects", slug(root), AGENTS_LOCAL), None
            return os.path.join(root, IN_TREE, AGENTS_LOCAL), root
        case _:
            assert_never(scope)
