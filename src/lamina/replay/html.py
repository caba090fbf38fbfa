"""The report as HTML: the difference first, then the figures, the window of each session over time, and the remarks.

Pure. The functions return parts that the page of `lamina ui` shows as well; `page` puts them into one file without scripts and
external resources. File names, settings and lines of the transcripts are escaped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..core.markup import Child, Html, bdi, join, tag
from ..core.settings import Billing
from ..language.text import HTML_LANGUAGE, Shown, Text, Words
from ..language.wording import counted
from .chart import ChartLine, ChartPoint, ChartWords, chart
from .figures import ReplayedSession, RequestPoint
from .report import ReplayReport
from .request_table import RequestTable, request_tables
from .savings import Saving, saving
from .table import REMARKS, UNITS_REMARK, cells, columns, headlines, named_rows, odd_remarks, short
from .variants import RECORDED, row_title

# Identifies an earlier report that may be replaced.
BEGINNING = "<!doctype html>"
# Rows of the table of sessions, the dearest first, and hidden lines listed under one chart.
MOST_SESSIONS = 500
MOST_HIDDEN = 40
# Classes of report.css; the first is grey and belongs to the recording.
COLOURS = tuple(f"p{at}" for at in range(8))

# The colours of the page, for a file of its own.
FILE_STYLE = """
:root { color-scheme: light dark; --paper: light-dark(#ffffff, #0f1216); --panel: light-dark(#ffffff, #16191f);
  --line: light-dark(#e1e4e9, #2a2f38); --ink: light-dark(#1a1d21, #e6e8eb); --soft: light-dark(#5a6270, #9aa3af);
  --bad: light-dark(#b42318, #f28b82); --sans: system-ui, sans-serif; }
body { color: var(--ink); background: var(--paper); font: 14px/1.45 var(--sans); font-variant-numeric: tabular-nums; }
body { margin: 24px auto; max-width: 1200px; padding: 0 16px; overflow-wrap: anywhere; }
h1 { font-size: 19px; margin: 0; } h2 { font-size: 15px; margin: 28px 0 8px; } p { color: var(--soft); margin: 4px 0 14px; }
"""

# The remarks that explain columns.
COLUMN_REMARKS = (0, 2, 3)


class SessionName(NamedTuple):
    """The title of a session, and the address that shows it."""

    title: str
    address: str = ""


class ReportWords(Words):
    """The words of a report, with its times and amounts."""

    def __init__(self, language: Shown = "en", billing: Billing = "list", times: ChartWords | None = None) -> None:
        super().__init__(language)
        self.billing = billing
        self.times = times or ChartWords()


IN_ENGLISH = ReportWords()
Names: TypeAlias = Mapping[str, SessionName]
NO_NAMES: dict[str, SessionName] = {}


def page(report: ReplayReport, title: str, *, requests: bool = False, billing: Billing = "list") -> str:
    """Return the report as one file; it begins with BEGINNING. With `requests` it has a table of the requests of each session."""
    first, *_ = headlines(report, billing)
    count = f"{counted(report.sessions, 'recorded session')}, {counted(report.calls, 'call')}, replayed by Lamina."
    return translated_page(report, title, f"{first} {count}", ReportWords("en", billing), requests=requests)


def translated_page(report: ReplayReport, title: str, lead: str, words: ReportWords, *, requests: bool = False) -> str:
    """Return the report as one file in the language of these words. `lead` is its first sentence."""
    body = join(
        (
            tag("h1", None, title),
            tag("p", None, lead),
            differences(report, words),
            [(tag("h2", None, heading), part) for heading, part in parts(report, words)],
            (tag("h2", None, "Requests"), [_requests(table) for table in request_tables(report, words.billing)])
            if requests
            else None,
        )
    )
    head = (
        tag("meta", {"charset": "utf-8"}),
        tag("meta", {"name": "viewport", "content": "width=device-width"}),
        tag("title", None, title),
    )
    sheet = f"<style>{FILE_STYLE}{style()}</style>"  # our own text, which an element of this kind holds as it is
    return f'{BEGINNING}\n<html lang="{HTML_LANGUAGE[words.language]}"><head>{join(head)}{sheet}</head>\n{tag("body", None, body)}</html>\n'


def _requests(table: RequestTable) -> Html:
    name = f"{os.path.basename(table.session.name)}, {table.row}"
    rows = _table(name, table.columns, table.cells())
    return tag("details", None, tag("summary", None, bdi(name)), tag("p", None, table.total()), rows)


def style() -> str:
    """Return the style sheet of the parts."""
    return Path(__file__).with_name("report.css").read_text("utf-8")


def parts(report: ReplayReport, words: ReportWords = IN_ENGLISH, names: Names = NO_NAMES) -> list[tuple[str, Html]]:
    """Return the report below its differences: headings and their content. `names` has those of sessions by file."""
    general = [words(remark) for at, remark in enumerate(REMARKS) if at not in COLUMN_REMARKS]
    told = [words(one) for one in odd_remarks(report, words.billing)]
    made = [
        (words("Figures"), figures_table(report, words)),
        (words("Window over time"), charts(report, words, names)),
        (words("Sessions"), sessions_table(report, words, names)),
        (words("Notes"), _list([*general, *told])),
        (words("Skipped files"), _list([words(one) for one in report.skipped])),
        (words("Partly readable files"), _list([words(one) for one in report.damaged])),
    ]
    return [(heading, part) for heading, part in made if part]


def differences(report: ReplayReport, words: ReportWords = IN_ENGLISH) -> Html:
    """Return what each policy would have cost beside the recording, the settings in force first."""
    colours = colours_of(report)
    found = [(name, saving(report.played, name, words.billing)) for name in named_rows(report) if name != RECORDED]
    made = [_difference(name, colours[name], saved, words) for name, saved in found if saved is not None]
    return tag("dl", {"class": "figs"}, made) if made else join(())


def recorded_bill(report: ReplayReport, words: ReportWords = IN_ENGLISH) -> str:
    """Return how the recorded bill differs from the transcripts' own sum; empty if it does not."""
    found = report.figures.get(RECORDED)
    if found is None or not (found.unrecorded_calls or found.unexplained_breaks):
        return ""
    if words.billing == "subscription":
        counts = {
            Text("with estimated calls that wrote a summary and are in no transcript ({n})"): found.unrecorded_calls,
            Text("without cache breaks that nothing explains ({n})"): found.unexplained_breaks,
        }
        return words("Recorded use: {what}.", what="; ".join(words(text, n=n) for text, n in counts.items() if n))
    paid = found.usd - found.unrecorded_usd + found.unexplained_usd
    line = words("Recorded bill: {usd} in the transcripts", usd=f"${paid:,.2f}")
    if found.unrecorded_calls:
        line += " + " + words(
            "{usd} estimated for calls that wrote a summary and are in no transcript ({n})",
            usd=f"${found.unrecorded_usd:,.2f}",
            n=found.unrecorded_calls,
        )
    if found.unexplained_breaks:
        line += " − " + words(
            "{usd} for cache breaks that nothing explains ({n})", usd=f"${found.unexplained_usd:,.2f}", n=found.unexplained_breaks
        )
    return f"{line} = ${found.usd:,.2f}"


def _difference(name: str, colour: str, saved: Saving, words: ReportWords) -> Html:
    subject = words("Lamina with {policy}", policy=row_title(name))
    change, amounts, middle = saving_words(saved, words)
    return tag(
        "div",
        None,
        tag("dt", None, tag("i", {"class": f"dot {colour}"}), subject),
        tag("dd", {"class": "bad" if saved.share < 0 else None}, change),
        tag("dd", {"class": "p"}, amounts),
        tag("dd", {"class": "p"}, middle) if len(saved.costs) > 1 else None,
    )


def saving_words(saved: Saving, words: ReportWords) -> tuple[str, str, str]:
    """Return the difference to the recording as a share, as two amounts, and over the sessions."""
    ours, theirs = _amount(sum(saved.costs), saved, words), _amount(sum(saved.recorded), saved, words)
    middle = words(
        "median session {median}; {dearer} of {sessions} over 2% more",
        median=_compared(saved.median, words),
        dearer=f"{saved.dearer:,}",
        sessions=len(saved.costs),
    )
    return _compared(saved.share, words), words("{ours} instead of {theirs}", ours=ours, theirs=theirs), middle


def _amount(cost: float, saved: Saving, words: ReportWords) -> str:
    if saved.unit == "usd":
        return f"${cost:,.2f}"
    return words("{n} units" if saved.unit == "units" else "{n} input units", n=f"{cost:,.0f}")


def _compared(share: float, words: ReportWords) -> str:
    return words("{share} less" if share >= 0 else "{share} more", share=f"{abs(share):.0%}")


def colours_of(report: ReplayReport) -> dict[str, str]:
    return {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(report.figures)}


def figures_table(report: ReplayReport, words: ReportWords = IN_ENGLISH) -> Html:
    """Return the figures, one row a policy, and the meaning of the rows and columns."""
    colours = colours_of(report)
    rows = [[(tag("i", {"class": f"dot {colours[name]}"}), bdi(words(row[0]))), *row[1:]] for name, row in _cells(report, words)]
    heads = [words(title) for title in columns(words.billing)]
    meaning = [
        words(
            "recorded: what the transcripts report. append: nothing is ever removed. lamina: your settings. The "
            "other rows are policies of Lamina."
        ),
        *(words(UNITS_REMARK if at == 0 and words.billing == "subscription" else REMARKS[at]) for at in COLUMN_REMARKS),
    ]
    return join(
        (
            _table(words("Figures"), heads, rows),
            tag("details", {"class": "unfold"}, tag("summary", None, words("Meaning of the rows and columns")), _list(meaning)),
        )
    )


def _cells(report: ReplayReport, words: ReportWords) -> list[tuple[str, list[str]]]:
    return [(name, cells(report, name, words.billing)) for name in report.figures]


def charts(report: ReplayReport, words: ReportWords = IN_ENGLISH, names: Names = NO_NAMES) -> Html:
    """Return the window of each session over time, one line a policy and the recording in grey; the dearest session first."""
    drawn = [session for session in report.played if session.points]
    if not drawn:
        return join(())
    rows, colours = named_rows(report), colours_of(report)
    keys = [tag("span", None, tag("i", {"class": f"dot {colours[row]}"}), bdi(words(row_title(row)))) for row in rows]
    more = words("The {shown} dearest of {sessions} sessions.", shown=f"{len(drawn):,}", sessions=f"{report.sessions:,}")
    figures = [
        _chart(session, _name(session, names), rows, colours, words) for session in sorted(drawn, key=lambda one: -one.cost)
    ]
    told = tag(
        "p",
        {"class": "soft small"},
        words(
            "Tokens of each request over time ({zone}). Dots are decisions: the request does not start with the "
            "previous one. Crosses are answers that quote a result which the request did not contain. Shaded: "
            "pauses over ten minutes, shortened.",
            zone="UTC" if words.times.zone is UTC else words("your time"),
        ),
        f" {more}" if len(drawn) < report.sessions else None,
    )
    return join((tag("div", {"class": "keys"}, keys), figures, told))


def _chart(
    session: ReplayedSession, name: SessionName, rows: Sequence[str], colours: Mapping[str, str], words: ReportWords
) -> Html:
    lines = [
        ChartLine(words(row_title(row)), colours[row], [_point(point, words) for point in session.points[row]])
        for row in rows
        if session.points.get(row)
    ]
    costs = ", ".join(f"{words(row_title(row))} {_money(session, row, words)}" for row in rows)
    picture = chart(lines, label=words("Tokens of each request of {name}", name=name.title), words=words.times)
    return tag(
        "figure",
        {"class": "steps"},
        tag("h3", None, _link(name)),
        tag("figcaption", None, words("Calls: {calls}. {costs}.", calls=f"{session.calls:,}", costs=costs)),
        tag("div", {"class": "scroll-x", "tabindex": 0, "role": "group", "aria-label": name.title}, picture),
        _needed(session, rows, words),
    )


def _name(session: ReplayedSession, names: Names) -> SessionName:
    return names.get(session.name) or SessionName(os.path.basename(session.name))


def _link(name: SessionName) -> Html:
    return tag("a", {"href": name.address}, bdi(name.title)) if name.address else bdi(name.title)


def _point(point: RequestPoint, words: ReportWords) -> ChartPoint:
    return ChartPoint(point.time, point.tokens, words(point.decision), "; ".join(point.hidden))


def _needed(session: ReplayedSession, rows: Sequence[str], words: ReportWords) -> Html | None:
    """List what was hidden when an answer quoted it."""
    lines = [
        f"{words(row_title(row))}: {example}" for row in rows for point in session.points.get(row, ()) for example in point.hidden
    ]
    if not lines:
        return None
    shown = [tag("li", None, bdi(line)) for line in lines[:MOST_HIDDEN]]
    more = tag("li", None, words("and {n} more", n=f"{len(lines) - MOST_HIDDEN:,}")) if len(lines) > MOST_HIDDEN else None
    title = words("Lines hidden and needed later: {n}", n=f"{len(lines):,}")
    return tag("details", {"class": "unfold"}, tag("summary", None, title), tag("ul", {"class": "remarks"}, shown, more))


def sessions_table(report: ReplayReport, words: ReportWords = IN_ENGLISH, names: Names = NO_NAMES) -> Html:
    """Return the cost of each session under each policy, the dearest first."""
    rows = [row for row in named_rows(report) if row != RECORDED]
    ordered = sorted(report.played, key=lambda one: -one.cost)
    made = [
        [
            _link(_name(one, names)),
            f"{one.calls:,}",
            _money(one, RECORDED, words),
            *(f"{_money(one, row, words)} ({_saved(one, row, words)})" for row in rows),
        ]
        for one in ordered[:MOST_SESSIONS]
    ]
    if not made:
        return join(())
    left = len(ordered) - MOST_SESSIONS
    more = tag("p", None, words("and {n} more", n=f"{left:,}")) if left > 0 else None
    return join(
        (
            _table(
                words("Sessions"), [words("session"), words("calls"), *(words(row_title(row)) for row in (RECORDED, *rows))], made
            ),
            more,
        )
    )


def _money(session: ReplayedSession, row: str, words: ReportWords) -> str:
    figures = session.figures[row]
    if figures.stopped_sessions:
        return words("not finished")
    if words.billing == "subscription":
        return words("{n} units", n=short(figures.units))
    return "?" if figures.cost_usd is None else f"${figures.cost_usd:,.2f}"


def _saved(session: ReplayedSession, row: str, words: ReportWords) -> str:
    saved = saving([session], row, words.billing)
    return f"{-saved.share:+.0%}" if saved is not None else "–"


def _table(label: str, head: Iterable[str], rows: Iterable[Sequence[Child]]) -> Html:
    titles = [tag("th", {"scope": "col"}, cell) for cell in head]
    body = [
        tag("tr", None, tag("th", {"scope": "row"}, first), [tag("td", None, cell) for cell in others]) for first, *others in rows
    ]
    table = tag("table", {"class": "data"}, tag("thead", None, tag("tr", None, titles)), tag("tbody", None, body))
    # A wide table scrolls in itself, also by keyboard.
    return tag("div", {"class": "scroll-x", "tabindex": 0, "role": "group", "aria-label": label}, table)


def _list(sentences: Sequence[str]) -> Html:
    return tag("ul", {"class": "remarks"}, [tag("li", None, bdi(one)) for one in sentences]) if sentences else join(())
