"""What is said of agents: to the parent's model when one was started, when its report came, and after a compaction. Pure.

A report is another model's words, so it is data: it stands between tags and can't end them (G3).
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
from .tools import list_types
from .types import Catalog

# lost: the session that started it ended without its report.
Status: TypeAlias = Literal["running", "done", "failed", "stopped", "lost"]

# Of a report that comes as context: 7,500 tokens. A longer one is moved to a file, or cut where there are no files.
MOST_REPORTED = 30_000
# Of the background agents that are named after a compaction.
MOST_NAMED = 20
KIND = "agents"
NOTHING_SAID = "The agent ended without a report."
_ENDED: Mapping[Status, str] = {
    "running": "is running.",
    "done": "is done. Its report:",
    "failed": "failed:",
    "stopped": "was stopped before it was done.",
    "lost": "was lost when the session that started it ended; no report of it will come. Start it again if it is needed.",
}


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    """An agent as it stands now."""

    id: str
    type: str
    description: str
    background: bool
    status: Status = "running"
    seconds: float = 0.0
    calls: int = 0  # of tools
    rounds: int = 0  # answers of its model
    usage: Usage = Usage()
    usd: float | None = 0.0
    why: str = ""  # it failed
    call: str = ""  # the call that started it
    summary: str = ""  # what it was doing when it was last asked (A7)

    @property
    def name(self) -> str:
        """Of its job, its session and its files."""
        return f"agent-{self.id}"

    def event(self) -> Wire:
        """As it stands in the log (K5)."""
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
        } | {name: value for name, value in (("why", self.why), ("summary", self.summary)) if value}

    @property
    def line(self) -> str:
        tail = f": {self.why}" if self.why else f": {self.summary}" if self.summary and self.status == "running" else ""
        calls = f"{self.calls} call{'' if self.calls == 1 else 's'}"
        return f"{self.id} ({self.description}): {self.status}, {self.seconds:.0f} s, {calls}{tail}"


def fork_directive(prompt: str) -> str:
    return f"{prompt_text(__file__, 'fork')}\n\n{prompt}"


def describe_launch(state: AgentState) -> str:
    return (
        f"Agent {state.id} ({state.description}) works in the background. Its report comes by itself, when it is done: go on with "
        "something else meanwhile, and neither wait for it nor make up what it may say."
    )


def describe_loss(agent: str, description: str) -> str:
    """For the person."""
    return f"The background agent {agent} ({description}) was lost when the session that started it ended."


def render_report(state: AgentState, text: str, *, preview: str | None = None, most: int = MOST_REPORTED) -> str:
    """A background agent's end, as context. `preview`: the report lies in a file, and this is what layer 1 shows of it."""
    head = escape(f"The background agent {state.id} ({state.description}) {_ENDED[state.status]}")
    if preview is not None:
        return reminder([Fenced("# Agents"), head, Fenced(f"<agent-message>\n{preview}\n</agent-message>")])
    left = len(text) - most
    note = f"\n[{left:,} more characters are left out.]" if left > 0 else ""
    return reminder([Fenced("# Agents"), head, *([fence("agent-message", text[:most] + note)] if text else [])])


def list_restorables(catalog: Catalog, states: Sequence[AgentState]) -> list[Restorable]:
    """C4: what a compaction took out of view, as plain texts: who puts them back fences them. The types that are ours alone stand in
    the tool's description, which stays."""
    back: list[Restorable] = []
    background = [state for state in states if state.background]
    if background:
        lines = "\n".join(f"- {state.line}" for state in background[-MOST_NAMED:])
        said = "Background agents as they stand; the report of one that runs comes by itself:"
        back.append(Restorable(KIND, "background", f"{said}\n{lines}"))
    if catalog.own:
        back.append(Restorable(KIND, "types", f"What the Agent tool can start.\n{list_types(catalog)}"))
    return back
