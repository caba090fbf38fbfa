"""The text of the report: the table's cells and the remarks. Pure; the terminal and the HTML page show the same."""

from __future__ import annotations

from collections.abc import Callable

from ..core.settings import Billing
from ..language.text import Text
from ..language.wording import counted
from ..providers.amounts import units_of
from .figures import ReplayFigures
from .report import ReplayReport
from .savings import headline, saving
from .variants import APPEND, RECORDED, row_title


def short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{letter}" if letter == "k" else f"{number / size:.2f}{letter}"
    return f"{number:.0f}"


# Sessions named because their replay differs from the recording; --json has all.
MOST_DISAGREEMENTS = 10


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "–"


_CELLS: dict[Text, Callable[[ReplayFigures], str]] = {
    Text("cost"): lambda figures: "?" if figures.cost_usd is None else f"${figures.cost_usd:,.2f}",
    Text("input units"): lambda figures: short(figures.input_units),
    Text("cached"): lambda figures: _share(figures.usage.cache_read, figures.usage.prompt),
    Text("written"): lambda figures: short(figures.usage.cache_write),
    Text("side calls"): lambda figures: f"{figures.side_calls:,}",
    Text("compactions"): lambda figures: f"{figures.compactions:,}",
    Text("clearings"): lambda figures: f"{figures.clearings:,}",
    Text("breaks"): lambda figures: f"{figures.breaks:,}",
    Text("regrets"): lambda figures: f"{figures.regrets:,}",
    Text("fetched"): lambda figures: f"{figures.fetched:,}",
    Text("hidden"): lambda figures: _share(figures.quotes_hidden, figures.quotes),
    Text("peak"): lambda figures: short(figures.peak_tokens),
    Text("facts kept"): lambda figures: _share(figures.facts_in_context, figures.facts),
    Text("files kept"): lambda figures: _share(figures.files_in_context, figures.files),
}
# The tokens as one number and by price class, which take the place of cost and input units under a subscription.
_TOKENS: dict[Text, Callable[[ReplayFigures], str]] = {
    Text("units"): lambda figures: short(figures.units),
    Text("read"): lambda figures: short(figures.usage.cache_read),
    Text("written"): lambda figures: short(figures.usage.cache_write),
    Text("uncached"): lambda figures: short(figures.usage.input_tokens),
    Text("output"): lambda figures: short(figures.usage.output_tokens),
}
_USED = {name: cell for name, cell in (_TOKENS | _CELLS).items() if name not in ("cost", "input units")}
COLUMNS = (Text("policy"), Text("saved"), *_CELLS)
# What the figures mean, in every report.
REMARKS = (
    Text(
        "An input unit is the price of one uncached input token: a cache read counts 0.1, a cache write 1.25 (2 for one hour), "
        "an output token of a background call 5. Recorded answers are not included; they are in the cost."
    ),
    Text(
        "The answers are the recorded ones under every policy. Summaries and notes are made by local functions, which also "
        "determine their length."
    ),
    Text(
        "A regret is a file or result that was read again after it was removed from view. Fetched: an Edit or Read needed text that "
        "had left the context, so a call that fetches it is added and paid."
    ),
    Text(
        "Hidden: of the results that answers quote (a line of 20 characters or more), those with a quoted line that the request "
        "did not contain."
    ),
)


def columns(billing: Billing) -> tuple[Text, ...]:
    return COLUMNS if billing == "list" else (*COLUMNS[:2], *_USED)


# Replaces the first remark under a subscription.
UNITS_REMARK = Text(
    "A unit is one uncached input token: a cache read counts 0.1, a cache write 1.25 (2 for one hour), an output token 5, "
    "whatever the model."
)


def cells(report: ReplayReport, name: str, billing: Billing = "list") -> list[str]:
    """Return one cell per column."""
    figures, saved = report.figures[name], saving(report.played, name, billing) if name != RECORDED else None
    shown = _CELLS if billing == "list" else _USED
    title = row_title(name)
    if figures.stopped_sessions:
        title = Text("{row} (not all finished)", row=title)
    return [
        title,
        f"{saved.share:.1%}" if saved is not None else "–",
        *(cell(figures) for cell in shown.values()),
    ]


def headlines(report: ReplayReport, billing: Billing = "list") -> list[str]:
    """Return what each policy would have cost or used, the settings in force first."""
    found = [(name, saving(report.played, name, billing)) for name in named_rows(report) if name != RECORDED]
    made = [headline(name, saved, billing) for name, saved in found if saved is not None]
    return made or ["The sessions report no usage, so there is no recorded cost to compare with."]


