"""The report as HTML: the difference first, then the figures, the window of each session over time, and the remarks.

Pure. The functions return parts that the page of `lamina ui` shows as well; `page` puts them into one file without scripts and
external resources. File names, settings and lines of the transcripts are escaped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from ..core.markup import Child, Html, bdi, join, tag
from ..core.settings import Billing
from ..language.wording import counted
from .chart import ChartLine, ChartPoint, ChartWords, chart
from .figures import ReplayedSession, RequestPoint
from .report import ReplayReport
from .request_table import RequestTable, request_tables
from .savings import Saving, saving
from .table import COLUMNS, REMARKS, UNITS_REMARK, cells, columns, headlines, named_rows, odd_remarks, short
from .variants import RECORDED

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

# The texts of the parts by key. The page has them in other languages too.
ENGLISH: dict[str, str] = {
    **{name: name for name in (*COLUMNS, *columns("subscription"))},
    "lamina_with": "Lamina with {policy}",
    "less": "{share} less",
    "more": "{share} more",
    "instead": "{ours} instead of {theirs}",
    "n_input_units": "{n} input units",
    "n_units": "{n} units",
    "spread": "median session {median}; {dearer} of {sessions} over 2% more",
    "bill": "Recorded bill: {usd} in the transcripts",
    "bill_added": "{usd} estimated for calls that wrote a summary and are in no transcript ({n})",
    "bill_left": "{usd} for cache breaks that nothing explains ({n})",
    "use_added": "with estimated calls that wrote a summary and are in no transcript ({n})",
    "use_left": "without cache breaks that nothing explains ({n})",
    "use": "Recorded use: {what}.",
    "figures": "Figures",
    "over_time": "Window over time",
    "zone": "UTC",
    "meaning": "Meaning of the rows and columns",
    "rows": (
        "recorded: what the transcripts report. append: nothing is ever removed. lamina: your settings. The other rows are policies "
        "of Lamina."
    ),
    "chart": (
        "Tokens of each request over time ({zone}). Dots are decisions: the request does not start with the previous one. "
        "Crosses are answers that quote a result which the request did not contain. Shaded: pauses over ten minutes, shortened."
    ),
    "dearest": "The {shown} dearest of {sessions} sessions.",
    "chart_label": "Tokens of each request of {name}",
    "calls": "Calls: {calls}. {costs}.",
    "hidden_lines": "Lines hidden and needed later: {n}",
    "and_more": "and {n} more",
    "sessions": "Sessions",
    "session": "session",
    "call_count": "calls",
    "not_finished": "not finished",
    "notes": "Notes",
    "skipped": "Skipped files",
    "damaged": "Partly readable files",
    **{f"remark_{at}": remark for at, remark in enumerate(REMARKS)},
    "remark_units": UNITS_REMARK,
}
# The remarks that explain columns.
COLUMN_REMARKS = (0, 2, 3)


class SessionName(NamedTuple):
    """The title of a session, and the address that shows it."""

    title: str
    address: str = ""


class ReportWords(msgspec.Struct, frozen=True):
    """The words of a report: its texts by key, how it says the sentences and the rows of this report, its times, and its amounts."""

    texts: Mapping[str, str]
    told: Callable[[str], str] = str
    times: ChartWords = ChartWords()
    billing: Billing = "list"

    def __getitem__(self, key: str) -> str:
        return self.texts[key]


IN_ENGLISH = ReportWords(ENGLISH)
Names: TypeAlias = Mapping[str, SessionName]
NO_NAMES: dict[str, SessionName] = {}


def page(report: ReplayReport, title: str, *, requests: bool = False, billing: Billing = "list") -> str:
    """Return the report as one file; it begins with BEGINNING. With `requests` it has a table of the requests of each session."""
    first, *_ = headlines(report, billing)
    count = f"{counted(report.sessions, 'recorded session')}, {counted(report.calls, 'call')}, replayed by Lamina."
    return translated_page(
        report, title, f"{first} {count}", msgspec.structs.replace(IN_ENGLISH, billing=billing), requests=requests
    )


def translated_page(
    report: ReplayReport, title: str, lead: str, texts: ReportWords, *, lang: str = "en", requests: bool = False
) -> str:
    """Return the report as one file in the language of these texts. `lead` is its first sentence."""
    body = join(
        (
            tag("h1", None, title),
            tag("p", None, lead),
            differences(report, texts),
            [(tag("h2", None, heading), part) for heading, part in parts(report, texts)],
            (tag("h2", None, "Requests"), [_requests(table) for table in request_tables(report, texts.billing)])
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
    return f'{BEGINNING}\n<html lang="{lang}"><head>{join(head)}{sheet}</head>\n{tag("body", None, body)}</html>\n'


def _requests(table: RequestTable) -> Html:
    name = f"{os.path.basename(table.session.name)}, {table.row}"
    rows = _table(name, table.columns, table.cells())
    return tag("details", None, tag("summary", None, bdi(name)), tag("p", None, table.total()), rows)


def style() -> str:
    """Return the style sheet of the parts."""
    return Path(__file__).with_name("report.css").read_text("utf-8")


def parts(report: ReplayReport, texts: ReportWords = IN_ENGLISH, names: Names = NO_NAMES) -> list[tuple[str, Html]]:
    """Return the report below its differences: headings and their content. `names` has those of sessions by file."""
    general = [texts[f"remark_{at}"] for at in range(len(REMARKS)) if at not in COLUMN_REMARKS]
    told = [texts.told(one) for one in odd_remarks(report, texts.billing)]
    made = [
        (texts["figures"], figures_table(report, texts)),
        (texts["over_time"], charts(report, texts, names)),
        (texts["sessions"], sessions_table(report, texts, names)),
        (texts["notes"], _list([*general, *told])),
        (texts["skipped"], _list([texts.told(one) for one in report.skipped])),
        (texts["damaged"], _list([texts.told(one) for one in report.damaged])),
    ]
    return [(heading, part) for heading, part in made if part]


def differences(report: ReplayReport, texts: ReportWords = IN_ENGLISH) -> Html:
    """Return what each policy would have cost beside the recording, the settings in force first."""
    colours = colours_of(report)
    found = [(name, saving(report.played, name, texts.billing)) for name in named_rows(report) if name != RECORDED]
    made = [_difference(name, colours[name], saved, texts) for name, saved in found if saved is not None]
    return tag("dl", {"class": "figs"}, made) if made else join(())


def recorded_bill(report: ReplayReport, texts: ReportWords = IN_ENGLISH) -> str:
    """Return how the recorded bill differs from the transcripts' own sum; empty if it does not."""
    found = report.figures.get(RECORDED)
    if found is None or not (found.unrecorded_calls or found.unexplained_breaks):
        return ""
    if texts.billing == "subscription":
        counts = {"use_added": found.unrecorded_calls, "use_left": found.unexplained_breaks}
        return texts["use"].format(what="; ".join(texts[key].format(n=f"{n:,}") for key, n in counts.items() if n))
    paid = found.usd - found.unrecorded_usd + found.unexplained_usd
    line = texts["bill"].format(usd=f"${paid:,.2f}")
    if found.unrecorded_calls:
        line += " + " + texts["bill_added"].format(usd=f"${found.unrecorded_usd:,.2f}", n=f"{found.unrecorded_calls:,}")
    if found.unexplained_breaks:
        line += " − " + texts["bill_left"].format(usd=f"${found.unexplained_usd:,.2f}", n=f"{found.unexplained_breaks:,}")
    return f"{line} = ${found.usd:,.2f}"


