"""Permission requests: a call's paths, command plan and host, read from its arguments exactly as the tool will read them.

Invariant: unreadable arguments raise `UnclearCall` and are never guessed. A path is the one the tool opens
(`tools.paths.resolve`), kept both as spelled and with links resolved.

This module also defines the input and output of the decision: modes, context and verdicts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from ...core.blocks import ToolUse
from ...core.errors import PathRefused
from ..paths import resolve
from .readonly.plan import ReadOnlyPlan, plan_readonly
from .readonly.tokenizer import CommandRefusal

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
READERS = ("Read", "Grep", "Glob", "LS", "NotebookRead")
WRITERS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_PATH_ARGUMENT = {"Grep": "path", "Glob": "path", "LS": "path", "NotebookEdit": "notebook_path", "NotebookRead": "notebook_path"}
MOVING = "Another program is changing a link on this path, so the call did not run. Send it again."


class Allow(msgspec.Struct, frozen=True):
    why: str
    plan: ReadOnlyPlan | None = None  # if set, `run_readonly` runs this plan instead of the tool


class AskUser(msgspec.Struct, frozen=True):
    why: str
    suggestion: str | None = None  # the rule to offer as "always"; None if no rule would help
    firm: bool = False  # only the user answers it: neither an allow rule nor a hook does


class Deny(msgspec.Struct, frozen=True):
    why: str


Verdict: TypeAlias = Allow | AskUser | Deny


class PermissionContext(msgspec.Struct, frozen=True, kw_only=True):
    cwd: Path
    roots: tuple[Path, ...] = ()  # the project, besides the working directory and memory
    memory_dir: Path | None = None
    fork: bool = False
    only_edit: Path | None = None  # for a fork that may change this one file and nothing else
    tool_is_read_only: Callable[[str], bool] = frozenset[str]().__contains__  # for tools that are not built in
    home: Path | None = None  # the user's home directory, for ~/ in rules
    lamina_home: Path | None = None  # writing there needs confirmation, whatever its name is
    settings_root: Path | None = None  # where `/x` in a rule begins; the working directory if None


def read_mode(text: str | None) -> Mode | None:
    """Parse a mode by our name or by Claude Code's; None for any other word."""
    return _MODES.get(text or "")


class CallRequest(msgspec.Struct, frozen=True):
    """The part of a call that rules and modes can see."""

    tool: str
    arguments: dict[str, Any]
    spelled: str = ""  # the path as the model wrote it
    path: Path | None = None  # the path the tool will open
    paths: tuple[Path, ...] = ()  # the same with and without links resolved; for a read-only command, all paths it reads
    command: str | None = None
    plan: ReadOnlyPlan | CommandRefusal | None = None
    host: str | None = None


class UnclearCall(Exception):
    """A call that cannot be judged; the text is a sentence for the model."""


def readable(context: PermissionContext) -> tuple[str, ...]:
    """Return the resolved directories that may be read without asking."""
    places = (context.cwd, *context.roots, *((context.memory_dir,) if context.memory_dir else ()))
    return tuple(str(real(place)) for place in places)


@lru_cache(maxsize=256)
def real(place: Path) -> Path:
    """Resolve a directory the user chose. The result is cached: the project cannot change the directories above it."""
    return Path(os.path.realpath(place))


def read_call(call: ToolUse, context: PermissionContext) -> CallRequest:
    tool, arguments = call.name, call.input
    if not isinstance(arguments, dict):
        raise UnclearCall("The arguments are not a JSON object, so the call did not run. Send it again, complete.")
    if tool in READERS or tool in WRITERS:
        return _with_path(tool, arguments, context)
    if tool == "Bash":
        command = _text(arguments, "command")
        if command is None:
            raise UnclearCall("command must be a string. Send the call again with the command to run.")
        plan = plan_readonly(command, cwd=context.cwd, roots=readable(context))
        reads = tuple(Path(place.path) for place in plan.reads) if isinstance(plan, ReadOnlyPlan) else ()
        return CallRequest("Bash", arguments, command=command, plan=plan, paths=reads)
    return CallRequest(tool, arguments, host=host_of(arguments.get("url")) if tool == "WebFetch" else None)


def _with_path(tool: str, arguments: dict[str, Any], context: PermissionContext) -> CallRequest:
    name = _PATH_ARGUMENT.get(tool, "file_path")
    text = _text(arguments, name)
    if text is None and name != "path":
        raise UnclearCall(f"{name} is missing. Send the call again with the full path of the file.")
    spelled = text if text is not None else "."
    try:
        path = resolve(spelled, context.cwd)
        if tool == "Glob":
            # A pattern may lead elsewhere before its first wildcard.
            pattern = _text(arguments, "pattern") or ""
            parts = pattern.split("/")
            wild = next((number for number, part in enumerate(parts) if re.search(r"[*?\[{]", part)), len(parts))
            if ".." in parts[wild:] or re.search(r"[{,]\s*(/|~|\.\.)", pattern):
                raise UnclearCall("The pattern leads to another directory after a wildcard. Give the directory in path.")
            path = resolve("/".join(parts[:wild]) or ("/" if pattern.startswith("/") else "."), path)
        links = Path(os.path.realpath(path))
    except PathRefused as refused:
        raise UnclearCall(str(refused)) from None
    except OSError:  # a link disappeared during the lookup
        raise UnclearCall(MOVING) from None
    return CallRequest(tool, arguments, spelled, path, tuple(dict.fromkeys((path, links))))


def _text(arguments: dict[str, Any], name: str) -> str | None:
    """Read a text argument as the tools do: a number becomes its text, null counts as missing."""
    value = arguments.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise UnclearCall(f"{name} must be a string. Send the call again.")
    return value


def host_of(url: object) -> str | None:
    """Return the host of a plain web address; None for anything that two programs might parse differently."""
    if not isinstance(url, str) or not url.isprintable() or not url.isascii() or set(url) & set(' \\"<>@'):
        return None
    address = re.fullmatch(r"https?://(?P<host>[A-Za-z0-9.-]+)(?::[0-9]{1,5})?(?:[/?#].*)?", url)
    return address["host"].casefold().rstrip(".") if address else None
