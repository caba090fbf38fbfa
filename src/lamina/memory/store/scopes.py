"""Where memory lies (S1, S2, W1, A5): from settings that are already resolved, never from the working tree.

Owns the choice of directories. Invariant: whatever names the directory, G1 is asked about it before anything is made there. That
settings in the working tree cannot name it is the settings table's rule (`tree="never"`). Makes nothing, writes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, assert_never

from ...core.errors import PathRefused
from ...core.fence import escape
from ...core.settings import Settings
from ...core.settings.kinds import printable
from ...disk.paths.file_names import bad_name, shown
from ...disk.paths.memory_paths import check_root
from ...disk.paths.project import canonical_git_root, slug

StrPath: TypeAlias = str | os.PathLike[str]

TEAM = "team"
AgentScope: TypeAlias = Literal["user", "project", "local"]
AGENTS = "agent-memory"
AGENTS_LOCAL = "agent-memory-local"
IN_TREE = ".claude"
# No system takes longer paths.
LONGEST_PATH = 4_096


class MemoryLocation(NamedTuple):
    """`team` is None unless team memory is on. `said_by` names what decided: a variable, a setting's level, or "default"."""

    path: Path
    team: Path | None
    said_by: str


class AgentMemoryLocation(NamedTuple):
    """The memory directory of an agent type. From `below` on no link is followed: a working tree is anybody's."""

    path: Path
    scope: AgentScope
    below: Path | None = None


def path_text(path: StrPath) -> str:
    """A path as texts for the model name it: on one line, and no part of it opens a tag."""
    text = os.fspath(path)
    return escape(text if text.isprintable() and len(text) <= LONGEST_PATH else printable(text, LONGEST_PATH))


def project_root(cwd: StrPath) -> Path:
    """The directory that stands for the project: one for all worktrees and subdirectories of a repository."""
    return canonical_git_root(cwd) or Path(os.path.realpath(cwd))


def locate_memory(*, cwd: StrPath, home: StrPath, settings: Settings, user_home: StrPath) -> MemoryLocation:
    """The memory directories of the project `cwd` belongs to; PathRefused for a directory that may not be used.

    `home` is Lamina's own directory, `user_home` the user's: what is protected and `~/` stands for.
    """
    if named := settings.memory_directory:
        resolved = settings.resolved("memory_directory")
        path, said_by = check_root(named, home=user_home), resolved.detail or resolved.source
    else:
        stand_in = _stand_in(settings, user_home)
        asked = os.path.join(stand_in or os.path.abspath(home), "projects", slug(project_root(cwd)), "memory")
        path, said_by = check_root(asked, home=user_home), "remoteMemoryDirectory" if stand_in else "default"
    if not settings.team:
        return MemoryLocation(path, None, said_by)
    named = settings.team_memory_directory
    return MemoryLocation(path, check_root(named, home=user_home) if named else path / TEAM, said_by)


def _stand_in(settings: Settings, user_home: StrPath) -> str:
    """The directory that stands in for the home of an ephemeral machine; empty where there is none."""
    named = settings.remote_memory_directory if settings.remote else None
    return os.path.join(user_home, named[2:]) if named and named.startswith("~/") else named or ""


def locate_agent_memory(
    agent: str, scope: AgentScope, *, cwd: StrPath, home: StrPath, settings: Settings, user_home: StrPath
) -> AgentMemoryLocation:
    """Find where the agent type `agent` keeps what it remembers; PathRefused for a directory that may not be used."""
    base, below = _agents_base(scope, cwd, home, settings, user_home)
    # A type may be called `plugin:name`; no system but Windows forbids the colon in a name, and no path of ours has one.
    name = agent.replace(":", "-")
    if name in ("", ".", "..") or "/" in name or bad_name(name):
        raise PathRefused(shown(agent), "is no name of an agent type", "use letters, digits, '-' and '_'")
    asked = os.path.join(base, name)
    path = check_root(asked, home=user_home)
    if below is not None and path != Path(asked):
        raise PathRefused(asked, "leads elsewhere through a link", "remove the link; an agent's memory is a directory of its own")
    return AgentMemoryLocation(path, scope, below)


def list_agent_roots(*, cwd: StrPath, home: StrPath, settings: Settings, user_home: StrPath) -> tuple[Path, ...]:
    """Where agents of all types have theirs, each scope once."""
    scopes: tuple[AgentScope, ...] = ("user", "project", "local")
    return tuple(Path(_agents_base(scope, cwd, home, settings, user_home)[0]) for scope in scopes)


def _agents_base(
    scope: AgentScope, cwd: StrPath, home: StrPath, settings: Settings, user_home: StrPath
) -> tuple[str, Path | None]:
    root = project_root(cwd)
    match scope:
        case "user":
            return os.path.join(os.path.abspath(home), AGENTS), None
        case "project":
            return os.path.join(root, IN_TREE, AGENTS), root
        case "local":
            if stand_in := _stand_in(settings, user_home):
                return os.path.join(stand_in, "projects", slug(root), AGENTS_LOCAL), None
            return os.path.join(root, IN_TREE, AGENTS_LOCAL), root
        case _:
            assert_never(scope)
