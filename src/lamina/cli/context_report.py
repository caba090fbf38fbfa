"""The report of `lamina context` and /context: what fills a session's context window, by kind. With `--turn`, one request block
by block, and what changed since another one (B10).

The parts are estimates. Once the model has reported its usage, the share of the system prompt and tools is the difference
between that report and the other parts. Nothing is wider than the terminal, and bars are drawn only on a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias

from rich.cells import cell_len

from ..core.records import Record
from ..core.settings import Settings
from ..history.explanation import MEMORY, NOTHING, Changed, Explained, Piece, difference, explain_each
from ..history.places import NAMES
from ..history.request_blocks import tokens_of, unrecorded_in
from ..history.window_report import WindowReport, list_kinds
from ..history.window_series import window_series
from ..language.text import SENTENCES, Text, Words, joined
from ..language.wording import counted, shorten
from .console import fit, print_result, printable, sentence, wrap_text

Style: TypeAlias = Literal["", "green", "yellow", "red"]

# Repeated reads listed, the most expensive first; --json has them all.
MOST_REPEATS = 10
# Results in files listed, the newest ones.
MOST_SPILLED = 10
# A narrower terminal has no room for bars beside the names.
BARS_FROM = 60
WIDEST = 100
_NUMBERS = 18  # "  1,234,567   12%  "
SOURCES = {
    "argument": "set when the session was opened",
    "setting": Text("from the settings"),
    "environment": Text("from the environment"),
    "suffix": Text("from the model's name"),
    "model": Text("known for this model"),
    "header": Text("from the beta header"),
    "server": Text("reported by the server"),
    "default": Text("assumed"),
    "record": Text("stated in the session's file"),
}

ENGLISH = Words()
# Lines shown of a request, half from each end; --json has all blocks.
MOST_LINES = 60
SIGNS = {"read": "cached", "partly": "partly", "new": "new", "unknown": ""}
_COLUMNS = 20  # token count and cache state
NARROWEST = 60


def format_context(report: WindowReport, width: int, *, picture: bool = True, words: Words = ENGLISH) -> list[tuple[str, Style]]:
    """Return the report as styled lines that fit `width`; `picture` adds bars, in the language of `words`."""
    width = min(width, WIDEST)
    found = [(printable(words(name)), tokens) for name, tokens in list_kinds(report)]
    named = min(max((cell_len(name) for name, _ in found), default=0), max(8, width - _NUMBERS - 4))
    room = width - named - _NUMBERS - 2 if picture and width >= BARS_FROM else 0
    most = max((tokens for _, tokens in found), default=1)
    whole = max(1, sum(tokens for _, tokens in found))
    used = words(
        "{model}: about {tokens:,} of {limit:,} tokens, {percent:.0f}% left",
        model=report.model or Text("no model yet"),
        tokens=report.tokens,
        limit=report.limits.effective,
        percent=report.state.percent_left,
    )
    bar_line: list[tuple[str, Style]] = []
    if picture:
        drawn = draw_bar(1 - report.state.percent_left / 100, max(8, min(width, 60) - 2), whole=True)
        full = report.state.at_blocking or report.state.above_autocompact
        bar_line = [(f"[{drawn}]", "red" if full else "yellow" if report.state.above_warning else "green")]
    head = _wrapped(used, width)
    shown = [text for sentence in _window(report) for text in _wrapped(words(sentence), width)]
    for name, tokens in found:
        drawn = draw_bar(tokens / most, room) if room > 0 else ""
        name = fit(name, named)
        shown.append(f"  {name}{' ' * (named - cell_len(name))}{tokens:>11,}{tokens / whole:>5.0%}  {drawn}".rstrip())
    plain = [*shown, *_repeats(report, width, words), *_spilled(report, width, words)]
    return [*((text, "") for text in head), *bar_line, *((text, "") for text in plain)]


def _window(report: WindowReport) -> Iterator[str]:
    """Describe the window's size and its thresholds."""
    limits = report.limits
    reserve = limits.window - limits.effective
    if limits.window:
        window = Text("Context window: {tokens:,} tokens.", tokens=limits.window)
        if report.source:
            window = Text("Context window: {tokens:,} tokens ({why}).", tokens=limits.window, why=SOURCES[report.source])
        form = Text("{reserve:,} of them are reserved for the answer, {usable:,} are usable.")
        parts = [window, Text(form, reserve=reserve, usable=limits.effective)] if reserve else [window]
        yield joined(parts, SENTENCES)
    if not report.limits_apply:
        yield Text("{agent} decides when to compact.", agent=NAMES[report.origin])
        if report.compacted_at:
            yield Text("The last automatic compaction was at {tokens:,} tokens.", tokens=report.compacted_at)
        return
    compaction = (
        Text("automatic compaction at {tokens:,}", tokens=limits.starts_at(report.system))
        if report.autocompact
        else Text("automatic compaction is off")
    )
    yield Text(
        "Warning at {warning:,}, {compaction}, full at {blocking:,}.",
        warning=limits.warning,
        compaction=compaction,
        blocking=limits.blocking,
    )


def _wrapped(text: str, width: int) -> list[str]:
    return wrap_text(printable(text), width - 1)