def _difference(name: str, colour: str, saved: Saving, texts: ReportWords) -> Html:
    subject = texts["lamina_with"].format(policy=texts.told(name))
    change, amounts, middle = saving_words(saved, texts)
    return tag(
        "div",
        None,
        tag("dt", None, tag("i", {"class": f"dot {colour}"}), subject),
        tag("dd", {"class": "bad" if saved.share < 0 else None}, change),
        tag("dd", {"class": "p"}, amounts),
        tag("dd", {"class": "p"}, middle) if len(saved.costs) > 1 else None,
    )


def saving_words(saved: Saving, texts: ReportWords) -> tuple[str, str, str]:
    """Return the difference to the recording as a share, as two amounts, and over the sessions."""
    ours, theirs = _amount(sum(saved.costs), saved, texts), _amount(sum(saved.recorded), saved, texts)
    middle = texts["spread"].format(median=_compared(saved.median, texts), dearer=f"{saved.dearer:,}", sessions=len(saved.costs))
    return _compared(saved.share, texts), texts["instead"].format(ours=ours, theirs=theirs), middle


def _amount(cost: float, saved: Saving, texts: ReportWords) -> str:
    return f"${cost:,.2f}" if saved.unit == "usd" else texts[f"n_{saved.unit}"].format(n=f"{cost:,.0f}")


def _compared(share: float, texts: ReportWords) -> str:
    return texts["less" if share >= 0 else "more"].format(share=f"{abs(share):.0%}")


def colours_of(report: ReplayReport) -> dict[str, str]:
    return {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(report.figures)}


def figures_table(report: ReplayReport, texts: ReportWords = IN_ENGLISH) -> Html:
    """Return the figures, one row a policy, and the meaning of the rows and columns."""
    colours = colours_of(report)
    rows = [
        [(tag("i", {"class": f"dot {colours[name]}"}), bdi(texts.told(row[0]))), *row[1:]] for name, row in _cells(report, texts)
    ]
    heads = [texts[title] for title in columns(texts.billing)]
    keys = [f"remark_{'units' if at == 0 and texts.billing == 'subscription' else at}" for at in COLUMN_REMARKS]
    meaning = [texts["rows"], *(texts[key] for key in keys)]
    return join(
        (
            _table(texts["figures"], heads, rows),
            tag("details", {"class": "unfold"}, tag("summary", None, texts["meaning"]), _list(meaning)),
        )
    )


