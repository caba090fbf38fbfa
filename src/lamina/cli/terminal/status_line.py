"""The status line: how much of the window is left, how much of the last request came from the cache, what it cost so far.

Pure. What matters most stands first, and what does not fit into a narrow terminal is left off from the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...conversation.window.thresholds import WindowState
from ...core.usage import Usage
from ...layers.l7_agents.report import AgentState
from ...layers.l7_agents.summary import PURPOSE as SUMMARIES

NO_WORK = "none"


def describe_work(jobs: Sequence[str], agents: Sequence[AgentState]) -> str:
    """Background work in a person's words: an agent is known by what it is doing, or else by its task."""
    doing = {agent.name: f"agent: {agent.summary or agent.description}" for agent in agents}
    return ", ".join(doing.get(job, job) for job in jobs if job != SUMMARIES)


def describe_status(
    window: WindowState, last: Usage | None, dollars: float | None, usage: Usage, mode: str, work: str = NO_WORK
) -> list[str]:
    """`last` is of the last call; `dollars` is None where the model has no known price; `work` goes on in the background."""
    warning = " (nearly full)" if window.above_error else " (filling up)" if window.above_warning else ""
    if window.at_blocking:
        warning = " (full: /compact, /clear or /undo)"
    cost = f"{usage.total:,} tokens"
    if dollars is not None:
        cost = f"${dollars:.4f}" if dollars < 1 else f"${dollars:,.2f}"
    return [
        f"context {window.percent_left:.0f}% left{warning}",
        *([f"cache {last.cache_read / last.prompt:.0%}"] if last is not None and last.prompt else ()),
        cost,
        f"mode {mode}",
        f"background: {work}",
    ]


def fit_parts(found: list[str], width: int, dash: str = "·") -> str:
    """As many parts as there is room for; the first stays whatever the width."""
    line = found[0]
    for part in found[1:]:
        longer = f"{line} {dash} {part}"
        if len(longer) > width:
            break
        line = longer
    return line[:width]
