"""What a call of the Agent tool asks for: a fork of the conversation, or a subagent of a type. Pure.

Its description lists the types. It is made once, when a session begins, and stays: another text would be another prefix.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TypeAlias

import msgspec

from ...core.blocks import Wire
from ...core.prompt_files import prompt_text
from ...tools.tool import Builtin, Context, ToolOutput, failure
from .files import Catalog
from .types import AGENT, FORK, Kind

MAX_DESCRIPTION = 200
# The listing of a long catalog: half of what the other tools' descriptions take together.
MOST_LISTED = 12_000

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "description": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_DESCRIPTION,
            "description": "The task in three to five words, for the person",
        },
        "prompt": {"type": "string", "minLength": 1, "description": "The whole task, and what the report is to say"},
        "subagent_type": {"type": "string", "description": "One of the types above; absent or fork: a fork of this conversation"},
        "run_in_background": {"type": "boolean", "description": "Go on at once; the report comes later by itself"},
    },
    "required": ["description", "prompt"],
}

IN_A_FORK = "a fork starts no further agents; do the work yourself, with the other tools."


class Forked(msgspec.Struct, frozen=True):
    """A fork of the conversation."""

    description: str
    prompt: str
    background: bool

    @property
    def name(self) -> str:
        return FORK


class Fresh(msgspec.Struct, frozen=True):
    """A subagent with a conversation of its own."""

    description: str
    prompt: str
    background: bool
    kind: Kind

    @property
    def name(self) -> str:
        return self.kind.name


class Refusal(msgspec.Struct, frozen=True):
    sentence: str


Wanted: TypeAlias = Forked | Fresh
Act: TypeAlias = Callable[[Wire, Context], ToolOutput]


def read_call(given: Wire, catalog: Catalog) -> Wanted | Refusal:
    """`given` fits the schema."""
    words, prompt = " ".join(given["description"].split()), given["prompt"].strip()
    background = bool(given.get("run_in_background"))
    name = (given.get("subagent_type") or FORK).strip()
    if not words or not prompt:
        return Refusal("description and prompt must hold words; send the call again with both.")
    if name == FORK:
        return Forked(words, prompt, background)
    kind = catalog.find(name)
    return Fresh(words, prompt, background, kind) if kind is not None else Refusal(_unknown(name, catalog))


def wants_fork(given: object) -> bool:
    """Of input nobody has checked yet."""
    return isinstance(given, dict) and str(given.get("subagent_type") or FORK).strip() == FORK


def _unknown(name: str, catalog: Catalog) -> str:
    known = [kind.name for kind in catalog.kinds]
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"There is no agent type {name[:100]!r}.{meant} The types are: {', '.join([*known, FORK])}."


def agent_tool(catalog: Catalog, act: Act | None = None) -> Builtin:
    """Without `act` it only describes itself."""
    text = prompt_text(__file__, "agent")
    return Builtin(
        name=AGENT,
        description=f"{text}\n\n{listing(catalog)}",
        schema=SCHEMA,
        read_only=False,
        act=act or _nobody,
        together=True,
    )


def listing(catalog: Catalog) -> str:
    """One line for each type, as many as there is room for; the names of the rest."""
    lines, left = ["Types:"], MOST_LISTED
    for number, kind in enumerate(catalog.kinds):
        tools = "all tools but Agent" if kind.tools is None else f"tools: {', '.join(kind.tools) or 'none'}"
        line = f"- {kind.name}: {kind.description} ({tools})"
        left -= len(line)
        if left < 0:
            return "\n".join([*lines, f"- also: {', '.join(rest.name for rest in catalog.kinds[number:])}"])
        lines.append(line)
    return "\n".join(lines)


def _nobody(given: Wire, context: Context) -> ToolOutput:
    return failure("No agent can be started here.")