def _cells(report: ReplayReport, texts: ReportWords) -> list[tuple[str, list[str]]]:
    return [(name, cells(report, name, texts.billing)) for name in report.figures]


def charts(report: ReplayReport, texts: ReportWords = IN_ENGLISH, names: Names = NO_NAMES) -> Html:
    """Return the window of each session over time, one line a policy and the recording in grey; the dearest session first."""
    drawn = [session for session in report.played if session.points]
    if not drawn:
        return join(())
    rows, colours = named_rows(report), colours_of(report)
    keys = [tag("span", None, tag("i", {"class": f"dot {colours[row]}"}), bdi(texts.told(row))) for row in rows]
    more = texts["dearest"].format(shown=f"{len(drawn):,}", sessions=f"{report.sessions:,}")
    figures = [
        _chart(session, _name(session, names), rows, colours, texts) for session in sorted(drawn, key=lambda one: -one.cost)
    ]
    told = tag(
        "p",
        {"class": "soft small"},
        texts["chart"].format(zone=texts["zone"]),
        f" {more}" if len(drawn) < report.sessions else None,
    )
    return join((tag("div", {"class": "keys"}, keys), figures, told))


def _chart(
    session: ReplayedSession, name: SessionName, rows: Sequence[str], colours: Mapping[str, str], texts: ReportWords
) -> Html:
    lines = [
        ChartLine(texts.told(row), colours[row], [_point(point, texts) for point in session.points[row]])
        for row in rows
        if session.points.get(row)
    ]
    costs = ", ".join(f"{texts.told(row)} {_money(session, row, texts)}" for row in rows)
    picture = chart(lines, label=texts["chart_label"].format(name=name.title), words=texts.times)
    return tag(
        "figure",
        {"class": "steps"},
        tag("h3", None, _link(name)),
        tag("figcaption", None, texts["calls"].format(calls=f"{session.calls:,}", costs=costs)),
        tag("div", {"class": "scroll-x", "tabindex": 0, "role": "group", "aria-label": name.title}, picture),
        _needed(session, rows, texts),
    )


def _name(session: ReplayedSession, names: Names) -> SessionName:
    return names.get(session.name) or SessionName(os.path.basename(session.name))


def _link(name: SessionName) -> Html:
    return tag("a", {"href": name.address}, bdi(name.title)) if name.address else bdi(name.title)


def _point(point: RequestPoint, texts: ReportWords) -> ChartPoint:
    return ChartPoint(point.time, point.tokens, texts.told(point.decision), "; ".join(point.hidden))


def _needed(session: ReplayedSession, rows: Sequence[str], texts: ReportWords) -> Html | None:
    """List what was hidden when an answer quoted it."""
    lines = [f"{texts.told(row)}: {example}" for row in rows for point in session.points.get(row, ()) for example in point.hidden]
    if not lines:
        return None
    shown = [tag("li", None, bdi(line)) for line in lines[:MOST_HIDDEN]]
    more = tag("li", None, texts["and_more"].format(n=f"{len(lines) - MOST_HIDDEN:,}")) if len(lines) > MOST_HIDDEN else None
    title = texts["hidden_lines"].format(n=f"{len(lines):,}")
    return tag("details", {"class": "unfold"}, tag("summary", None, title), tag("ul", {"class": "remarks"}, shown, more))


def sessions_table(report: ReplayReport, texts: ReportWords = IN_ENGLISH, names: Names = NO_NAMES) -> Html:
    """Return the cost of each session under each policy, the dearest first."""
    rows = [row for row in named_rows(report) if row != RECORDED]
    ordered = sorted(report.played, key=lambda one: -one.cost)
    made = [
        [
            _link(_name(one, names)),
            f"{one.calls:,}",
            _money(one, RECORDED, texts),
            *(f"{_money(one, row, texts)} ({_saved(one, row, texts)})" for row in rows),
        ]
        for one in ordered[:MOST_SESSIONS]
    ]
    if not made:
        return join(())
    left = len(ordered) - MOST_SESSIONS
    more = tag("p", None, texts["and_more"].format(n=f"{left:,}")) if left > 0 else None
    return join(
        (_table(texts["sessions"], [texts["session"], texts["call_count"], *map(texts.told, (RECORDED, *rows))], made), more)
    )


def _money(session: ReplayedSession, row: str, texts: ReportWords) -> str:
    figures = session.figures[row]
    if figures.stopped_sessions:
        return texts["not_finished"]
    if texts.billing == "subscription":
        return texts["n_units"].format(n=short(figures.units))
    return "?" if figures.cost_usd is None else f"${figures.cost_usd:,.2f}"


def _saved(session: ReplayedSession, row: str, texts: ReportWords) -> str:
    saved = saving([session], row, texts.billing)
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