def _repeats(report: WindowReport, width: int, words: Words) -> Iterator[str]:
    repeats = report.parts.repeats
    if repeats:
        total = sum(each.tokens for each in repeats)
        yield words(Text("Files read more than once, with the tokens of the repeats ({total:,} in total):", total=total))
    rows = [
        f"  {_fit_end(each.path, max(8, width - 26))}  {words(counted(each.reads, 'time'))}{each.tokens:>11,}" for each in repeats
    ]
    yield from rows[:MOST_REPEATS]
    if len(rows) > MOST_REPEATS:
        yield f"  {words('and {count} more', count=len(rows) - MOST_REPEATS)}"


def _spilled(report: WindowReport, width: int, words: Words) -> Iterator[str]:
    if report.spilled:
        yield words(
            Text("Large results stored in files ({size:,} bytes in total):", size=sum(each.size for each in report.spilled))
        )
    for each in report.spilled[-MOST_SPILLED:]:
        yield f"  {_fit_end(each.path, max(8, width - 18))}{each.size:>15,}"
    if len(report.spilled) > MOST_SPILLED:
        yield f"  {words('and {count} older', count=len(report.spilled) - MOST_SPILLED)}"


def draw_bar(share: float, width: int, *, whole: bool = False) -> str:
    """Draw a bar. A share above zero always fills at least one cell; `whole` also draws the empty cells."""
    utf = (sys.stdout.encoding or "").lower().startswith("utf")
    full, empty = ("█", "░") if utf else ("#", ".")
    filled = min(width, max(1 if share > 0 else 0, round(share * width)))
    return full * filled + (empty * (width - filled) if whole else "")


def _fit_end(path: str, width: int) -> str:
    """Shorten a path by cutting its beginning: the end tells more."""
    path = printable(path)
    return path if len(path) <= width else f"…{path[-(width - 1) :]}"


def print_request(
    read: Callable[[], Iterable[Record]],
    session_id: str,
    number: int,
    against: int | None,
    settings: Settings,
    *,
    as_json: bool,
    width: int,
) -> None:
    records = list(read())
    points = window_series(records, settings).requests
    wanted = {at: unrecorded_in(points[at - 1]) if at <= len(points) else NOTHING for at in (number, against) if at is not None}
    explained = {one.turn: one for one in explain_each(records, wanted, tokens_of)}
    found = explained[number]
    changed = difference(explained[against], found) if against is not None else None
    told = {"session_id": session_id, "turn": number, **found.request, **request_json(found, changed, against)}
    print_result(told, format_request(found, changed, against, max(NARROWEST, width)), as_json=as_json)


def request_json(found: Explained, changed: Changed | None, against: int | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "blocks": [_json(piece) for piece in found.pieces],
        "breaks": list(found.breaks),
        "usage": found.usage.wire() if found.usage is not None else None,
    }
    if changed is not None:
        shown["changed"] = {
            "against": against,
            "common": changed.common,
            "removed": [_json(piece) for piece in changed.removed],
            "added": [_json(piece) for piece in changed.added],
        }
    return shown


def _json(piece: Piece) -> dict[str, Any]:
    return {name: getattr(piece, name) for name in ("path", "kind", "why", "tokens", "cached", "record", "words")} | {
        "kind": piece.label
    }


def format_request(found: Explained, changed: Changed | None, against: int | None, width: int) -> list[str]:
    tokens = sum(piece.tokens for piece in found.pieces)
    shown = [
        printable(
            f"Call {found.turn} to {found.model or 'an unknown model'}: {counted(len(found.pieces), 'block')}, "
            f"about {counted(tokens, 'token')}"
        )
    ]
    if found.usage is not None:
        usage = found.usage
        read = f"{usage.cache_read / max(1, usage.prompt):.0%}"
        sent = counted(usage.prompt, "input token")
        shown.append(f"Reported usage: {sent} ({read} from the cache), {counted(usage.output_tokens, 'output token')}")
    for reason in found.breaks:
        shown.append(f"Expected cache break before this call: {reason}")
    if changed is None:
        return [*shown, *_rows(found.pieces, width)]
    shown.append(
        f"Compared with call {against}: {counted(changed.common, 'block')} unchanged, {len(changed.removed)} removed, "
        f"{len(changed.added)} added"
    )
    if changed.removed:
        shown += ["Removed:", *_rows(changed.removed, width)]
    return [*shown, "Added:", *_rows(changed.added, width)] if changed.added else shown


def _rows(pieces: Sequence[Piece], width: int) -> list[str]:
    rows = [_row(piece, width) for piece in pieces]
    if len(rows) > MOST_LINES:
        half = MOST_LINES // 2
        rows[half:-half] = [[f"  … {counted(len(pieces) - MOST_LINES, 'more block')} (--json shows all)"]]
    return list(chain.from_iterable(rows))


def _row(piece: Piece, width: int) -> list[str]:
    first = printable(f"{piece.tokens:>9,} {SIGNS[piece.cached]:<7} {piece.path}  {sentence(piece.label)}: {sentence(piece.why)}")
    margin = " " * (_COLUMNS - 2)
    if piece.kind == MEMORY:
        # The reason is shown in full (B10); the memory's text is in its file.
        return [shorten(first, width), printable(f"{margin}{sentence(piece.why)}")]
    return [shorten(first, width), shorten(f"{margin}{sentence(piece.words)}", width)] if piece.words else [shorten(first, width)]
