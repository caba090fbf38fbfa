"""`lamina context`: what fills the window of a session, by kind (T8), live or recorded; and the exact request of any call.

Reads and never writes, so a session that is live elsewhere can be looked at. The parts are estimates; what the system prompt and the
tools take is the difference to what the model last reported, once it has reported anything.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from . import completion as offering
from .safe_text import document, sentence

if TYPE_CHECKING:
    from ..conversation.window.breakdown import Breakdown
    from ..conversation.window.breakdown import Item as Counted
    from ..conversation.window.count import Count
    from ..conversation.window.features import Memo
    from ..conversation.window.thresholds import Thresholds, WindowState
    from ..core.blocks import Wire
    from ..core.log import Log
    from ..core.records import Record, Spill
    from ..core.settings import Settings
    from ..core.view import View

# Injected context that tells the model what to heed and to know, as against what happens around it.
MEMORY_KINDS = frozenset({"instructions", "nested_memory", "memory", "recall", "relevant_memories"})
SUMMARY_KINDS = frozenset({"summary", "partial", "snip", "collapse"})


class Report(NamedTuple):
    model: str
    tokens: int
    limits: Thresholds
    state: WindowState
    system: int  # the system prompt and the tools
    parts: Breakdown
    spilled: tuple[Spill, ...] = ()  # results that lie in files; a preview of each is in the window
    autocompact: bool = True
    source: str = ""  # where the window's size was found; empty where nobody knows


@click.command("context")
@click.argument("session", metavar="SESSION|FILE", shell_complete=offering.sessions)
@click.option(
    "--turn", "number", metavar="N", type=click.IntRange(min=1), help="The exact request of the N-th call, block by block."
)
@click.option("--against", metavar="M", type=click.IntRange(min=1), help="With --turn: what changed since the M-th call.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose session.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(session: str, number: int | None, against: int | None, cwd: str, as_json: bool) -> None:
    """Show what fills the window of a session, by kind; with --turn, what one request was made of."""
    if against is not None and number is None:
        raise click.UsageError("--against says what to compare with: give --turn too.")
    from ..disk.settings_files import load_settings
    from ..disk.transcripts.jsonl import Health
    from ..disk.transcripts.store import read_transcript
    from .sessions import locate

    where = Path(cwd).resolve()
    path = locate(session, where)
    health = Health()

    def read() -> Iterator[Record]:
        nonlocal health
        health = Health()
        return read_transcript(path, health=health)

    if number is not None:
        from .request_view import show

        show(read, path.stem, number, against, as_json=as_json, width=shutil.get_terminal_size().columns)
        return
    report = recorded(read, load_settings(cwd=where, environ=os.environ))
    if as_json:
        click.echo(document({"session_id": path.stem, "path": str(path), **to_json(report)}))
    else:
        from .context_lines import lines

        terminal, color = sys.stdout.isatty(), False if os.environ.get("NO_COLOR") else None  # None: only on a terminal
        for text, style in lines(report, shutil.get_terminal_size().columns, picture=terminal):
            click.echo(click.style(text, fg=style) if style else text, color=color)
    if (damage := health.sentence(str(path))) is not None:
        click.echo(f"lamina: {sentence(damage)}", err=True)


def recorded(read: Callable[[], Iterable[Record]], settings: Settings) -> Report:
    """On a transcript as it stands."""
    from ..conversation.window.recount import recount
    from ..conversation.window.thresholds import thresholds
    from ..conversation.window.window import ModelFacts, window_for
    from ..core.errors import InputError
    from ..core.log import Log
    from ..core.records import Message
    from ..providers.models import known

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
        raise InputError("session", "it holds no messages that Lamina can read", "lamina sessions list shows those that do")
    info = known(model)
    facts = {model: ModelFacts(info.window, info.max_output, info.needs_header_for_1m)} if info is not None else {}
    policy = settings.policy.window
    window = window_for(model, setting=settings.context_window, known=facts, default=policy.default_window)
    limits = thresholds(
        window.tokens, window.max_output, policy, settings.autocompact_percent, compact_in=settings.auto_compact_window
    )
    report = report_on(view, recount(view), limits, model=model, autocompact=settings.auto_compact)
    return report._replace(spilled=spilled_in(log), source=window.source)


def spilled_in(log: Log) -> tuple[Spill, ...]:
    from ..core.records import Spill

    return tuple(made for made in log.decisions.values() if isinstance(made, Spill))


def report_on(view: View, count: Count, limits: Thresholds, *, model: str, autocompact: bool, memo: Memo | None = None) -> Report:
    """On a view and its count; pure."""
    from ..conversation.window.breakdown import break_down
    from ..conversation.window.thresholds import state_of

    parts = break_down(_counted(view), count.calibration, memo)
    if count.reported:
        tokens = count.tokens
        system = max(0, tokens - parts.total)
    else:
        system = _of_prompt(view, count)
        tokens = parts.total + system
    state = state_of(max(tokens, count.judged), limits, autocompact_on=autocompact)
    return Report(model, tokens, limits, state, system, parts, autocompact=autocompact)


def _of_prompt(view: View, count: Count) -> int:
    """Nothing was reported yet: what the recorded prompt is likely to take."""
    return prompt_tokens(view.snapshot.system, view.snapshot.tools, count) if view.snapshot is not None else 0


def prompt_tokens(system: list[Wire], tools: list[Wire], count: Count) -> int:
    """What stands before the messages, estimated."""
    from ..conversation.window.estimate import estimate
    from ..conversation.window.features import measure_all
    from ..core.blocks import canonical, text

    said = [text(canonical(part).decode("utf-8", "replace")) for part in (system, tools)]
    return estimate(measure_all(said), count.calibration)


def _counted(view: View) -> Iterator[Counted]:
    for item, block in view.blocks():
        kind = item.kind.removeprefix("attachment:")
        if item.kind in SUMMARY_KINDS:
            yield item.role, block, "summary"
        elif item.kind.startswith("attachment:"):
            yield item.role, block, "memory" if kind in MEMORY_KINDS else "attachment"
        else:
            yield item.role, block, None


def to_json(report: Report) -> dict[str, Any]:
    """`window.size` is what the model takes in all, `window.effective` what is left of it beside room for an answer: that is what
    `tokens` and `percent_left` count against."""
    limits = {name: getattr(report.limits, name) for name in ("effective", "warning", "autocompact", "blocking")}
    return {
        "model": report.model,
        "tokens": report.tokens,
        "percent_left": round(report.state.percent_left, 1),
        "window": {"size": report.limits.window, "source": report.source or None, **limits, "auto_compact": report.autocompact},
        "system_and_tools": report.system,
        **report.parts.to_json(),
        "spilled": [{"tool_use_id": each.tool_use_id, "path": each.path, "bytes": each.size} for each in report.spilled],
    }
