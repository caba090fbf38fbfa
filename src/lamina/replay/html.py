"""The report as one HTML page: what it would have cost, a chart of each session, the tables. No scripts, no external resources.

Pure. File names, settings and lines of the transcripts are escaped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from ..core.wording import counted
from .chart import COLOURS, STYLE, ChartLine, ChartPoint, chart
from .figures import ReplayedSession, RequestPoint
from .report import ReplayReport
from .savings import saving
from .table import COLUMNS, cells, headlines, named_rows, remarks
from .variants import RECORDED

# Identifies an earlier report that may be replaced.
BEGINNING = "<!doctype html>"
# Rows of the table of sessions, the dearest first, and hidden lines listed under one chart.
MOST_SESSIONS = 500
MOST_HIDDEN = 40

PAGE_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #ffffff; --faint: #d8d8d8; --soft: #666666; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #161616; --faint: #3a3a3a; --soft: #a0a0a0; } }
body { color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 64rem; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1rem; color: var(--soft); } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin: 0; }
.headline { font-size: 1.5rem; line-height: 1.3; color: var(--ink); }
p, li, figcaption, details { color: var(--soft); max-width: 56rem; } figure { margin: 2rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { border-bottom: 1px solid var(--faint); padding: .3rem .5rem; text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; } .keys span { margin-right: 1em; }
"""


def page(report: ReplayReport, title: str) -> str:
    """Return the HTML page; it begins with BEGINNING."""
    first, *others = headlines(report)
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(report.figures)}
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="headline">{escape(first)}</p>',
        *(f"<p>{escape(one)}</p>" for one in others),
        f"<p>{counted(report.sessions, 'recorded session')}, {counted(report.calls, 'call')}, replayed by Lamina.</p>",
        "<h2>Policies</h2>",
        _policies(report, colours),
        _charts(report, colours),
        "<h2>Sessions</h2>",
        _sessions(report),
        _list("Notes", remarks(report)),
        _list("Skipped files", report.skipped),
        _list("Partly readable files", report.damaged),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return (
        f'{BEGINNING}\n<html lang="en"><head>{head}<style>{PAGE_STYLE}{STYLE}</style></head>\n<body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _policies(report: ReplayReport, colours: Mapping[str, str]) -> str:
    """Return the table of figures with one column per policy: that many fit beside each other, the figures would not."""
    columns = [cells(report, name) for name in report.figures]
    names = [f"{_key(colours[name])}{escape(column[0])}" for name, column in zip(report.figures, columns, strict=True)]
    rows = [[escape(title), *(escape(column[at]) for column in columns)] for at, title in enumerate(COLUMNS) if at]
    return _table(["", *names], rows)


def _charts(report: ReplayReport, colours: Mapping[str, str]) -> str:
    drawn = [session for session in report.played if session.points]
    if not drawn:
        return ""
    rows = named_rows(report)
    keys = "".join(f"<span>{_key(colours[row])}{escape(row)}</span>" for row in rows)
    said = (
        "Tokens of each request over time (UTC). Dots are decisions: the request does not start with the previous one. "
        "Crosses are answers that quote a result which the request did not contain. Shaded: pauses over ten minutes, shortened."
    )
    more = f" The {len(drawn):,} dearest of {report.sessions:,} sessions." if len(drawn) < report.sessions else ""
    figures = [_chart(session, rows, colours) for session in sorted(drawn, key=lambda one: -one.cost)]
    return f'<h2>Sessions over time</h2><p>{said}{more}</p><p class="keys">{keys}</p>{"".join(figures)}'


def _chart(session: ReplayedSession, rows: Sequence[str], colours: Mapping[str, str]) -> str:
    lines = [
        ChartLine(row, colours[row], [_point(point) for point in session.points[row]]) for row in rows if session.points[row]
    ]
    costs = ", ".join(f"{row} {_money(session, row)}" for row in rows)
    caption = f"<figcaption>{counted(session.calls, 'call')}: {escape(costs)}.</figcaption>"
    name = os.path.basename(session.name)
    picture = chart(lines, label=f"Tokens of each request of {name}")
    return f"<figure><h3>{escape(name)}</h3>{caption}{picture}{_needed(session, rows)}</figure>"


def _point(point: RequestPoint) -> ChartPoint:
    return ChartPoint(point.time, point.tokens, point.decision, "; ".join(point.hidden))


def _needed(session: ReplayedSession, rows: Sequence[str]) -> str:
    """List what was hidden when an answer quoted it."""
    lines = [f"{row}: {example}" for row in rows for point in session.points[row] for example in point.hidden]
    if not lines:
        return ""
    shown = "".join(f"<li>{escape(line)}</li>" for line in lines[:MOST_HIDDEN])
    more = f"<li>and {len(lines) - MOST_HIDDEN:,} more</li>" if len(lines) > MOST_HIDDEN else ""
    title = f"{counted(len(lines), 'line')} hidden and needed later"
    return f"<details><summary>{title}</summary><ul>{shown}{more}</ul></details>"


def _sessions(report: ReplayReport) -> str:
    rows = [row for row in named_rows(report) if row != RECORDED]
    ordered = sorted(report.played, key=lambda one: -one.cost)[:MOST_SESSIONS]
    made = [
        [
            escape(os.path.basename(one.name)),
            f"{one.calls:,}",
            _money(one, RECORDED),
            *(f"{_money(one, row)} ({_saved(one, row)})" for row in rows),
        ]
        for one in ordered
    ]
    left = f"<p>and {len(report.played) - MOST_SESSIONS:,} more.</p>" if len(report.played) > MOST_SESSIONS else ""
    return _table(["session", "calls", RECORDED, *map(escape, rows)], made) + left


def _money(session: ReplayedSession, row: str) -> str:
    figures = session.figures[row]
    if figures.stopped_sessions:
        return "not finished"
    return "?" if figures.cost_usd is None else f"${figures.cost_usd:,.2f}"


def _saved(session: ReplayedSession, row: str) -> str:
    saved = saving([session], row)
    return f"{-saved.share:+.0%}" if saved is not None else "–"


def _key(colour: str) -> str:
    return f'<span class="key" style="background:{colour}"></span>'


def _table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are escaped already."""
    titles = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _list(title: str, sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    return f"<h2>{escape(title)}</h2><ul>{''.join(f'<li>{escape(one)}</li>' for one in sentences)}</ul>"
