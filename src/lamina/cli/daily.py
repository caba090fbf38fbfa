"""`lamina memory daily`: the daily logs of assistant mode, a line for each day, or one of them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import click

from . import completion
from .memory_access import on_memory
from .options import Reported
from .safe_text import printable

if TYPE_CHECKING:
    from ..memory.memory import Memory

_WORDS = {"today": 0, "yesterday": 1}


def _read_day(_: click.Context, __: click.Parameter, text: str | None) -> date | None:
    """Of the person's own calendar."""
    if text is None or text in _WORDS:
        return date.today() - timedelta(days=_WORDS[text]) if text is not None else None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{printable(text)!r} is no date: write it as 2026-03-31, today or yesterday.") from None


@click.command("daily")
@click.argument("wanted", required=False, metavar="[DATE]", shell_complete=completion.days, callback=_read_day)
@on_memory
def daily_command(memory: Memory, wanted: date | None) -> Reported:
    """The daily logs of assistant mode, newest first, or the one of DATE (2026-03-31, today, yesterday)."""
    rows = _rows(memory, wanted)
    if wanted is None:
        lines = (f"{row['date']}  {row['bullets']:>4,} {'bullet' if row['bullets'] == 1 else 'bullets'}" for row in rows)
        shown = [{name: value for name, value in row.items() if name != "text"} for row in rows]
        return shown, lines, "There are no daily logs: assistant mode keeps them (lamina.assistant)."
    if not rows:
        raise click.UsageError(f"there is no log of {wanted.isoformat()}: lamina memory daily lists those there are.")
    return rows[0], rows[0]["text"].removesuffix("\n")


def _rows(memory: Memory, wanted: date | None) -> list[dict[str, Any]]:
    from ..memory.store.daily_logs import days, read_day

    gated, rows = memory.store("private"), list[dict[str, Any]]()
    for each in days(gated.store.root) if gated.readable else ():
        if wanted not in (None, each.day):
            continue
        text = read_day(gated.store.root, each.day) or ""
        bullets = sum(line.startswith("- ") for line in text.splitlines())
        named = {"date": each.day.isoformat(), "path": str(memory.path / each.file)}
        rows.append(named | {"bullets": bullets, "bytes": each.size, "text": text})
    return rows