def named_rows(report: ReplayReport) -> list[str]:
    """Return the recording, the settings in force and the policies, without `append` and without rows that vary another."""
    return [name for name in report.figures if name != APPEND and " with" not in name]


def remarks(report: ReplayReport, billing: Billing = "list") -> list[str]:
    """Explain the figures, and point out what is unusual in this report."""
    first = REMARKS[0] if billing == "list" else UNITS_REMARK
    return [first, *REMARKS[1:], *odd_remarks(report, billing)]


def odd_remarks(report: ReplayReport, billing: Billing = "list") -> list[str]:
    """Point out what is unusual in this report."""
    notes: list[str] = []
    dollars = billing == "list"
    if report.silent:
        sessions = counted(report.silent, "session")
        notes.append(Text("{sessions} without reported usage, not counted in the row recorded.", sessions=sessions))
    for name, figures in report.figures.items():
        if figures.unexplained_breaks:
            broke = counted(figures.unexplained_breaks, "cache break")
            cost = Text(" cost {usd}", usd=f"${figures.unexplained_usd:,.2f}") if dollars else ""
            form = Text(
                "{row}: {breaks} within five minutes without a cause in the transcript{cost}; this is taken out of the row, since no "
                "policy can prevent it."
            )
            notes.append(Text(form, row=row_title(name), breaks=broke, cost=cost))
        if figures.unrecorded_calls:
            calls = counted(figures.unrecorded_calls, "summary", "summaries")
            form = Text("{row}: the calls for {calls} are not in the transcripts and estimated.")
            if dollars:
                form = Text("{row}: the calls for {calls} are not in the transcripts and estimated at {usd}.")
            notes.append(Text(form, row=row_title(name), calls=calls, usd=f"${figures.unrecorded_usd:,.2f}"))
        if figures.over_window:
            form = Text("{row}: {over:,} of {requests} exceeded the context window.")
            if name == APPEND:
                form = Text("{row}: {over:,} of {requests} exceeded the context window, so a provider would reject them.")
            requests = counted(figures.calls, "request")
            notes.append(Text(form, row=row_title(name), over=figures.over_window, requests=requests))
        if figures.layer_failures:
            failures = counted(figures.layer_failures, "layer failure")
            notes.append(Text("{row}: {failures}.", row=row_title(name), failures=failures))
        if (asked := figures.comparison).calls or asked.failed:
            did = f"{asked.same:,} with the recorded next action, {counted(asked.again, 'repeated read')}"
            used = f"${asked.usd:,.2f}" if dollars else f"{units_of(asked.usage):,.0f} units"
            rest = f"{counted(asked.questions, 'question')} to the user, {counted(asked.failed, 'failed call')}, {used}"
            notes.append(f"{name}: {counted(asked.calls, 'answer')} from a model: {did}, {rest}.")
    notes += _unfinished(report) + _remembered(report)
    notes += [found.sentence(name) for name, found in list(report.disagreements.items())[:MOST_DISAGREEMENTS]]
    unpriced = max((figures.unpriced_calls for figures in report.figures.values()), default=0)
    if unpriced and dollars:
        notes.append(
            Text(
                "Some models have unknown prices: the cost lacks up to {n} call.|Some models have unknown prices: "
                "the cost lacks up to {n} calls.",
                n=unpriced,
            )
        )
    return notes


def _unfinished(report: ReplayReport) -> list[str]:
    """List the sessions that a policy could not finish."""
    return [
        Text(
            "{row}: {name} ended early because the window was full; {n} call not replayed. The session is not in "
            "the row's sum.|{row}: {name} ended early because the window was full; {n} calls not replayed. The "
            "session is not in the row's sum.",
            row=row_title(row),
            name=session.name,
            n=session.figures[row].calls_not_played,
        )
        for row in report.figures
        for session in report.unfinished(row)
    ]


def _remembered(report: ReplayReport) -> list[str]:
    """Report the memory tokens, naming rows with the same number once."""
    rows: dict[int, list[str]] = {}
    for name, figures in report.figures.items():
        rows.setdefault(figures.memory_tokens, []).append(name)
    notes: list[str] = []
    for tokens, (first, *more) in rows.items():
        form = Text("{row}: memory added {tokens} (index and recall).")
        if more:
            form = Text("{row} and {others}: memory added {tokens} (index and recall).")
        if tokens:
            others = counted(len(more), "other row")
            notes.append(Text(form, row=row_title(first), others=others, tokens=counted(tokens, "token")))
    return notes
