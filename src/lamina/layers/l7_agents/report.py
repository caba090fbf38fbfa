"""Texts about agents: for the parent's model when an agent starts, when its report arrives, and after a compaction. Pure.

A report is another model's text, so it is data: it is enclosed in tags that it cannot close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from ...core.blocks import Wire
from ...core.fence import Fenced, escape, fence, reminder
from ...core.prompt_files import prompt_text
from ...core.usage import Usage
from ...fork.host import Restorable
from ...language.wording import counted
from .tools import list_types
from .types import Catalog

# lost: the session that started the agent ended before its report arrived.
Status: TypeAlias = Literal["running", "done", "failed", "stopped", "lost"]

# Limit for a report that arrives as context: 7,500 tokens. A longer one is moved to a file, or truncated if there are no files.
MOST_REPORTED = 30_000
# Number of background agents named after a compaction.
MOST_NAMED = 20
KIND = "agents"
NOTHING_SAID = "The agent ended without a report."
_ENDED: Mapping[Status, str] = {
    "running": "is running.",
    "done": "is done. Its report:",
    "failed": "failed:",
    "stopped": "was stopped before it finished.",
    "lost": "was lost when the session that started it ended. Its report will not arrive. Start the agent again if you need it.",
}


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """The current state of an agent."""

    id: str
    type: str
    description: str
    background: bool
    status: Status = "running"
    seconds: float = 0.0
    calls: int = 0  # tool calls
    rounds: int = 0  # answers of its model
    usage: Usage = Usage()
    usd: float | None = 0.0
    why: str = ""  # the reason of a failure
    call: str = ""  # the tool call that started it
    summary: str = ""  # its activity when last asked
    label: str = ""  # the name it was given

    @property
    def name(self) -> str:
        """The name of its job, its session and its files."""
        return f"agent-{self.id}"

    @property
    def address(self) -> str:
        """The name that SendMessage takes."""
        return self.label or self.id

    def event(self) -> Wire:
        """Return the state as an event for the log."""
        usage = self.usage
        return {
            "id": self.id,
            "type": self.type,
            "description": self.description,
            "background": self.background,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "calls": self.calls,
            "rounds": self.rounds,
            "input": usage.input_tokens,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "output": usage.output_tokens,
            "hit_rate": usage.hit_rate,
            "usd": self.usd,
            "tool_use_id": self.call,
        } | {name: value for name, value in (("why", self.why), ("summary", self.summary), ("name", self.label)) if value}

    @property
    def line(self) -> str:
        tail = f": {self.why}" if self.why else f": {self.summary}" if self.summary and self.status == "running" else ""
        calls = counted(self.calls, "call")
        return f"{self.address} ({self.description}): {self.status}, {self.seconds:.0f} s, {calls}{tail}"


def fork_directive(prompt: str) -> str:
    return f"{prompt_text(__file__, 'fork')}\n\n{prompt}"


def describe_launch(state: AgentState) -> str:
    return (
        f"Agent {state.address} ({state.description}) works in the background. Its report arrives by itself when it is done. Continue with "
        "something else in the meantime. Do not wait for the report or make up its content."
    )


def describe_loss(agent: str, description: str) -> str:
    """Describe a lost agent for the user."""
    return f"The background agent {agent} ({description}) was lost when the session that started it ended."


def render_report(state: AgentState, text: str, *, preview: str | None = None, most: int = MOST_REPORTED) -> str:
    """Render the end of a background agent as context. `preview` is layer 1's preview of a report that was moved to a file."""
    head = escape(f"The background agent {state.address} ({state.description}) {_ENDED[state.status]}")
    if preview is not None:
        return reminder([Fenced("# Agents"), head, Fenced(f"<agent-message>\n{preview}\n</agent-message>")])
    left = len(text) - most
    note = f"\n[{counted(left, 'character')} left out.]" if left > 0 else ""
    return reminder([Fenced("# Agents"), head, *([fence("agent-message", text[:most] + note)] if text else [])])


def list_restorables(catalog: Catalog, states: Sequence[AgentState]) -> list[Restorable]:
    """Return what a compaction took out of view, as plain texts; the caller fences them. Built-in types are not included, since they
    are part of the tool's description, which stays."""
    back: list[Restorable] = []
    background = [state for state in states if state.background]
    if background:
        lines = "\n".join(f"- {state.line}" for state in background[-MOST_NAMED:])
        said = "Background agents and their state; the report of a running agent arrives by itself:"
        back.append(Restorable(KIND, "background", f"{said}\n{lines}"))
    if catalog.own:
        back.append(Restorable(KIND, "types", f"Agent types for the Agent tool.\n{list_types(catalog)}"))
    return back
