"""What a call asks for, read from its arguments exactly as the tool will read them.

Owns the step from arguments to paths, a command's plan and a host. Invariant: what can't be read is `UnclearCall`, never guessed; a
path is the one the tool opens (`disk.user_paths.resolve`), and is carried as it is spelled and without links.

The values of the decision stand here too: in which mode and surroundings it is asked, and what may be answered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from ..core.blocks import ToolUse
from ..core.errors import PathRefused
from ..disk.paths.user_paths import resolve
from .readonly.plan import ReadOnlyPlan, plan_readonly
from .readonly.tokenizer import CommandRefusal
from .rules import READERS, WRITERS

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
_PATH_ARGUMENT = {"Grep": "path", "Glob": "path", "LS": "path", "NotebookEdit": "notebook_path", "NotebookRead": "notebook_path"}
MOVING = "What the path leads through is being changed by another program, so the call is not run; send it again."


class Allow(msgspec.Struct, frozen=True):
    why: str
    plan: ReadOnlyPlan | None = None  # if set, this is run by `run_readonly`, and the tool is not


class AskUser(msgspec.Struct, frozen=True):
    why: str
    suggestion: str | None = None  # the rule to offer as "always"; None where no rule would help
    firm: bool = False  # only the user answers it: neither an allow rule nor a hook does


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


class CallRequest(msgspec.Struct, frozen=True):
    """What rules and modes can see of a call."""

    tool: str
    arguments: dict[str, Any]
    spelled: str = ""  # the path as the model wrote it
    path: Path | None = None  # what the tool will open
    paths: tuple[Path, ...] = ()  # the same with and without links; of a read-only command, all it looks at
    command: str | None = None
    plan: ReadOnlyPlan | CommandRefusal | None = None
    host: str | None = None


class UnclearCall(Exception):
    """A call that says nothing that could be judged; the text is the sentence for the model."""


def readable(context: PermissionContext) -> tuple[str, ...]:
    """The real paths of everything that may be read unasked."""
    places = (context.cwd, *context.roots, *((context.memory_dir,) if context.memory_dir else ()))
    return tuple(str(real(place)) for place in places)


@lru_cache(maxsize=256)
def real(place: Path) -> Path:
    """Of a directory that the person chose, looked up once: what is above the project is not the project's to change."""
    return Path(os.path.realpath(place))


def read_call(call: ToolUse, context: PermissionContext) -> CallRequest:
    given = call.input
    if not isinstance(given, dict):
        raise UnclearCall("The arguments are no JSON object, so the call is not run; send it again, complete.")
    if call.name in READERS or call.name in WRITERS:
        return _with_path(call.name, given, context)
    if call.name == "Bash":
        return _with_command(given, context)
    if call.name == "WebFetch":
        return CallRequest(call.name, given, host=host_of(given.get("url")))
    return CallRequest(call.name, given)


def _with_path(tool: str, given: dict[str, Any], context: PermissionContext) -> CallRequest:
    name = _PATH_ARGUMENT.get(tool, "file_path")
    text = _text(given, name)
    if text is None and name != "path":
        raise UnclearCall(f"{name} is missing; send the call again with the full path of the file.")
    spelled = text if text is not None else "."
    try:
        path = resolve(spelled, context.cwd)
        path = _search_start(path, _text(given, "pattern") or "") if tool == "Glob" else path
        links = Path(os.path.realpath(path))
    except PathRefused as refused:
        raise UnclearCall(str(refused)) from None
    except OSError:  # a link was taken away while it was read
        raise UnclearCall(MOVING) from None
    return CallRequest(tool, given, spelled, path, tuple(dict.fromkeys((path, links))))


def _search_start(path: Path, pattern: str) -> Path:
    """Where a Glob begins: a pattern may lead elsewhere before its first wildcard."""
    parts = pattern.split("/")
    wild = next((number for number, part in enumerate(parts) if re.search(r"[*?\[{]", part)), len(parts))
    if ".." in parts[wild:] or re.search(r"[{,]\s*(/|~|\.\.)", pattern):
        raise UnclearCall("The pattern leads elsewhere behind a wildcard; name the directory in path.")
    return resolve("/".join(parts[:wild]) or ("/" if pattern.startswith("/") else "."), path)


def _with_command(given: dict[str, Any], context: PermissionContext) -> CallRequest:
    command = _text(given, "command")
    if command is None:
        raise UnclearCall("command must be a text; send the call again with the command to run.")
    plan = plan_readonly(command, cwd=context.cwd, roots=readable(context))
    looked = tuple(Path(place.path) for place in plan.reads) if isinstance(plan, ReadOnlyPlan) else ()
    return CallRequest("Bash", given, command=command, plan=plan, paths=looked)


def _text(given: dict[str, Any], name: str) -> str | None:
    """An argument as the tools read it: a number is its text, null is nothing."""
    value = given.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise UnclearCall(f"{name} must be a text; send the call again.")
    return value


def host_of(url: object) -> str | None:
    """The host of a plain web address; None for anything that two programs might read differently."""
    if not isinstance(url, str) or not url.isprintable() or not url.isascii() or set(url) & set(' \\"<>@'):
        return None
    found = re.fullmatch(r"https?://(?P<host>[A-Za-z0-9.-]+)(?::[0-9]{1,5})?(?:[/?#].*)?", url)
    return found["host"].casefold().rstrip(".") if found else None
