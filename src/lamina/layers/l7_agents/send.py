"""What a call of the SendMessage tool asks for: who is written to, and what. Pure.

Its description never changes while a session lives: who can be written to is not in it, and an unknown name is answered with those
there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from ...core.blocks import Wire
from ...core.prompt_files import prompt_text
from ...tools.tool import Builtin, Context, Tool, ToolOutput, failure, guard
from .call import Act, Refusal
from .letters import MOST_NAME, MOST_SUMMARY, MOST_TEXT, Structured, Unreadable, read_structured
from .types import SEND

MAIN = "main"
EVERYBODY = "*"
UDS, BRIDGE = "uds:", "bridge:"
# How an agent's files and jobs are called; its name is the rest.
PREFIX = "agent-"
_JOB = re.compile(rf"{PREFIX}[0-9a-f]{{8}}")
# Of the known names in an error.
MOST_LISTED = 20

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "to": {
            "type": "string",
            "minLength": 1,
            "maxLength": 4_096,
            "description": "A name, * for everybody, uds:PATH for another session's socket, or bridge:ID",
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


class Sending(NamedTuple):
    where: Where
    to: str  # a name, a path or an id; empty for everybody
    text: str
    summary: str
    structured: Structured | None


def send_tool(act: Act | None = None) -> Tool:
    """Its message may come as the object itself. Without `act` it only describes itself."""
    text = prompt_text(__file__, "send_message")
    return guard(Builtin(name=SEND, description=text, schema=SCHEMA, read_only=False, act=act or _nobody), _with_text)


def _with_text(arguments: Any) -> Any:
    if isinstance(arguments, Mapping) and isinstance(arguments.get("message"), Mapping):
        return {**arguments, "message": json.dumps(arguments["message"], ensure_ascii=False)}
    return arguments


def _nobody(given: Wire, context: Context) -> ToolOutput:
    return failure("No message can be sent here.")


def read_sending(given: Wire) -> Sending | Refusal:
    """`given` fits the schema. A name is taken as it is spelled: rules speak of what stands in the call."""
    to, text = given["to"], given["message"].strip()
    summary = " ".join((given.get("summary") or "").split())
    if not to.strip() or not text:
        return Refusal("to and message must hold words; send the call again with both.")
    structured = read_structured(text)
    if isinstance(structured, Unreadable):
        return Refusal(f"The message was not sent: {structured.sentence}")
    for prefix, where in ((UDS, "uds"), (BRIDGE, "bridge")):
        if to.startswith(prefix):
            rest = to.removeprefix(prefix)
            kind: Where = "uds" if where == "uds" else "bridge"
            return (
                Sending(kind, rest, text, summary, structured)
                if rest.strip()
                else Refusal(f"{prefix} must name somebody behind it.")
            )
    if to == EVERYBODY:
        if structured is not None:
            return Refusal("A request or an answer is for one agent: name it.")
        return Sending("everybody", "", text, summary, None)
    if len(to) > MOST_NAME:
        return Refusal("The name is too long to be one.")
    return Sending("name", to.removeprefix(PREFIX) if _JOB.fullmatch(to) else to, text, summary, structured)


def unknown(name: str, agents: Sequence[str], members: Sequence[str]) -> str:
    """An error that lists who can be written to."""
    found = [*agents, *members]
    more = f", and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
    known = f"These can be written to: {', '.join(found[:MOST_LISTED])}{more}." if found else "Nobody can be written to now."
    return f"Nobody here is called {name[:100]!r}. {known}"
