"""Decides which commands an event runs. Pure.

The format is Claude Code's: for each event, the settings hold groups with an optional `matcher` and a list of commands. A matcher is a
regular expression for the whole tool name, agent type, source or trigger, and upper and lower case differ. Without one, or with `*`, a
group applies always. Prompts and stops have nothing to match, so there a matcher is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from ...core.settings import Hooks
from ...core.settings.kinds import printable

Event: TypeAlias = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Stop",
]

# The user waits for a hook. Claude Code's limits: what people's hooks are written for.
DEFAULT_TIMEOUT = 600.0
PROMPT_TIMEOUT = 30.0
# A hook that is given more than a day is not waited for on purpose.
LONGEST_TIMEOUT = 86_400.0
# More commands for one event than anyone configures on purpose.
MOST_COMMANDS = 50
MOST_ARGUMENTS = 100
# A sentence names a command by its beginning.
LONGEST_NAME = 100


class HookCommand(msgspec.Struct, frozen=True):
    command: str
    timeout: float
    args: tuple[str, ...] | None = None  # None: a shell runs the command

    @property
    def name(self) -> str:
        """The command as a sentence names it."""
        return repr(printable(self.command, LONGEST_NAME))


def plan_hooks(event: Event, hooks: Hooks, *, matching: str | None = None) -> tuple[tuple[HookCommand, ...], tuple[str, ...]]:
    """Return the commands to run, in the order of the settings and each once, and a sentence for each invalid entry. `matching` is what
    matchers are compared with. None: they are ignored."""
    planned: dict[tuple[str, tuple[str, ...] | None], HookCommand] = {}
    faults: list[str] = []
    for group in hooks.get(event, ()):
        try:
            applies = matching is None or _matches(group.get("matcher"), matching)
        except re.error as error:
            faults.append(
                f"hooks.{event}: the matcher {group.get('matcher')!r} is not a valid pattern ({error}); its commands are not run."
            )
            continue
        for entry in group["hooks"] if applies else ():
            command = _read_command(event, entry)
            if isinstance(command, str):
                faults.append(f"hooks.{event}: {command}")
                continue
            if entry.get("async") is True:
                faults.append(f"hooks.{event}: async is not supported, so {command.name} is waited for.")
            planned.setdefault((command.command, command.args), command)
    if len(planned) > MOST_COMMANDS:
        faults.append(f"hooks.{event}: only the first {MOST_COMMANDS} commands are run.")
    return tuple(planned.values())[:MOST_COMMANDS], tuple(dict.fromkeys(faults))


def _read_command(event: Event, entry: object) -> HookCommand | str:
    """Return the command of an entry, or why it is ignored."""
    if not isinstance(entry, Mapping):
        return "an entry that is not an object is ignored."
    kind, command, args = entry.get("type", "command"), entry.get("command"), entry.get("args")
    if kind != "command":
        return f"hooks of type {printable(str(kind))!r} are not supported, so this one is ignored. Use type 'command'."
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        return "an entry without a command is ignored."
    if args is None:
        return HookCommand(command, _timeout(event, entry.get("timeout")))
    if not _is_arguments(args):
        return f"the args of {printable(command, LONGEST_NAME)!r} must be a list of texts, so it is ignored."
    return HookCommand(command, _timeout(event, entry.get("timeout")), tuple(args))


def _is_arguments(value: Any) -> bool:
    listed = isinstance(value, list | tuple) and len(value) <= MOST_ARGUMENTS
    return listed and all(isinstance(each, str) and "\0" not in each for each in value)


def _matches(matcher: object, value: str) -> bool:
    if not isinstance(matcher, str) or matcher in ("", "*"):
        return True
    return re.fullmatch(matcher, value) is not None


def _timeout(event: Event, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return PROMPT_TIMEOUT if event == "UserPromptSubmit" else DEFAULT_TIMEOUT
    return min(float(value), LONGEST_TIMEOUT)
