"""The values of a permission decision: what may be answered, in which mode and surroundings it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from .readonly.plan import ReadOnlyPlan

Mode: TypeAlias = Literal["ask", "accept-edits", "read-only", "all"]

_MODES: Mapping[str, Mode] = {
    "ask": "ask",
    "default": "ask",
    "accept-edits": "accept-edits",
    "acceptEdits": "accept-edits",
    "read-only": "read-only",
    "plan": "read-only",
    "all": "all",
    "bypassPermissions": "all",
}


class Allow(msgspec.Struct, frozen=True):
    why: str
    plan: ReadOnlyPlan | None = None  # if set, this is run by `run_readonly`, and the tool is not


class AskUser(msgspec.Struct, frozen=True):
    why: str
    suggestion: str | None = None  # the rule to offer as "always"; None where no rule would help


class Deny(msgspec.Struct, frozen=True):
    why: str


Verdict: TypeAlias = Allow | AskUser | Deny


class PermissionContext(msgspec.Struct, frozen=True, kw_only=True):
    cwd: Path
    roots: tuple[Path, ...] = ()  # the project: besides the working directory and memory
    memory_dir: Path | None = None
    fork: bool = False
    only_edit: Path | None = None  # a fork that may change this one file and do nothing else (N4)
    tool_is_read_only: Callable[[str], bool] = frozenset[str]().__contains__  # for tools that are not ours
    home: Path | None = None  # the person's, for ~/ in rules
    lamina_home: Path | None = None  # whatever its name is, writing there is asked about
    settings_root: Path | None = None  # where `/x` in a rule begins; the working directory if None


def read_mode(text: str | None) -> Mode | None:
    """A mode by our name or by Claude Code's; None for any other word."""
    return _MODES.get(text or "")
