"""The text of the report: the table's cells and the remarks. Pure; the terminal and the HTML page show the same."""

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
    """Return one cell per column."""
    return [f"{name} (ends early)" if figures.stopped_sessions else name, *(cell(figures) for cell in _CELLS.values())]


def remarks(report: ReplayReport) -> list[str]:
    """Explain the figures, and point out what is unusual in this report."""
    return [
        "An input unit is the price of one uncached input token: a cache read counts 0.1, a cache write 1.25 (2 for one hour). "
        "Answers are not included; they are in the cost.",
        "The answers are the recorded ones under every policy. Summaries and notes are made by local functions, which also "
        "determine their length.",
        "A regret is a file or result that was read again after it was removed from view.",
        *_odd(report),
    ]


def _odd(report: ReplayReport) -> list[str]:
    notes: list[str] = []
    if report.silent:
        notes.append(f"{counted(report.silent, 'session')} without reported usage, not counted in the row {RECORDED}.")
    for name, figures in report.figures.items():
        if figures.over_window:
            could = ", so a provider would reject them" if name == APPEND else ""
            share = f"{figures.over_window:,} of {counted(figures.calls, 'request')}"
            notes.append(f"{name}: {share} exceeded the context window{could}.")
        if figures.stopped_sessions:
            full = f"{name}: {counted(figures.stopped_sessions, 'session')} ended early because the window was full"
            notes.append(f"{full}; {counted(figures.calls_not_played, 'call')} not replayed.")
        if figures.layer_failures:
            notes.append(f"{name}: {counted(figures.layer_failures, 'layer failure')}.")
        if (asked := figures.comparison).calls or asked.failed:
            did = f"{asked.same:,} with the recorded next action, {counted(asked.again, 'repeated read')}"
            rest = (
                f"{counted(asked.questions, 'question')} to the user, {counted(asked.failed, 'failed call')}, ${asked.usd:,.2f}"
            )
            notes.append(f"{name}: {counted(asked.calls, 'answer')} from a model: {did}, {rest}.")
    notes += _remembered(report)
    unpriced = max((figures.unpriced_calls for figures in report.figures.values()), default=0)
    if unpriced:
        notes.append(f"Some models have unknown prices: the cost lacks up to {counted(unpriced, 'call')}.")
    return notes


def _remembered(report: ReplayReport) -> list[str]:
    """Report the memory tokens, naming rows with the same number once."""
    rows: dict[int, list[str]] = {}
    for name, figures in report.figures.items():
        rows.setdefault(figures.memory_tokens, []).append(name)
    return [
        f"{first}{' and ' + counted(len(more), 'other row') if more else ''}: "
        f"memory added {counted(tokens, 'token')} (index and recall)."
        for tokens, (first, *more) in rows.items()
        if tokens
    ]
