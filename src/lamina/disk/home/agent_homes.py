"""The directories of the agents whose sessions and memories Lamina reads. Nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from ..settings_files import lamina_home, user_home

Origin: TypeAlias = Literal["lamina", "claude-code", "codex", "pi"]
ORIGINS: tuple[Origin, ...] = ("lamina", "claude-code", "codex", "pi")


def agent_homes(environ: Mapping[str, str]) -> dict[Origin, Path]:
    """Return the directory of each agent, whether or not it exists."""
    person = user_home(environ)
    named = {
        "lamina": lamina_home(environ),
        "claude-code": _named(environ, "CLAUDE_CONFIG_DIR", person, ".claude"),
        "codex": _named(environ, "CODEX_HOME", person, ".codex"),
        "pi": _named(environ, "PI_CODING_AGENT_DIR", person, ".pi/agent"),
    }
    return {origin: path.absolute() for origin in ORIGINS if (path := named[origin]) is not None}


def _named(environ: Mapping[str, str], variable: str, person: Path | None, usual: str) -> Path | None:
    value = environ.get(variable, "").strip()
    if value.startswith("~/") and person is not None:
        return person / value[2:]
    if value:
        return Path(value)
    return person / usual if person is not None else None
