"""Memory locations: chosen from resolved settings, never from the working tree.

Invariant: whatever names the directory, the path checks run before anything is created there. Settings in the working tree
cannot name it; the settings table enforces that (`tree="never"`). This module creates and writes nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, assert_never

from ...core.errors import PathRefused
from ...core.fence import escape
from ...core.settings import Settings
from ...core.settings.kinds import printable
from ...disk.paths.file_names import bad_name, printable_path
from ...disk.paths.memory_paths import check_root
from ...disk.paths.project import canonical_git_root, slug

StrPath: TypeAlias = str | os.PathLike[str]

TEAM = "team"
# The directory of pending changes, in each scope.
INBOX = ".inbox"
AgentScope: TypeAlias = Literal["user", "project", "local"]
AGENTS = "agent-memory"
AGENTS_LOCAL = "agent-memory-local"
IN_TREE = ".claude"
# No system accepts longer paths.
LONGEST_PATH = 4_096


class MemoryLocation(NamedTuple):
    """The memory directories of a project. `team` is None unless team memory is on. `said_by` names the source: a variable,
    a settings level, or "default"."""

    path: Path
    team: Path | None
    said_by: str


class AgentMemoryLocation(NamedTuple):
    """The memory directory of an agent type. Links are not followed from `below` on, since anyone may have written the
    working tree."""

    path: Path
    scope: AgentScope
    below: Path | None = None


def path_text(path: StrPath) -> str:
    """Format a path for the model: on one line, with no part that opens a tag."""
    text = os.fspath(path)
    return escape(text if text.isprintable() and len(text) <= LONGEST_PATH else printable(text, LONGEST_PATH))


def project_root(cwd: StrPath) -> Path:
    """Return the directory that represents the project: the same for all worktrees and subdirectories of a repository."""
    return canonical_git_root(cwd) or Path(os.path.realpath(cwd))


def locate_memory(*, cwd: StrPath, home: StrPath, settings: Settings, user_home: StrPath) -> MemoryLocation:
    """Return the memory directories of the project that `cwd` belongs to. Raises PathRefused for a directory that may not be
    used.

    `home` is Lamina's directory. `user_home` is the user's: it is protected, and `~/` stands for it.
    """
    if named := settings.memory_directory:
        resolved = settings.resolved("memory_directory")
        path, said_by = check_root(named, home=user_home), resolved.detail or resolved.source
    else:
        stand_in = _stand_in(settings, user_home)
        default = os.path.join(stand_in or os.path.abspath(home), "projects", slug(project_root(cwd)), "memory")
        path, said_by = check_root(default, home=user_home), "remoteMemoryDirectory" if stand_in else "default"
    if not settings.team:
        return MemoryLocation(path, None, said_by)
    named = settings.team_memory_directory
    return MemoryLocation(path, check_root(named, home=user_home) if named else path / TEAM, said_by)


def _stand_in(settings: Settings, user_home: StrPath) -> str:
    """Return the directory that replaces the home on an ephemeral machine; empty if there is none."""
    named = settings.remote_memory_directory if settings.remote else None
    return os.path.join(user_home, named[2:]) if named and named.startswith("~/") else named or ""


def locate_agent_memory(
    agent: str, scope: AgentScope, *, cwd: StrPath, home: StrPath, settings: Settings, user_home: StrPath
) -> AgentMemoryLocation:
    """Return the memory directory of the agent type `agent`. Raises PathRefused for a directory that may not be used."""
    base, below = _agents_base(scope, project_root(cwd), home, settings, user_home)
    # A type may be called `plugin:name`. Only Windows forbids the colon in a name, and our paths never contain one.
    name = agent.replace(":", "-")
    if name in ("", ".", "..") or "/" in name or bad_name(name):
        raise PathRefused(printable_path(agent), "is not a valid agent type name", "use letters, digits, '-' and '_'")
    directory = os.path.join(base, name)
    path = check_root(directory, home=user_home)
    if below is not None and path != Path(directory):
        raise PathRefused(
            directory, "leads elsewhere through a link", "remove the link; an agent's memory must be a separate directory"
        )
    return AgentMemoryLocation(path, scope, below)


def list_agent_roots(*, cwd: StrPath, home: StrPath, settings: Settings, user_home: StrPath) -> tuple[Path, ...]:
    """Return the directories that hold the memories of all agent types, one per scope."""
    scopes: tuple[AgentScope, ...] = ("user", "project", "local")
    root = project_root(cwd)
    return tuple(Path(_agents_base(scope, root, home, settings, user_home)[0]) for scope in scopes)


def _agents_base(scope: AgentScope, root: Path, home: StrPath, settings: Settings, user_home: StrPath) -> tuple[str, Path | None]:
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
