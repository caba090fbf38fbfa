"""The report in words: the cells of its table and the sentences that go with it. Pure; a terminal and a page show the same."""

from __future__ import annotations

from collections.abc import Callable

from ..core.wording import counted
from .figures import ReplayFigures
from .run import ReplayReport
from .variants import APPEND, RECORDED


def short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}" if letter == "k" else f"{number / size:.2f}{letter}"
    return f"{number:.0f}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


_CELLS: dict[str, Callable[[ReplayFigures], str]] = {
    "input units": lambda figures: short(figures.input_units),
    "cost": lambda figures: "?" if figures.cost_usd is None else f"${figures.cost_usd:,.2f}",
    "cached": lambda figures: _share(figures.usage.cache_read, figures.usage.prompt),
    "written": lambda figures: short(figures.usage.cache_write),
    "side calls": lambda figures: f"{figures.side_calls:,}",
    "compactions": lambda figures: f"{figures.compactions:,}",
    "breaks": lambda figures: f"{figures.breaks:,}",
    "regrets": lambda figures: f"{figures.regrets:,}",
    "peak": lambda figures: short(figures.peak_tokens),
    "facts kept": lambda figures: _share(figures.facts_in_context, figures.facts),
    "files kept": lambda figures: _share(figures.files_in_context, figures.files),
}
COLUMNS = ("policy", *_CELLS)


def cells(name: str, figures: ReplayFigures) -> list[str]:
    """One for each column."""
    return [f"{name} (ends early)" if figures.stopped_sessions else name, *(cell(figures) for cell in _CELLS.values())]


def remarks(report: ReplayReport) -> list[str]:
    """What the figures mean, and what is odd about these."""
    return [
        "An input unit is the price of one uncached input token: a read counts 0.1, a write 1.25 (2 for an hour). Answers are not in it; "
        "they are in the cost.",
        "Answers are those of the recording, whatever the policy. Summaries and notes are made by local functions, and are as long as "
        "those make them.",
        "A regret is a file or a result read again after it was taken out of view.",
        *_odd(report),
    ]


def _odd(report: ReplayReport) -> list[str]:
    said: list[str] = []
    if report.silent:
        said.append(f"{counted(report.silent, 'session')} without usage: {RECORDED} has nothing there.")
    for name, figures in report.figures.items():
        if figures.over_window:
            could = ", and could not have been sent" if name == APPEND else ""
            said.append(f"{name}: {figures.over_window:,} of {figures.calls:,} requests are longer than the window{could}.")
        if figures.stopped_sessions:
            full = f"{name}: the window was full in {counted(figures.stopped_sessions, 'session')}, and nothing could make room"
            said.append(f"{full}; its figures lack {counted(figures.calls_not_played, 'call')} behind that.")
        if figures.layer_failures:
            said.append(f"{name}: a layer stepped aside {counted(figures.layer_failures, 'time')}.")
        if (asked := figures.comparison).calls or asked.failed:
            did = f"{asked.same:,} times the next act was the recorded one, {asked.again:,} times something was read again"
            rest = f"{asked.questions:,} times the person was asked, {asked.failed:,} calls failed, ${asked.usd:,.2f}"
            said.append(f"{name}: a model was asked {asked.calls:,} times: {did}, {rest}.")
    said += _remembered(report)
    unpriced = max((figures.unpriced_calls for figures in report.figures.values()), default=0)
    if unpriced:
        said.append(f"The prices of some models are not known: up to {unpriced:,} calls are not in the cost.")
    return said


def _remembered(report: ReplayReport) -> list[str]:
    """Rows that were given as much are named once."""
    rows: dict[int, list[str]] = {}
    for name, figures in report.figures.items():
        rows.setdefault(figures.memory_tokens, []).append(name)
    said = "memory put in {tokens:,} tokens, index and recall together."
    return [
        f"{first}{' and ' + counted(len(more), 'further row') if more else ''}: {said.format(tokens=tokens)}"
        for tokens, (first, *more) in rows.items()
        if tokens
    ]
