"""The status line: how much of the window is left, how much of the last request came from the cache, what it cost so far.

Pure. What matters most stands first, and what does not fit into a narrow terminal is left off from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...conversation.window.thresholds import WindowState
from ...core.usage import Usage
from ...layers.l7_agents.report import AgentState
from ...layers.l7_agents.summary import PURPOSE as SUMMARIES

NO_WORK = "none"


class Status(NamedTuple):
    window: WindowState
    last: Usage | None  # of the last call
    dollars: float | None  # None: the model has no known price
    usage: Usage
    mode: str
    work: str = NO_WORK  # in the background


def work_of(jobs: Sequence[str], agents: Sequence[AgentState]) -> str:
    """Background work in a person's words: an agent is known by what it is doing, or else by its task."""
    doing = {agent.name: f"agent: {agent.summary or agent.description}" for agent in agents}
    return ", ".join(doing.get(job, job) for job in jobs if job != SUMMARIES)


def parts(status: Status) -> list[str]:
    found = [f"context {status.window.percent_left:.0f}% left{_warning(status.window)}"]
    if status.last is not None and status.last.prompt:
        found.append(f"cache {status.last.cache_read / status.last.prompt:.0%}")
    found.append(_cost(status))
    return [*found, f"mode {status.mode}", f"background: {status.work}"]


def _warning(window: WindowState) -> str:
    if window.at_blocking:
        return " (full: /compact, /clear or /undo)"
    return " (nearly full)" if window.above_error else " (filling up)" if window.above_warning else ""


def _cost(status: Status) -> str:
    if status.dollars is None:
        return f"{status.usage.total:,} tokens"
    return f"${status.dollars:.4f}" if status.dollars < 1 else f"${status.dollars:,.2f}"


def fitted(found: list[str], width: int, dash: str = "·") -> str:
    """As many parts as there is room for; the first stays whatever the width."""
    line = found[0]
    for part in found[1:]:
        longer = f"{line} {dash} {part}"
        if len(longer) > width:
            break
        line = longer
    return line[:width]
