"""Claude Code's own memory: whether it is on for a project, and where it is.

Claude Code does not say whether it writes memories. Its variable decides, then `autoMemoryEnabled` in the local, project and user settings;
otherwise it is on. A settings file that is not valid JSON is ignored, because Claude Code does not load it either.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.decoding import UNDECODABLE
from ..core.settings import Settings
from ..core.settings.table import Resolved
from ..disk.home.agent_homes import agent_homes
from ..disk.paths.project import slug
from ..disk.regular_file import read_start
from ..disk.settings_files import LOCAL_PATH, PROJECT_PATH
from .store.scopes import project_root

VARIABLE = "CLAUDE_CODE_DISABLE_AUTO_MEMORY"
KEY = "autoMemoryEnabled"
# A larger file is not a settings file.
MOST_BYTES = 1 << 20
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})


class AutoMemory(NamedTuple):
    """Whether Claude Code writes memories, what decided that, and their directory."""

    on: bool
    decided_by: str
    path: Path | None


def auto_memory(cwd: str | os.PathLike[str], environ: Mapping[str, str]) -> AutoMemory:
    home = agent_homes(environ).get("claude-code")
    path = _memory_directory(home, cwd) if home is not None else None
    files = [Path(cwd) / LOCAL_PATH, Path(cwd) / PROJECT_PATH, *([home / "settings.json"] if home is not None else [])]
    documents = [(file, document) for file in files if (document := _document(file)) is not None]
    for where, disabled in _variables(environ, documents):
        if disabled.strip().lower() in _YES | _NO:
            return AutoMemory(disabled.strip().lower() in _NO, where, path)
    for file, document in documents:
        if isinstance(enabled := document.get(KEY), bool):
            return AutoMemory(enabled, str(file), path)
    return AutoMemory(True, "its default", path)


def own_memory(settings: Settings) -> Settings:
    """Return the settings for Lamina's own memory inside Claude Code.

    Claude Code's switches turn off its memory, not Lamina's. Lamina's own switches still do: its variable, its user and managed
    settings, the modes.
    """

    def theirs(found: Resolved) -> bool:
        return found.detail == VARIABLE or found.source in ("project", "local")

    return settings if settings.memory else settings.without("memory", theirs)


def _memory_directory(home: Path, cwd: str | os.PathLike[str]) -> Path:
    """Return the directory for the project, or the one for `cwd` if only that exists."""
    project, here = (home / "projects" / slug(top) / "memory" for top in (project_root(cwd), os.path.realpath(cwd)))
    return here if here.is_dir() and not project.is_dir() else project


def _variables(environ: Mapping[str, str], documents: list[tuple[Path, dict[str, Any]]]) -> Iterator[tuple[str, str]]:
    yield VARIABLE, environ.get(VARIABLE, "")
    for file, document in documents:
        env = document.get("env")
        yield f"{VARIABLE} in {file}", str(env.get(VARIABLE, "")) if isinstance(env, dict) else ""


def _document(path: Path) -> dict[str, Any] | None:
    try:
        document = msgspec.json.decode(read_start(path, MOST_BYTES))
    except UNDECODABLE:
        return None
    return document if isinstance(document, dict) else None
