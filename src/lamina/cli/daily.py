"""`lamina memory daily`: the daily logs of assistant mode, a line for each day, or one of them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import click

from . import completion as offering
from .safe_text import document, printable

if TYPE_CHECKING:
    from ..memory.memory import Memory
    from ..memory.store.daily_logs import DailyLog

_WORDS = {"today": 0, "yesterday": 1}


@click.command("daily")
@click.argument("day", required=False, metavar="[DATE]", shell_complete=offering.days)
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose memory.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def daily_command(day: str | None, cwd: str, as_json: bool) -> None:
    """The daily logs of assistant mode, newest first, or the one of DATE (2026-03-31, today, yesterday)."""
    from .memory import opened

    wanted = _read_day(day) if day is not None else None
    with opened(cwd) as memory:
        found = _days(memory)
        if wanted is None:
            _list(memory, found, as_json=as_json)
        else:
            _show(memory, next((each for each in found if each.day == wanted), None), wanted, as_json=as_json)


def _read_day(text: str) -> date:
    """Of the person's own calendar."""
    if text in _WORDS:
        return date.today() - timedelta(days=_WORDS[text])
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"{printable(text)!r} is no date: write it as 2026-03-31, today or yesterday.") from None


def _days(memory: Memory) -> list[DailyLog]:
    from ..memory.store.daily_logs import list_logs

    gated = memory.store("private")
    return list_logs(gated.store.root) if gated.readable else []


def _list(memory: Memory, found: list[DailyLog], *, as_json: bool) -> None:
    rows = [_row(memory, each) for each in found]
    if as_json:
        click.echo(document(rows))
        return
    for row in rows:
        click.echo(f"{row['date']}  {row['bullets']:>4,} {'bullet' if row['bullets'] == 1 else 'bullets'}")
    if not rows:
        click.echo("There are no daily logs: assistant mode keeps them (lamina.assistant).", err=True)


def _show(memory: Memory, found: DailyLog | None, wanted: date, *, as_json: bool) -> None:
    if found is None:
        raise click.UsageError(f"there is no log of {wanted.isoformat()}: lamina memory daily lists those there are.")
    if as_json:
        click.echo(document(_row(memory, found) | {"text": _text(memory, found)}))
    else:
        click.echo(printable(_text(memory, found)), nl=False)


def _row(memory: Memory, each: DailyLog) -> dict[str, Any]:
    bullets = sum(line.startswith("- ") for line in _text(memory, each).splitlines())
    return {"date": each.day.isoformat(), "path": str(memory.path / each.file), "bullets": bullets, "bytes": each.size}


def _text(memory: Memory, each: DailyLog) -> str:
    from ..memory.store.daily_logs import read_log

    return read_log(memory.store("private").store.root, each.day) or ""
