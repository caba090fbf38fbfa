"""The row "recorded": what the transcript itself reports, and what its program had removed from view. Pure.

A recorded request that read less from the cache than the one before had left there broke the cache. If neither a pause, nor
another model, nor something that the program removed explains it, the break is unexplained: a changed tool list, an eviction, a
second program. No policy can prevent those, and a replay has none. So the row is billed without unexplained breaks of less than
five minutes, and they are shown apart.

A compaction was a call too. Transcripts of most other programs do not have it, so it is estimated: it read what was in the cache and
wrote the recorded summary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial

import msgspec

from ..core.blocks import ToolResult
from ..core.cache import MINUTES_5
from ..core.usage import Usage
from ..core.view import Item
from ..prompt.break_causes import TOKENS, TTL_SECONDS, readable_after
from .figures import EXPIRED, UNEXPLAINED, ReplayFigures, RequestPoint, bill_call, has_missed, usage_cost
from .play import Played
from .repeated_reads import ReadTracker
from .script import Probe, RecordedAnswer, ReplayScript, look_for
from .token_scale import TokenCounter


def replay_recorded(script: ReplayScript, probes: Mapping[int, Probe], window: int, count: TokenCounter) -> Played:
    """Answers without reported usage count as calls with no tokens."""
    made = script.recorded
    total = ReplayFigures(compactions=made.compactions, clearings=made.clearings)
    points, reads = list[RequestPoint](), ReadTracker()
    before, asked = _Before(), ""
    results = _results_in_view(script)
    removals = {*script.recorded.gone.values(), *script.recorded.results_gone.values()}
    for at, step in enumerate(script.steps):
        if not isinstance(step, RecordedAnswer):
            reads.came(step.blocks)
            asked = step.time
            continue
        total += reads.called(step.calls, partial(_is_in_view, results, at))
        if step.usage is not None and step.sent:
            removed = not removals.isdisjoint(range(before.at + 1, at + 1))
            broken = before.judge(step, asked, script.ttl, removed=removed)
            billed = bill_call(step.model, step.usage, window=window)
            total += billed + broken
            reason = "recorded" if removed and broken.breaks else ""
            miss = EXPIRED if broken.expired else UNEXPLAINED if broken.unexplained_breaks else ""
            point = RequestPoint(_time(asked), step.usage.prompt, reason, step=at, usage=step.usage, usd=billed.usd, miss=miss)
            points.append(point._replace(extra_usd=broken.usd, extra_units=broken.units))
            before = _Before(at, step)
        if (probe := probes.get(at)) is not None:
            total += look_for(probe, _recorded_view(script, at))
    for usage in script.recorded.side:
        total += bill_call(script.model, usage, side=True)
    if script.system is None:  # a transcript of Lamina has its prompt and its side calls
        total += _summary_calls(script, count)
    return Played(total, tuple(points))


def _summary_calls(script: ReplayScript, count: TokenCounter) -> ReplayFigures:
    total = ReplayFigures()
    for since, item in script.recorded.summaries[script.recorded.summary_calls :]:
        before = [answer for at, answer in script.answers.items() if at < since and answer.usage is not None]
        if before and (usage := before[-1].usage) is not None:
            made = Usage(cache_read=readable_after(usage), output_tokens=count.of(item.blocks))
            billed = bill_call(before[-1].model, made, side=True)
            total += billed + ReplayFigures(unrecorded_calls=1, unrecorded_usd=billed.usd)
    return total


class _Before(msgspec.Struct, frozen=True):
    """The request before the current one."""

    at: int = -1
    answer: RecordedAnswer | None = None

    def judge(self, step: RecordedAnswer, asked: str, ttl: str, *, removed: bool) -> ReplayFigures:
        """Return the figures of a cache miss; those of an unexplained one take its cost out of the row."""
        if self.answer is None or self.answer.usage is None or step.usage is None:
            return ReplayFigures()
        readable = readable_after(self.answer.usage)
        if not has_missed(step.usage, readable):
            return ReplayFigures()
        pause = _seconds(self.answer.time, asked)
        if pause >= TTL_SECONDS[ttl]:
            return ReplayFigures(expired=1)
        shrunk = step.usage.prompt < self.answer.usage.prompt - TOKENS  # the program removed something and did not record it
        if removed or shrunk or step.model != self.answer.model or pause >= MINUTES_5:
            return ReplayFigures(breaks=1)
        return ReplayFigures(breaks=1) + _taken_out(step.model, step.usage, readable)


def _taken_out(model: str, usage: Usage, readable: int) -> ReplayFigures:
    """Return the negative difference to a request that had read what was in the cache."""
    lost = min(readable - usage.cache_read, usage.cache_write)
    hour = min(lost, usage.cache_write_1h)
    healed = msgspec.structs.replace(
        usage,
        cache_read=usage.cache_read + lost,
        cache_write=usage.cache_write - lost,
        cache_write_1h=usage.cache_write_1h - hour,
    )
    less = usage_cost(model, usage) - usage_cost(model, healed)
    return ReplayFigures(usage=Usage(0, lost, -lost, -hour, 0), usd=-less, unexplained_breaks=1, unexplained_usd=less)


def _recorded_view(script: ReplayScript, at: int) -> Iterator[Item]:
    """Yield what the recorded model saw after this step."""
    gone = script.recorded.gone
    for since, item in script.recorded.summaries:
        if since <= at < gone.get(item.uuid, math.inf):
            yield item
    for step, item in script.items:
        if step <= at < _gone_at(script, item):
            yield item


def _gone_at(script: ReplayScript, item: Item) -> float:
    """Return the first step that no longer saw an item, or one of its results."""
    cleared = (script.recorded.results_gone.get(call, math.inf) for call in _calls(item))
    return min(script.recorded.gone.get(item.uuid, math.inf), *cleared, math.inf)


def _results_in_view(script: ReplayScript) -> dict[str, list[tuple[int, float]]]:
    """Return the steps that saw the result of each call: the first one, and the first that no longer did."""
    found: dict[str, list[tuple[int, float]]] = {}
    for step, item in script.items:
        for call in _calls(item):
            found.setdefault(call, []).append((step, _gone_at(script, item)))
    return found


def _is_in_view(results: Mapping[str, list[tuple[int, float]]], at: int, call: str) -> bool:
    return any(first <= at < end for first, end in results.get(call, ()))


def _calls(item: Item) -> list[str]:
    return [block.tool_use_id for block in item.blocks if isinstance(block, ToolResult)]


def _seconds(before: str, now: str) -> float:
    return _time(now) - _time(before) if _time(now) and _time(before) else 0.0


def _time(written: str) -> float:
    """Return a recorded time in seconds; 0 if it is missing or out of range."""
    try:
        return datetime.fromisoformat(written).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
