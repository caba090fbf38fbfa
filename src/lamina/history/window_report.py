"""Report what fills a session's context window, by kind (T8): the figures behind `lamina context`, /context and the MCP server.

The parts are estimates. Once the model has reported its usage, the share of the system prompt and tools is the difference between that
report and the other parts. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..conversation.window.breakdown import Breakdown, LabelledBlock, break_down
from ..conversation.window.count import Count, count_log
from ..conversation.window.estimate import estimate
from ..conversation.window.features import Memo, measure_all
from ..conversation.window.model_window import window_of
from ..conversation.window.thresholds import Thresholds, WindowState, state_of, thresholds
from ..core.blocks import Wire, canonical, text
from ..core.errors import InputError
from ..core.log import Log
from ..core.records import Boundary, Event, Message, Record, Spill
from ..core.settings import Settings
from ..core.view import View
from ..disk.home.agent_homes import Origin
from ..language.text import Text
from .content_kinds import MEMORY_KINDS

SUMMARY_KINDS = frozenset({"summary", "partial", "snip", "collapse"})


class WindowReport(NamedTuple):
    model: str
    tokens: int
    limits: Thresholds
    state: WindowState
    system: int  # the system prompt and the tools
    parts: Breakdown
    spilled: tuple[Spill, ...] = ()  # results stored in files, with a preview of each in the window
    autocompact: bool = True
    source: str = ""  # where the window's size comes from; empty if unknown
    origin: Origin = "lamina"  # the agent that wrote the session
    compacted_at: int = 0  # tokens in the window when the agent last compacted it; 0 if it never did

    @property
    def limits_apply(self) -> bool:
        """Whether Lamina reserves room in this window and compacts it. Other agents have limits of their own, which no file states."""
        return self.origin == "lamina"


def report_on_transcript(read: Callable[[], Iterable[Record]], settings: Settings, origin: Origin = "lamina") -> WindowReport:
    """Build the report from a transcript that the agent `origin` wrote."""
    model, recorded, last, compacted_at = "", 0, 0, 0

    def noting() -> Iterator[Record]:
        nonlocal model, recorded, last, compacted_at
        for record in read():
            if isinstance(record, Message) and record.model and not record.silent:
                model = record.model
                last = record.usage.total if record.usage is not None and not record.sidechain else last
            elif isinstance(record, Boundary) and record.trigger == "auto" and not record.sidechain:
                compacted_at = record.tokens_before or last
            elif isinstance(record, Event):
                recorded = record.window or recorded
            yield record

    log = Log.load(noting)
    view = log.view
    if not view.items:
        raise InputError("session", "the transcript has no readable messages", "run `lamina sessions list` to see the sessions")
    policy, window = settings.policy.window, window_of(model, settings, recorded=recorded)
    limits = thresholds(
        window.tokens, window.max_output, policy, settings.autocompact_percent, compact_in=settings.auto_compact_window
    )
    if origin != "lamina":
        limits = _whole_window(window.tokens)
    report = report_on(view, count_log(log), limits, model=model, autocompact=settings.auto_compact)
    return report._replace(spilled=find_spills(log), source=window.source, origin=origin, compacted_at=compacted_at)


def _whole_window(tokens: int) -> Thresholds:
    """Return a window in which nothing is reserved and nothing happens before it is full."""
    return Thresholds(tokens, tokens, tokens, tokens, tokens, scale=1.0, window=tokens, latest=tokens)


def find_spills(log: Log) -> tuple[Spill, ...]:
    return tuple(made for made in log.decisions.values() if isinstance(made, Spill))


def report_on(
    view: View, count: Count, limits: Thresholds, *, model: str, autocompact: bool, memo: Memo | None = None
) -> WindowReport:
    """Build the report from a view and its token count."""
    parts = break_down(_label_blocks(view), count.calibration, memo)
    # An estimate, for a prompt that no usage has measured yet, and for a report that leaves no room for it.
    system = estimate_prompt(view.snapshot.system, view.snapshot.tools, count) if view.snapshot is not None else 0
    if count.reported:
        tokens = count.tokens
        estimated = system + parts.total
        # Estimates that exceed the report shrink in the same proportion, so that no row disappears.
        system = tokens - parts.total if estimated <= tokens else tokens * system // estimated
        parts = parts.fitted(tokens - system)
    else:
        tokens = parts.total + system
    state = state_of(max(tokens, count.judged), limits, autocompact_on=autocompact, base=system)
    return WindowReport(model, tokens, limits, state, system, parts, autocompact=autocompact)


def estimate_prompt(system: list[Wire], tools: list[Wire], count: Count) -> int:
    """Estimate the tokens of the system prompt and the tools."""
    parts = [text(canonical(part).decode("utf-8", "replace")) for part in (system, tools)]
    return estimate(measure_all(parts), count.calibration)


def _label_blocks(view: View) -> Iterator[LabelledBlock]:
    for item, block in view.blocks():
        if item.kind in SUMMARY_KINDS:
            yield item.role, block, "summary"
        elif item.kind.startswith("attachment:"):
            yield item.role, block, "memory" if item.kind.removeprefix("attachment:") in MEMORY_KINDS else "attachment"
        else:
            yield item.role, block, None


def to_json(report: WindowReport) -> dict[str, Any]:
    """Return the report for --json.

    `window.size` is the model's whole window. `window.effective` leaves room for an answer; `tokens` and `percent_left` count
    against it. The limits of other agents are unknown, so they are null.
    """
    ours, limits = report.limits_apply, {"effective": report.limits.effective}
    found = (report.limits.warning, report.limits.starts_at(report.system), report.limits.blocking, report.autocompact)
    names = ("warning", "autocompact", "blocking", "auto_compact")
    return {
        "model": report.model,
        "tokens": report.tokens,
        "percent_left": round(report.state.percent_left, 1),
        "window": {"size": report.limits.window, "source": report.source or None, **limits}
        | {name: value if ours else None for name, value in zip(names, found, strict=True)}
        | {"last_compacted_at": report.compacted_at or None},
        "system_and_tools": report.system,
        **report.parts.to_json(),
        "spilled": [{"tool_use_id": each.tool_use_id, "path": each.path, "bytes": each.size} for each in report.spilled],
    }


def list_kinds(report: WindowReport) -> list[tuple[str, int]]:
    parts = report.parts
    kinds = [
        ("system prompt and tools", report.system),
        ("your messages", parts.human),
        ("answers", parts.assistant),
        ("thinking", parts.thinking),
        *((Text("{name} calls", name=name), tokens) for name, tokens in parts.requests.items()),
        *((Text("{name} results", name=name), tokens) for name, tokens in parts.results.items()),
        ("memory and instructions", parts.memory),
        ("attachments", parts.attachments),
        ("summaries", parts.summary),
        ("other", parts.other),
    ]
    return [(name, tokens) for name, tokens in kinds if tokens]
