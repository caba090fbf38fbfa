"""The Agent and SendMessage tools: their schemas, and how their calls are parsed. Pure.

Neither description changes during a session, since that would change the prompt prefix. Agent's description lists the types that exist
when the session begins. SendMessage's names no agents; a call with an unknown name gets an answer with the known ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from ...core.blocks import Wire
from ...core.prompt_files import prompt_text
from ...tools.tool import Builtin, Context, Tool, ToolOutput, failure, guard
from .messages import MOST_NAME, MOST_SUMMARY, MOST_TEXT, Structured, UnreadableMessage, read_structured
from .types import AGENT, FORK, MAIN, SEND, AgentType, Catalog

MAX_DESCRIPTION = 200
# Limit for the list of types: half of what the descriptions of the other tools take together.
LISTING_CHARS = 12_000

EVERYBODY = "*"
# The prefix of an agent's files and jobs; its name is the rest.
PREFIX = "agent-"
_JOB = re.compile(rf"{PREFIX}[0-9a-f]{{8}}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
# Number of known names in an error.
MOST_KNOWN = 20

AGENT_SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "description": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_DESCRIPTION,
            "description": "The task in three to five words, for the user",
        },
        "prompt": {"type": "string", "minLength": 1, "description": "The whole task, and what the report should contain"},
        "subagent_type": {
            "type": "string",
            "description": "One of the types above; leave it out for a fork of this conversation",
        },
        "run_in_background": {"type": "boolean", "description": "Return at once; the report arrives later by itself"},
        "name": {
            "type": "string",
            "maxLength": 40,
            "description": "A name for SendMessage, such as research-agent; default: its id",
        },
    },
    "required": ["description", "prompt"],
}


class ForkCall(msgspec.Struct, frozen=True):
    """A fork of the conversation."""

    description: str
    prompt: str
    background: bool
    label: str = ""  # the name it was given

    @property
    def name(self) -> str:
        return FORK


class SubagentCall(msgspec.Struct, frozen=True):
    """A subagent with its own conversation."""

    description: str
    prompt: str
    background: bool
    kind: AgentType
    label: str = ""

    @property
    def name(self) -> str:
        return self.kind.name


class CallRefusal(msgspec.Struct, frozen=True):
    sentence: str


AgentCall: TypeAlias = ForkCall | SubagentCall
Act: TypeAlias = Callable[[Wire, Context], ToolOutput]


def read_call(given: Wire, catalog: Catalog) -> AgentCall | CallRefusal:
    """Parse a call whose input already fits the schema."""
    words, prompt = " ".join(given["description"].split()), given["prompt"].strip()
    background = bool(given.get("run_in_background"))
    name = (given.get("subagent_type") or FORK).strip()
    if not words or not prompt:
        return CallRefusal("description and prompt must not be empty. Send the call again with both.")
    label = (given.get("name") or "").strip()
    if label and (not _LABEL.fullmatch(label) or label in (MAIN, FORK)):
        return CallRefusal(f"Invalid agent name {label!r}. Use letters, digits, - and _; {MAIN} and {FORK} are reserved.")
    if name == FORK:
        return ForkCall(words, prompt, background, label)
    kind = catalog.find(name)
    return SubagentCall(words, prompt, background, kind, label) if kind is not None else CallRefusal(_unknown_type(name, catalog))


def wants_fork(given: object) -> bool:
    """Whether the call asks for a fork. The input need not be validated."""
    return isinstance(given, dict) and str(given.get("subagent_type") or FORK).strip() == FORK


def _unknown_type(name: str, catalog: Catalog) -> str:
    known = [kind.name for kind in catalog.kinds]
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"Unknown agent type {name[:100]!r}.{meant} The types are: {', '.join([*known, FORK])}."


def agent_tool(catalog: Catalog, act: Act | None = None) -> Builtin:
    """Return the Agent tool. Without `act` it only describes itself."""
    text, nobody = f"{prompt_text(__file__, 'agent')}\n\n{list_types(catalog)}", _refuse_with("Agents cannot be started here.")
    return Builtin(name=AGENT, description=text, schema=AGENT_SCHEMA, read_only=False, act=act or nobody, together=True)


def _refuse_with(sentence: str) -> Act:
    return lambda given, context: failure(sentence)


def list_types(catalog: Catalog) -> str:
    """List the types, one per line as long as there is room, then only the names of the rest."""
    lines, left = ["Types:"], LISTING_CHARS
    for number, kind in enumerate(catalog.kinds):
        tools = "all tools but Agent" if kind.tools is None else f"tools: {', '.join(kind.tools) or 'none'}"
        line = f"- {kind.name}: {kind.description} ({tools})"
        left -= len(line)
        if left < 0:
            return "\n".join([*lines, f"- also: {', '.join(rest.name for rest in catalog.kinds[number:])}"])
        lines.append(line)
    return "\n".join(lines)


SEND_SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "to": {
            "type": "string",
            "minLength": 1,
            "maxLength": 4_096,
            "description": "A name, NAME@TEAM, * for everyone, uds:PATH for another session's socket, or bridge:ID",
        },
        "message": {
            "type": "string",
            "minLength": 1,
            "maxLength": MOST_TEXT,
            "description": "Plain text, or one of the JSON objects above",
        },
        "summary": {"type": "string", "maxLength": MOST_SUMMARY, "description": "The message in five to ten words"},
    },
    "required": ["to", "message"],
}

Where: TypeAlias = Literal["name", "everybody", "uds", "bridge"]


# Prefixes of addresses outside this process.
_FAR: tuple[Where, ...] = ("uds", "bridge")


class Sending(NamedTuple):
    where: Where
    to: str  # a name, a path or an id; empty for everyone
    text: str
    summary: str
    structured: Structured | None


def send_tool(act: Act | None = None) -> Tool:
    """Return the SendMessage tool. Its message may also be a JSON object. Without `act` it only describes itself."""
    text, nobody = prompt_text(__file__, "send_message"), _refuse_with("Messages cannot be sent here.")
    return guard(Builtin(name=SEND, description=text, schema=SEND_SCHEMA, read_only=False, act=act or nobody), _with_text)


def _with_text(arguments: Any) -> Any:
    if isinstance(arguments, Mapping) and isinstance(arguments.get("message"), Mapping):
        return {**arguments, "message": json.dumps(arguments["message"], ensure_ascii=False)}
    return arguments


def read_sending(given: Wire) -> Sending | CallRefusal:
    """Parse a call whose input already fits the schema. The name is taken literally, because permission rules match the literal text."""
    to, text = given["to"], given["message"].strip()
    summary = " ".join((given.get("summary") or "").split())
    if not to.strip() or not text:
        return CallRefusal("to and message must not be empty. Send the call again with both.")
    structured = read_structured(text)
    if isinstance(structured, UnreadableMessage):
        return CallRefusal(f"The message was not sent: {structured.sentence}")
    for where in _FAR:
        if to.startswith(f"{where}:"):
            rest = to.removeprefix(f"{where}:")
            named = Sending(where, rest, text, summary, structured)
            return named if rest.strip() else CallRefusal(f"The address after {where}: is missing.")
    if to == EVERYBODY:
        if structured is not None:
            return CallRefusal("A request or a response goes to one agent. Name it in `to`.")
        return Sending("everybody", "", text, summary, None)
    if len(to) > MOST_NAME:
        return CallRefusal(f"The name is too long (more than {MOST_NAME} characters).")
    return Sending("name", to.removeprefix(PREFIX) if _JOB.fullmatch(to) else to, text, summary, structured)


def describe_unknown(name: str, *known: Sequence[str]) -> str:
    """Return the error for an unknown recipient, with the known ones."""
    found = [each for names in known for each in names]
    more = f", and {len(found) - MOST_KNOWN} more" if len(found) > MOST_KNOWN else ""
    listed = f"Known recipients: {', '.join(found[:MOST_KNOWN])}{more}." if found else "Nobody is running at the moment."
    return f"Unknown recipient {name[:100]!r}. {listed}"
