"""Decides which commands an event runs, and what their output means. Pure.

The format is Claude Code's: for each event, the settings hold groups with an optional `matcher` and a list of commands. A matcher is a
regular expression for the whole tool name, agent type, source or trigger, and upper and lower case differ. Without one, or with `*`, a
group applies always. Prompts and stops have nothing to match, so there a matcher is ignored.

A command answers with its exit code and output:

    0   plain output becomes context (SessionStart, UserPromptSubmit, PreCompact); a JSON object may contain `additionalContext`,
        `decision: "block"` with `reason`, `continue: false` with `stopReason`, and `systemMessage`. Before a tool call it may also
        contain `permissionDecision` and `updatedInput`, after one `updatedToolOutput`
    2   blocks; standard error gives the reason
    any other code, a signal, a timeout: reported and ignored

A block before a tool call denies it. At Stop and SubagentStop it sends the model back to work, and `continue: false` overrides that: the
turn ends, whatever the other commands return. At tool calls, `continue: false` ends the turn after the results.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ...core.decoding import UNDECODABLE
from ...core.settings import Hooks
from ...core.settings.kinds import printable
from ...language.wording import counted, plural

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
        matcher = group.get("matcher")
        try:
            if matching is None or not isinstance(matcher, str) or matcher in ("", "*"):
                applies = True
            else:
                applies = re.fullmatch(matcher, matching) is not None
        except re.error as error:
            faults.append(f"hooks.{event}: the matcher {matcher!r} is not a valid pattern ({error}); its commands are not run.")
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
    timeout = entry.get("timeout")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        timeout = PROMPT_TIMEOUT if event == "UserPromptSubmit" else DEFAULT_TIMEOUT
    timeout = min(float(timeout), LONGEST_TIMEOUT)
    if args is None:
        return HookCommand(command, timeout)
    listed = isinstance(args, list | tuple) and len(args) <= MOST_ARGUMENTS
    if not listed or not all(isinstance(word, str) and "\0" not in word for word in args):
        return f"the args of {printable(command, LONGEST_NAME)!r} must be a list of texts, so it is ignored."
    return HookCommand(command, timeout, tuple(args))


Decision: TypeAlias = Literal["deny", "ask", "allow"]

# Events whose plain output goes to the model. For other events it is ignored.
ADDS_CONTEXT: frozenset[Event] = frozenset({"SessionStart", "UserPromptSubmit", "PreCompact"})
STOPS: frozenset[Event] = frozenset({"Stop", "SubagentStop"})
TOOL_EVENTS: frozenset[Event] = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure"})

BLOCKED = 2
# A longer text would crowd out the conversation; of it, the model gets the beginning.
INLINE = 10_000
SHOWN = 2_000
# One sentence names a few problems; the first one is what the author of a hook needs.
MOST_PROBLEMS = 3

_STRONGEST: tuple[Decision, ...] = ("deny", "ask", "allow")
_WORDS: dict[str, Decision] = {"block": "deny", "approve": "allow"}
_TEXT, _SWITCH, _OBJECT, _ANY = "a text", "true or false", "an object", "any value"
_TYPES: dict[str, type | tuple[type, ...]] = {_TEXT: str, _SWITCH: bool, _OBJECT: dict, _ANY: object}
_KEYS = {
    "continue": _SWITCH,
    "stopReason": _TEXT,
    "suppressOutput": _SWITCH,
    "systemMessage": _TEXT,
    "decision": _TEXT,
    "reason": _TEXT,
    "additionalContext": _TEXT,
    "hookSpecificOutput": _OBJECT,
}
_SPECIFIC_KEYS = {
    "hookEventName": _TEXT,
    "additionalContext": _TEXT,
    "permissionDecision": _TEXT,
    "permissionDecisionReason": _TEXT,
    "updatedInput": _OBJECT,
    "updatedToolOutput": _ANY,
    "updatedMCPToolOutput": _ANY,
}


class HookOutcome(msgspec.Struct, frozen=True):
    """The combined result of an event's commands."""

    context: tuple[str, ...] = ()  # for the model
    block: str | None = None  # the reason to stop
    messages: tuple[str, ...] = ()  # for the user
    faults: tuple[str, ...] = ()  # ignored failures, one sentence each
    decision: Decision | None = None  # about a tool call
    why: str = ""  # the reason for the decision
    input: dict[str, Any] | None = None  # replaces the input of a tool call
    output: Any = None  # replaces the output of a tool
    ends: str | None = None  # the reason to end the turn


class HookRun(msgspec.Struct, frozen=True):
    """The end of one command: its exit code (None: stopped at its timeout) and its bounded output."""

    command: HookCommand
    code: int | None
    out: str
    err: str
    dropped: int = 0  # bytes of output over the limit


def fold_outcome(event: Event, ran: tuple[HookRun, ...], faults: tuple[str, ...] = ()) -> HookOutcome:
    """Combine the commands' results. The first command that blocks gives the reason, and the first replacement counts. Of several
    decisions the strictest counts."""
    outcomes = [_outcome(event, run) for run in ran]
    decision = next((word for word in _STRONGEST if any(outcome.decision == word for outcome in outcomes)), None)
    ends = next((outcome.ends for outcome in outcomes if outcome.ends is not None), None)
    block = next((outcome.block for outcome in outcomes if outcome.block is not None), None)
    return HookOutcome(
        context=tuple(text for outcome in outcomes for text in outcome.context),
        block=block if not (event in STOPS and ends is not None) else None,
        messages=tuple(text for outcome in outcomes for text in outcome.messages),
        faults=(*faults, *(text for outcome in outcomes for text in outcome.faults)),
        decision=decision,
        why=next((outcome.why for outcome in outcomes if decision is not None and outcome.decision == decision), ""),
        input=next((outcome.input for outcome in outcomes if outcome.input is not None), None),
        output=next((outcome.output for outcome in outcomes if outcome.output is not None), None),
        ends=ends,
    )


