"""Decides which commands an event runs, and what their output means. Pure.

The format is Claude Code's: for each event, the settings hold groups with an optional `matcher` and a list of commands. A command reads
one JSON object and answers with its exit code and output:

    0   plain output becomes context (SessionStart, UserPromptSubmit, PreCompact); a JSON object may contain `additionalContext`,
        `decision: "block"` with `reason`, `continue: false` with `stopReason`, and `systemMessage`. At Stop, a block sends the model
        back to work, and `continue: false` overrides that: the turn ends, whatever the other commands return
    2   blocks; standard error gives the reason
    any other code: logged and ignored
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from ..core.settings import Hooks

Event: TypeAlias = Literal["SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "Stop"]

# Events whose plain output goes to the model. For other events it is only logged.
ADDS_CONTEXT: frozenset[Event] = frozenset({"SessionStart", "UserPromptSubmit", "PreCompact"})

# The user waits for a hook before the answer. A slow one must set its own `timeout`.
DEFAULT_TIMEOUT = 60.0
LONGEST_TIMEOUT = 600.0
# More commands for one event than anyone configures on purpose.
MOST_COMMANDS = 50

BLOCKED = 2


class HookCommand(msgspec.Struct, frozen=True):
    command: str
    timeout: float


class HookOutcome(msgspec.Struct, frozen=True):
    """The combined result of an event's commands."""

    context: tuple[str, ...] = ()  # for the model
    block: str | None = None  # the reason to stop
    messages: tuple[str, ...] = ()  # for the user
    faults: tuple[str, ...] = ()  # ignored failures, one sentence each


class HookRun(msgspec.Struct, frozen=True):
    """The end of one command: its exit code (None: stopped at its timeout) and its bounded output."""

    command: str
    code: int | None
    out: str
    err: str


def plan_hooks(event: Event, hooks: Hooks, *, matching: str = "") -> tuple[tuple[HookCommand, ...], tuple[str, ...]]:
    """Return the commands to run, in the order of the settings and each once, and a sentence for each invalid entry."""
    planned: dict[str, HookCommand] = {}
    faults: list[str] = []
    for group in hooks.get(event, ()):
        try:
            applies = _matches(group.get("matcher"), matching)
        except re.error as error:
            faults.append(
                f"hooks.{event}: the matcher {group.get('matcher')!r} is not a valid pattern ({error}); its commands are not run."
            )
            continue
        for entry in group["hooks"] if applies else ():
            command = entry.get("command") if isinstance(entry, Mapping) and entry.get("type", "command") == "command" else None
            if not isinstance(command, str) or not command.strip():
                faults.append(f"hooks.{event}: an entry without a command is ignored.")
            elif command not in planned:
                planned[command] = HookCommand(command, _timeout(entry.get("timeout")))
    if len(planned) > MOST_COMMANDS:
        faults.append(f"hooks.{event}: only the first {MOST_COMMANDS} commands are run.")
    return tuple(planned.values())[:MOST_COMMANDS], tuple(faults)


def _matches(matcher: object, value: str) -> bool:
    if not isinstance(matcher, str) or matcher in ("", "*"):
        return True
    return re.fullmatch(matcher, value) is not None


def _timeout(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return DEFAULT_TIMEOUT
    return min(float(value), LONGEST_TIMEOUT)


def fold_outcome(event: Event, ran: tuple[HookRun, ...], faults: tuple[str, ...] = ()) -> HookOutcome:
    """Combine the commands' results. The first command that blocks gives the reason."""
    context: list[str] = []
    messages: list[str] = []
    wrong = list(faults)
    block: str | None = None
    over = False
    for one in ran:
        if one.code is None:
            wrong.append(f"hooks.{event}: {one.command!r} exceeded its timeout and was stopped.")
        elif one.code == BLOCKED:
            block = block or one.err.strip() or f"blocked by {one.command!r}"
        elif one.code != 0:
            wrong.append(f"hooks.{event}: {one.command!r} failed with exit code {one.code}: {_line(one.err or one.out)}")
        else:
            said, blocked, told, ends = _read(event, one.out)
            context += said
            messages += told
            block = block or blocked
            over = over or ends
    return HookOutcome(tuple(context), None if over else block, tuple(messages), tuple(wrong))


class _HookAnswer(NamedTuple):
    context: list[str]
    block: str | None = None
    messages: Sequence[str] = ()
    over: bool = False  # the turn ends here


def _read(event: Event, out: str) -> _HookAnswer:
    text = out.strip()
    plain = _HookAnswer([text] if text and event in ADDS_CONTEXT else [])
    if not text.startswith("{"):
        return plain
    try:
        answer = msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, RecursionError):
        return plain
    specific = answer.get("hookSpecificOutput")
    added = [part.get("additionalContext") for part in (answer, specific) if isinstance(part, Mapping)]
    ends = answer.get("continue") is False
    reason = _text(answer.get("stopReason")) if ends else ""
    messages = [_text(answer.get("systemMessage"))]
    blocked: str | None = None
    if event == "Stop" and ends:
        messages.append(reason)
    elif answer.get("decision") == "block":
        blocked = _text(answer.get("reason")) or "blocked by a hook"
    elif ends:
        blocked = reason or "stopped by a hook"
    over = event == "Stop" and ends
    return _HookAnswer([part for part in map(_text, added) if part], blocked, [part for part in messages if part], over)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line[:200] or "(no output)"
