"""The report as one HTML page: a chart of the context size over the calls, and the table. No scripts, no external resources.

Pure. File names and settings are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..core.wording import counted
from .run import ReplayReport
from .table import COLUMNS, cells, remarks

# Identifies an earlier report that may be replaced.
BEGINNING = "<!doctype html>"
WIDTH, HEIGHT = 960, 280
LEFT, BOTTOM = 64, 24
# Points that the chart's width can show.
POINTS = 440
# Distinguishable on white and on black, and with most forms of colour blindness.
COLOURS = ("#888888", "#cc5500", "#0072b2", "#009e73", "#b0439c", "#a68a00", "#56a0d8", "#d05050")

STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1c; --paper: #ffffff; --faint: #d8d8d8; --soft: #666666; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --paper: #161616; --faint: #3a3a3a; --soft: #a0a0a0; } }
body { color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 64rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } p, li, figcaption { color: var(--soft); max-width: 52rem; }
figure { margin: 1.5rem 0; } svg { width: 100%; height: auto; } svg text { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--faint); } .line { fill: none; stroke-width: 1.6; vector-effect: non-scaling-stroke; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; white-space: nowrap; }
th, td { border-bottom: 1px solid var(--faint); padding: .3rem .7rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .5em; border-radius: 2px; }
"""


def page(report: ReplayReport, title: str) -> str:
    """Return the HTML page; it begins with BEGINNING."""
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{counted(report.sessions, 'recorded session')}, {counted(report.calls, 'call')}, replayed by Lamina.</p>",
        _picture(report),
        _table(report),
        _list("Notes", remarks(report)),
        _list("Skipped files", report.skipped),
        _list("Partly readable files", report.damaged),
    ]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return (
        f'{BEGINNING}\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n<body>\n'
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def colour(at: int) -> str:
    return COLOURS[at % len(COLOURS)]


def _picture(report: ReplayReport) -> str:
    curves = {name: curve.shown(POINTS) for name, curve in report.curves.items()}
    top = max((size for sizes in curves.values() for size in sizes), default=0) or 1
    lines = [_line(sizes, top, colour(at), name) for at, (name, sizes) in enumerate(curves.items())]
    grid = [_rule(share, top) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    caption = "Tokens of each request, one session after another. Where lines overlap, the lower row of the table is on top."
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Context size over calls">'
        f"{''.join(grid)}{''.join(lines)}</svg><figcaption>{caption}</figcaption></figure>"
    )


def _rule(share: float, top: int) -> str:
    y = _y(share)
    label = f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{share * top:,.0f}</text>'
    return f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>{label}'


def _line(sizes: Sequence[int], top: int, stroke: str, name: str) -> str:
    step = (WIDTH - LEFT) / max(1, len(sizes) - 1)
    points = " ".join(f"{LEFT + at * step:.1f},{_y(size / top):.1f}" for at, size in enumerate(sizes))
    return f'<polyline class="line" stroke="{stroke}" points="{points}"><title>{escape(name)}</title></polyline>'


def _y(share: float) -> float:
    return 8 + (1 - share) * (HEIGHT - BOTTOM - 8)


def _table(report: ReplayReport) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    rows = []
    for at, (name, figures) in enumerate(report.figures.items()):
        first, *rest = cells(name, figures)
        key = f'<span class="key" style="background:{colour(at)}"></span>'
        rows.append(f"<tr><td>{key}{escape(first)}</td>{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>")
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _list(title: str, sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    return f"<h2>{escape(title)}</h2><ul>{''.join(f'<li>{escape(one)}</li>' for one in sentences)}</ul>"
