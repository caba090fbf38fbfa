"""The report of `lamina context` and /context: what fills a session's context window, by kind. With `--turn`, one request block
by block, and what changed since another one (B10).

The parts are estimates. Once the model has reported its usage, the share of the system prompt and tools is the difference
between that report and the other parts. Nothing is wider than the terminal, and bars are drawn only on a terminal.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

from ..conversation.window.breakdown import Breakdown, break_down
from ..conversation.window.breakdown import Item as LabelledBlock
from ..conversation.window.count import Count, recount
from ..conversation.window.estimate import estimate
from ..conversation.window.features import Memo, measure, measure_all
from ..conversation.window.thresholds import ModelFacts, Thresholds, WindowState, state_of, thresholds, window_for
from ..core.blocks import Block, Wire, canonical, text
from ..core.errors import InputError
from ..core.explanation import MEMORY, Changed, Explained, Piece, difference, explain
from ..core.log import Log
from ..core.records import Message, Record, Spill
from ..core.settings import Settings
from ..core.view import View
from ..core.wording import counted
from ..providers.models import known
from .console import capped, print_result, printable, sentence, shorten

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
    "setting": "from the settings",
    "environment": "from the environment",
    "suffix": "from the model's name",
    "model": "known for this model",
    "header": "from the beta header",
    "server": "reported by the server",
    "default": "assumed",
}

# Attachments that carry instructions and knowledge; all other kinds report events.
MEMORY_KINDS = frozenset({"instructions", "nested_memory", "memory", "recall", "relevant_memories"})
SUMMARY_KINDS = frozenset({"summary", "partial", "snip", "collapse"})
# Lines shown of a request, half from each end; --json has all blocks.
MOST_LINES = 60
SIGNS = {"read": "cached", "partly": "partly", "new": "new", "unknown": ""}
_COLUMNS = 20  # token count and cache state
NARROWEST = 60


class WindowReport(NamedTuple):
    model: str
    tokens: int
    limits: Thresholds
    state: WindowState
    system: int  # the system prompt and the tools
    parts: Breakdown
    spilled: tuple[Spill, ...] = ()  # results stored in files, with a preview of each in the window
    autocompact: bool = True
    source: str = ""  # where the window's size comes from; empty if unknown


def report_on_transcript(read: Callable[[], Iterable[Record]], settings: Settings) -> WindowReport:
    """Build the report from a transcript."""
    model = ""

    def noting() -> Iterator[Record]:
        nonlocal model
        for record in read():
            if isinstance(record, Message) and record.model and not record.silent:
                model = record.model
            yield record

    log = Log.load(noting)
    view = log.view
    if not view.items:
        raise InputError("session", "the transcript has no readable messages", "run `lamina sessions list` to see the sessions")
    info = known(model)
    facts = {model: ModelFacts(info.window, info.max_output, info.needs_header_for_1m)} if info is not None else {}
    policy = settings.policy.window
    window = window_for(model, setting=settings.context_window, known=facts, default=policy.default_window)
    limits = thresholds(
        window.tokens, window.max_output, policy, settings.autocompact_percent, compact_in=settings.auto_compact_window
    )
    report = report_on(view, recount(view), limits, model=model, autocompact=settings.auto_compact)
    return report._replace(spilled=find_spills(log), source=window.source)


def find_spills(log: Log) -> tuple[Spill, ...]:
    return tuple(made for made in log.decisions.values() if isinstance(made, Spill))


def report_on(
    view: View, count: Count, limits: Thresholds, *, model: str, autocompact: bool, memo: Memo | None = None
) -> WindowReport:
    """Build the report from a view and its token count."""
    parts = break_down(_label_blocks(view), count.calibration, memo)
    # An estimate, for a prompt that no usage has measured yet, and for a report that leaves no room for it.
    system = estimate_prompt(view.snapshot.system, view.snapshot.tools, count) if view.snapshot is not None else 0
    if count.reported:
        tokens = count.tokens
        estimated = system + parts.total
        # Estimates that exceed the report shrink in the same proportion, so that no row disappears.
        system = tokens - parts.total if estimated <= tokens else tokens * system // estimated
        parts = parts.fitted(tokens - system)
    else:
        tokens = parts.total + system
    state = state_of(max(tokens, count.judged), limits, autocompact_on=autocompact, base=system)
    return WindowReport(model, tokens, limits, state, system, parts, autocompact=autocompact)


def estimate_prompt(system: list[Wire], tools: list[Wire], count: Count) -> int:
    """Estimate the tokens of the system prompt and the tools."""
    parts = [text(canonical(part).decode("utf-8", "replace")) for part in (system, tools)]
    return estimate(measure_all(parts), count.calibration)


def _label_blocks(view: View) -> Iterator[LabelledBlock]:
    for item, block in view.blocks():
        if item.kind in SUMMARY_KINDS:
            yield item.role, block, "summary"
        elif item.kind.startswith("attachment:"):
            yield item.role, block, "memory" if item.kind.removeprefix("attachment:") in MEMORY_KINDS else "attachment"
        else:
            yield item.role, block, None


def to_json(report: WindowReport) -> dict[str, Any]:
    """Return the report for --json.

    `window.size` is the model's whole window. `window.effective` leaves room for an answer; `tokens` and `percent_left` count
    against it.
    """
    limits = {name: getattr(report.limits, name) for name in ("effective", "warning", "autocompact", "blocking")}
    limits["autocompact"] = report.limits.starts_at(report.system)
    return {
        "model": report.model,
        "tokens": report.tokens,
        "percent_left": round(report.state.percent_left, 1),
        "window": {"size": report.limits.window, "source": report.source or None, **limits, "auto_compact": report.autocompact},
        "system_and_tools": report.system,
        **report.parts.to_json(),
        "spilled": [{"tool_use_id": each.tool_use_id, "path": each.path, "bytes": each.size} for each in report.spilled],
    }


def list_kinds(report: WindowReport) -> list[tuple[str, int]]:
    parts = report.parts
    kinds = [
        ("system prompt and tools", report.system),
        ("your messages", parts.human),
        ("answers", parts.assistant),
        ("thinking", parts.thinking),
        *((f"{name} calls", tokens) for name, tokens in parts.requests.items()),
        *((f"{name} results", tokens) for name, tokens in parts.results.items()),
        ("memory and instructions", parts.memory),
        ("attachments", parts.attachments),
        ("summaries", parts.summary),
        ("other", parts.other),
    ]
    return [(printable(name), tokens) for name, tokens in kinds if tokens]


def format_context(report: WindowReport, width: int, *, picture: bool = True) -> list[tuple[str, Style]]:
    """Return the report as styled lines that fit `width`; `picture` adds bars."""
    width = min(width, WIDEST)
    found = list_kinds(report)
    named = min(max((len(name) for name, _ in found), default=0), max(8, width - _NUMBERS - 4))
    room = width - named - _NUMBERS - 2 if picture and width >= BARS_FROM else 0
    most = max((tokens for _, tokens in found), default=1)
    whole = max(1, sum(tokens for _, tokens in found))
    used = f"about {report.tokens:,} of {report.limits.effective:,} tokens, {report.state.percent_left:.0f}% left"
    bar_line: list[tuple[str, Style]] = []
    if picture:
        drawn = draw_bar(1 - report.state.percent_left / 100, max(8, min(width, 60) - 2), whole=True)
        full = report.state.at_blocking or report.state.above_autocompact
        bar_line = [(f"[{drawn}]", "red" if full else "yellow" if report.state.above_warning else "green")]
    head = _wrapped(f"{report.model or 'no model yet'}: {used}", width)
    shown = [text for sentence in _window(report) for text in _wrapped(sentence, width)]
    for name, tokens in found:
        drawn = draw_bar(tokens / most, room) if room > 0 else ""
        shown.append(f"  {shorten(name, named):<{named}}{tokens:>11,}{tokens / whole:>5.0%}  {drawn}".rstrip())
    plain = [*shown, *_repeats(report, width), *_spilled(report, width)]
    return [*((text, "") for text in head), *bar_line, *((text, "") for text in plain)]


def _window(report: WindowReport) -> Iterator[str]:
    """Describe the window's size and its thresholds."""
    limits, why = report.limits, f" ({SOURCES[report.source]})" if report.source else ""
    reserve = limits.window - limits.effective
    if limits.window and reserve:
        yield (
            f"Context window: {limits.window:,} tokens{why}. {reserve:,} of them are reserved for the answer, "
            f"{limits.effective:,} are usable."
        )
    elif limits.window:
        yield f"Context window: {limits.window:,} tokens{why}."
    compaction = (
        f"automatic compaction at {limits.starts_at(report.system):,}" if report.autocompact else "automatic compaction is off"
    )
    yield f"Warning at {limits.warning:,}, {compaction}, full at {limits.blocking:,}."


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(text), max(10, width - 1)) or [""]


