"""The report in words: the cells of its table and the sentences that go with it. Pure; a terminal and a page show the same."""

from __future__ import annotations

from .figures import Figures
from .run import Report
from .variants import APPEND, RECORDED

COLUMNS = (
    "policy",
    "input units",
    "cost",
    "cached",
    "written",
    "side calls",
    "compactions",
    "breaks",
    "regrets",
    "peak",
    "facts kept",
    "files kept",
)


def cells(name: str, figures: Figures) -> list[str]:
    usd, usage = figures.cost_usd, figures.usage
    return [
        f"{name} (ends early)" if figures.stopped else name,
        short(figures.input_units),
        f"${usd:,.2f}" if usd is not None else "?",
        f"{usage.cache_read / usage.prompt:.1%}" if usage.prompt else "–",
        short(usage.cache_write),
        f"{figures.side_calls:,}",
        f"{figures.compactions:,}",
        f"{figures.breaks:,}",
        f"{figures.regrets:,}",
        short(figures.peak_tokens),
        _share(figures.facts_kept, figures.facts),
        _share(figures.files_kept, figures.files),
    ]


def short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}" if letter == "k" else f"{number / size:.2f}{letter}"
    return f"{number:.0f}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


def remarks(report: Report) -> list[str]:
    """What the figures mean, and what is odd about these."""
    return [
        "An input unit is the price of one uncached input token: a read counts 0.1, a write 1.25 (2 for an hour). Answers are not in it; "
        "they are in the cost.",
        "Answers are those of the recording, whatever the policy. Summaries and notes are made by local functions, and are as long as "
        "those make them.",
        "A regret is a file or a result read again after it was taken out of view.",
        *_odd(report),
    ]


def _odd(report: Report) -> list[str]:
    said: list[str] = []
    if report.silent:
        said.append(f"{counted(report.silent, 'session')} without usage: {RECORDED} has nothing there.")
    for name, figures in report.figures.items():
        if figures.over_window:
            could = ", and could not have been sent" if name == APPEND else ""
            said.append(f"{name}: {figures.over_window:,} of {figures.calls:,} requests are longer than the window{could}.")
        if figures.stopped:
            full = f"{name}: the window was full in {counted(figures.stopped, 'session')}, and nothing could make room"
            said.append(f"{full}; its figures lack {counted(figures.not_played, 'call')} behind that.")
        if figures.failures:
            said.append(f"{name}: a layer stepped aside {counted(figures.failures, 'time')}.")
        if (asked := figures.asked).calls or asked.failed:
            did = f"{asked.same:,} times the next act was the recorded one, {asked.again:,} times something was read again"
            rest = f"{asked.questions:,} times the person was asked, {asked.failed:,} calls failed, ${asked.usd:,.2f}"
            said.append(f"{name}: a model was asked {asked.calls:,} times: {did}, {rest}.")
    said += _remembered(report)
    unpriced = max((figures.unpriced for figures in report.figures.values()), default=0)
    if unpriced:
        said.append(f"The prices of some models are not known: up to {unpriced:,} calls are not in the cost.")
    return said


def _remembered(report: Report) -> list[str]:
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


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
