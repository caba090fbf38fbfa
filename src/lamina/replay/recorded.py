"""The row of what was recorded: what the transcript's own usage reports, and what its program had taken out of view by then. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial

from ..core.blocks import ToolResult
from ..core.view import Item
from ..prompt.break_causes import TTL_SECONDS, readable_after
from .figures import ReplayFigures, bill_call, has_missed
from .play import Played
from .probes import Probe, look_for
from .repeated_reads import ReadTracker
from .script import RecordedAnswer, ReplayScript


def replay_recorded(script: ReplayScript, probes: Mapping[int, Probe], window: int) -> Played:
    """Answers that report nothing count as calls of no tokens."""
    total, sizes, reads = ReplayFigures(compactions=script.recorded.compactions), list[int](), ReadTracker()
    readable, last = 0, ""
    for at, step in enumerate(script.steps):
        if not isinstance(step, RecordedAnswer):
            reads.came(step.blocks)
            continue
        total += reads.called(step.calls, partial(_seen, script, at))
        if step.usage is not None:
            missed = has_missed(step.usage, readable)
            expired = missed and _seconds(last, step.time) >= TTL_SECONDS[script.ttl]
            total += bill_call(step.model, step.usage, window=window) + ReplayFigures(
                expired=expired, breaks=missed and not expired
            )
            readable, last = readable_after(step.usage), step.time
            sizes.append(step.usage.prompt)
        if (probe := probes.get(at)) is not None:
            total += look_for(probe, _view(script, at))
    for usage in script.recorded.side:
        total += bill_call(script.model, usage, side=True)
    return Played(total, tuple(sizes))


def _view(script: ReplayScript, at: int) -> Iterator[Item]:
    """What the recorded model saw behind this step."""
    gone, cleared = script.recorded.gone, script.recorded.results_gone
    for since, item in script.recorded.summaries:
        if since <= at < gone.get(item.uuid, at + 1):
            yield item
    for step, item in script.items:
        calls = [block.tool_use_id for block in item.blocks if isinstance(block, ToolResult)]
        if step <= at < gone.get(item.uuid, at + 1) and not any(cleared.get(call, at + 1) <= at for call in calls):
            yield item


def _seen(script: ReplayScript, at: int) -> frozenset[str]:
    return frozenset(block.tool_use_id for item in _view(script, at) for block in item.blocks if isinstance(block, ToolResult))


def _seconds(before: str, now: str) -> float:
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(before)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