def _repeats(report: WindowReport, width: int) -> Iterator[str]:
    repeats = report.parts.repeats
    if repeats:
        yield f"Files read more than once, with the tokens of the repeats ({sum(each.tokens for each in repeats):,} in total):"
    rows = [f"  {_fit_end(each.path, max(8, width - 26))}  {each.reads} times{each.tokens:>11,}" for each in repeats]
    yield from capped(rows, MOST_REPEATS, "  and {} more")


def _spilled(report: WindowReport, width: int) -> Iterator[str]:
    if report.spilled:
        yield f"Large results stored in files ({sum(each.size for each in report.spilled):,} bytes in total):"
    for each in report.spilled[-MOST_SPILLED:]:
        yield f"  {_fit_end(each.path, max(8, width - 18))}{each.size:>15,}"
    if len(report.spilled) > MOST_SPILLED:
        yield f"  and {len(report.spilled) - MOST_SPILLED} older"


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
    read: Callable[[], Iterable[Record]], session_id: str, number: int, against: int | None, *, as_json: bool, width: int
) -> None:
    found = explain(read(), number, tokens_of)
    changed = difference(explain(read(), against, tokens_of), found) if against is not None else None
    told = {"session_id": session_id, "turn": number, **found.request, **request_json(found, changed, against)}
    print_result(told, format_request(found, changed, against, max(NARROWEST, width)), as_json=as_json)


def tokens_of(block: Block) -> int:
    return estimate(measure(block))


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
    return {name: getattr(piece, name) for name in ("path", "kind", "why", "tokens", "cached", "record", "words")}


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
    first = printable(f"{piece.tokens:>9,} {SIGNS[piece.cached]:<7} {piece.path}  {sentence(piece.kind)}: {sentence(piece.why)}")
    margin = " " * (_COLUMNS - 2)
    if piece.kind == MEMORY:
        # The reason is shown in full (B10); the memory's text is in its file.
        return [shorten(first, width), printable(f"{margin}{sentence(piece.why)}")]
    return [shorten(first, width), shorten(f"{margin}{sentence(piece.words)}", width)] if piece.words else [shorten(first, width)]