def _outcome(event: Event, run: HookRun) -> HookOutcome:
    name = f"hooks.{event}: {run.command.name}"
    if run.code is None:
        seconds = f"{run.command.timeout:g} {plural(run.command.timeout, 'second')}"
        return HookOutcome(faults=(f"{name} exceeded its timeout of {seconds} and was stopped.",))
    if run.code == BLOCKED:
        why = shorten(run.err.strip()) or f"blocked by {run.command.name}"
        outcome = HookOutcome(decision="deny", why=why) if event == "PreToolUse" else HookOutcome(block=why)
    elif run.code < 0:
        outcome = HookOutcome(faults=(f"{name} was ended by {_signal_name(-run.code)}.",))
    elif run.code != 0:
        message = printable(" ".join((run.err or run.out).split()), 200) or "(no output)"
        outcome = HookOutcome(faults=(f"{name} failed with exit code {run.code}: {message}",))
    else:
        outcome = _read(event, run.out.strip(), name)
    if not run.dropped:
        return outcome
    dropped = f"{name} printed too much: Lamina dropped {counted(run.dropped, 'byte')}."
    return replace(outcome, faults=(dropped, *outcome.faults))


def _read(event: Event, text: str, name: str) -> HookOutcome:
    plain = HookOutcome(context=(shorten(text),) if text and event in ADDS_CONTEXT else ())
    if not text.startswith("{"):
        return plain
    try:
        answer: dict[str, Any] = msgspec.json.decode(text.encode())
    except UNDECODABLE:
        return replace(plain, faults=(f"{name} printed JSON that is not valid, so it is not read as an answer.",))
    problems: list[str] = []
    fields = _checked(answer, _KEYS, problems)
    specific = _checked(fields.get("hookSpecificOutput", {}), _SPECIFIC_KEYS, problems)
    if specific.get("hookEventName", event) != event:
        problems.append(f"hookEventName is {printable(specific['hookEventName'])!r} instead of {event!r}")
        specific = {}
    outcome = _understood(event, fields, specific, problems)
    if not problems:
        return outcome
    more = f", and {len(problems) - MOST_PROBLEMS} more" if len(problems) > MOST_PROBLEMS else ""
    ignored = f"{name} printed JSON of which a part is ignored: {', '.join(problems[:MOST_PROBLEMS])}{more}."
    return replace(outcome, faults=(ignored,))


def _checked(fields: Mapping[str, Any], kinds: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    """Return the entries with a known key and a value of its type. Null counts as absent."""
    valid: dict[str, Any] = {}
    for key, value in fields.items():
        kind = kinds.get(key)
        if kind is None:
            problems.append(f"the key {printable(key)!r} is not known")
        elif value is not None and not isinstance(value, _TYPES[kind]):
            problems.append(f"{key} must be {kind}")
        elif value is not None:
            valid[key] = value
    return valid


def _understood(event: Event, fields: dict[str, Any], specific: dict[str, Any], problems: list[str]) -> HookOutcome:
    added = [part["additionalContext"].strip() for part in (fields, specific) if part.get("additionalContext", "").strip()]
    messages = [fields.get("systemMessage", "").strip()]
    ends = (fields.get("stopReason", "").strip() or "stopped by a hook") if fields.get("continue") is False else None
    block = (fields.get("reason", "").strip() or "blocked by a hook") if fields.get("decision") == "block" else None
    if ends is not None and event in STOPS:
        messages.append(fields.get("stopReason", "").strip())
    if ends is not None and event not in TOOL_EVENTS | STOPS:
        block, ends = block or ends, None
    outcome = HookOutcome(
        tuple(map(shorten, added)), block, tuple(shorten(message) for message in messages if message), ends=ends
    )
    if event == "PreToolUse":
        decision, why = _decision(fields, specific, problems)
        return replace(outcome, block=None, decision=decision, why=shorten(why), input=specific.get("updatedInput"))
    if event == "PostToolUse":
        return replace(outcome, output=specific.get("updatedToolOutput", specific.get("updatedMCPToolOutput")))
    return outcome


def _decision(fields: dict[str, Any], specific: dict[str, Any], problems: list[str]) -> tuple[Decision | None, str]:
    """Return the decision about a call and its reason. `continue: false` stops the call too."""
    if fields.get("continue") is False:
        return "deny", fields.get("stopReason", "").strip() or "stopped by a hook"
    word, why = specific.get("permissionDecision"), specific.get("permissionDecisionReason", "")
    if word is None and (former := fields.get("decision")) is not None:
        word, why = _WORDS.get(former, former), fields.get("reason", "")
    decision = next((decision for decision in _STRONGEST if decision == word), None)
    if decision is None and word is not None:
        problems.append(f"the decision {printable(word)!r} is not allow, deny or ask")
    return decision, why.strip()


def shorten(text: str) -> str:
    """Return a text, or its beginning if it is longer than a hook may add to a conversation."""
    if len(text) <= INLINE:
        return text
    return f"{text[:SHOWN]}\n[The first {SHOWN:,} of {len(text):,} characters. A hook may add {INLINE:,}.]"


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
