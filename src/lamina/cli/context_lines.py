"""What `lamina context` and /context show a person: which window is counted against, a bar, and a line for every kind.

Pure but for the terminal's character set. Nothing is wider than the terminal; the bars are left out where nobody looks at them.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from .safe_text import capped, printable, shorten

if TYPE_CHECKING:
    from .context import Report

Style: TypeAlias = Literal["", "green", "yellow", "red"]

# Of files read more than once the dearest are listed; --json has them all.
MOST_REPEATS = 10
# Of results in files the newest are listed.
MOST_SPILLED = 10
# In a narrower terminal the bars leave no room for the names.
BARS_FROM = 60
WIDEST = 100
_NUMBERS = 18  # "  1,234,567   12%  "
SOURCES = {
    "argument": "as the session was opened",
    "setting": "by the settings",
    "environment": "by the environment",
    "suffix": "by the model's name",
    "model": "as the model has it",
    "header": "by the beta header",
    "default": "assumed",
}


class Line(NamedTuple):
    text: str
    style: Style = ""


def rows(report: Report) -> list[tuple[str, int]]:
    parts = report.parts
    kinds = [
        ("system prompt and tools", report.system),
        ("what you said", parts.human),
        ("answers", parts.assistant),
        ("thinking", parts.thinking),
        *((f"calls of {name}", tokens) for name, tokens in parts.requests.items()),
        *((f"results of {name}", tokens) for name, tokens in parts.results.items()),
        ("memory and instructions", parts.memory),
        ("attachments", parts.attachments),
        ("summaries", parts.summary),
        ("other", parts.other),
    ]
    return [(printable(name), tokens) for name, tokens in kinds if tokens]


def lines(report: Report, width: int, *, picture: bool = True) -> list[Line]:
    """For a person, in a terminal of this width; `picture`: with bars."""
    width = min(width, WIDEST)
    found = rows(report)
    named = min(max((len(name) for name, _ in found), default=0), max(8, width - _NUMBERS - 4))
    room = width - named - _NUMBERS - 2 if picture and width >= BARS_FROM else 0
    most = max((tokens for _, tokens in found), default=1)
    # The parts are estimates: all of them together may be more than what was reported, no part is more than all of them.
    whole = max(1, sum(tokens for _, tokens in found))
    used = f"about {report.tokens:,} of {report.limits.effective:,} tokens, {report.state.percent_left:.0f}% left"
    shown = [Line(text) for text in _wrapped(f"{report.model or 'no model yet'}: {used}", width)]
    if picture:
        drawn = bar(1 - report.state.percent_left / 100, max(8, min(width, 60) - 2), whole=True)
        shown.append(Line(f"[{drawn}]", _colour(report)))
    shown += [Line(text) for sentence in _window(report) for text in _wrapped(sentence, width)]
    for name, tokens in found:
        share = f"{tokens / whole:>5.0%}"
        shown.append(
            Line(
                f"  {shorten(name, named):<{named}}{tokens:>11,}{share}  {bar(tokens / most, room) if room > 0 else ''}".rstrip()
            )
        )
    return [*shown, *map(Line, _repeats(report, width)), *map(Line, _spilled(report, width))]


def _window(report: Report) -> Iterator[str]:
    """Which window is counted against, and what happens where in it."""
    limits, why = report.limits, f" ({SOURCES[report.source]})" if report.source else ""
    reserve = limits.window - limits.effective
    if limits.window and reserve:
        yield (
            f"The window has {limits.window:,} tokens{why}; {reserve:,} are kept for the answer, "
            f"the other {limits.effective:,} count."
        )
    elif limits.window:
        yield f"The window has {limits.window:,} tokens{why}."
    compaction = f"compaction from {limits.autocompact:,}" if report.autocompact else "no compaction by itself"
    yield f"Warning from {limits.warning:,}, {compaction}, full at {limits.blocking:,}."


def _colour(report: Report) -> Style:
    if report.state.at_blocking or report.state.above_autocompact:
        return "red"
    return "yellow" if report.state.above_warning else "green"


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(text), max(10, width - 1)) or [""]


def _repeats(report: Report, width: int) -> Iterator[str]:
    repeats = report.parts.repeats
    if repeats:
        yield f"Files read more than once, and what the later reads cost ({sum(each.tokens for each in repeats):,} in all):"
    rows = [f"  {_fit_end(each.path, max(8, width - 26))}  {each.reads} times{each.tokens:>11,}" for each in repeats]
    yield from capped(rows, MOST_REPEATS, "  and {} more")


def _spilled(report: Report, width: int) -> Iterator[str]:
    if report.spilled:
        yield f"Results too large to show, in files ({sum(each.size for each in report.spilled):,} bytes in all):"
    for each in report.spilled[-MOST_SPILLED:]:
        yield f"  {_fit_end(each.path, max(8, width - 18))}{each.size:>15,}"
    if len(report.spilled) > MOST_SPILLED:
        yield f"  and {len(report.spilled) - MOST_SPILLED} before them"


def bar(share: float, width: int, *, whole: bool = False) -> str:
    """`whole` shows the empty part too. What is there is never shown as nothing."""
    utf = (sys.stdout.encoding or "").lower().startswith("utf")
    full, empty = ("█", "░") if utf else ("#", ".")
    filled = min(width, max(1 if share > 0 else 0, round(share * width)))
    return full * filled + (empty * (width - filled) if whole else "")


def _fit_end(path: str, width: int) -> str:
    """Of a path the end tells more than the beginning."""
    path = printable(path)
    return path if len(path) <= width else f"…{path[-(width - 1) :]}"
