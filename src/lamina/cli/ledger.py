"""`lamina stats --ledger`: what background work has used of its budget, by purpose and project (B9)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from ..core.budget import LedgerLine, Limits, Spent, left, limits_of, ran_out, spent_in
from ..disk.home.ledger import day_of, read_ledger_day
from ..disk.home.ledger import list_ledger_days as known
from ..disk.settings_files import load_settings
from .console import print_result, print_table
from .transcripts import list_homes


def print_ledger(where: Path, days: float | None, *, as_json: bool) -> None:
    """Today, or as many of the last days as are asked for; what is left is always of today."""
    now, limits = time.time(), limits_of(load_settings(cwd=where, environ=os.environ))
    today, since = day_of(now), day_of(now - (days or 0) * 86_400)
    lines = [
        (day, line)
        for home in list_homes("lamina")
        for day in known(home)
        if since <= day <= today
        for line in read_ledger_day(home, day)
    ]
    spent = spent_in(line for day, line in lines if day == today)
    out, rows = ran_out(spent, limits), group_lines(lines)
    if rows and not as_json:
        _table(rows, days is not None)
    facts = {"day": today, "used": to_json(spent), "limits": limits._asdict(), "left": left(spent, limits)}
    told = {
        **facts,
        "ran_out": out.what if out else None,
        "rows": [dict(zip(KEYS, key, strict=True)) | to_json(one) for key, one in rows],
    }
    print_result(told, summarise(spent, limits), as_json=as_json)


KEYS = ("day", "purpose", "project")
LedgerRow = tuple[tuple[str, str, str], "Spent"]


def group_lines(lines: list[tuple[str, LedgerLine]]) -> list[LedgerRow]:
    """By day, purpose and project: the newest day first, the dearest of it first."""
    found: dict[tuple[str, str, str], Spent] = {}
    for day, line in lines:
        key = (day, line.purpose, line.project)
        found[key] = found.get(key, Spent()).with_line(line)
    rows = sorted(found.items(), key=lambda row: (-row[1].usd, -row[1].tokens, row[0]))
    return sorted(rows, key=lambda row: row[0][0], reverse=True)


def to_json(spent: Spent) -> dict[str, Any]:
    return {
        "calls": spent.calls,
        "failed": spent.failed,
        "tokens": spent.tokens,
        "usage": spent.usage.wire(),
        "dollars": round(spent.usd, 6),
        "unpriced_calls": spent.unpriced,
    }


def _table(rows: list[LedgerRow], by_day: bool) -> None:
    header = [*(["day"] if by_day else []), "purpose", "calls", "tokens", "cost", "project"]
    cells = [
        [*([day] if by_day else []), purpose, str(spent.calls), f"{spent.tokens:,}", _money(spent), project]
        for (day, purpose, project), spent in rows
    ]
    print_table(header, cells, right=("calls", "tokens", "cost"))
    click.echo()


def _money(spent: Spent) -> str:
    """Of a model without known prices nothing is counted in money."""
    if spent.unpriced and spent.unpriced + spent.failed == spent.calls:
        return "?"
    return f"${spent.usd:.4f}" + ("+?" if spent.unpriced else "")


def summarise(spent: Spent, limits: Limits) -> list[str]:
    said = [
        f"Background work today: {spent.calls:,} of {limits.calls:,} calls, {spent.tokens:,} of {limits.tokens:,} tokens, "
        f"${spent.usd:.4f} of ${limits.dollars:.2f}."
    ]
    if spent.usage.cache_read:
        said.append(f"  {spent.usage.cache_read:,} tokens were read from the cache; each counts a tenth.")
    if spent.unpriced:
        said.append(f"  {spent.unpriced} calls went to a model without known prices: they count in calls and tokens only.")
    if spent.failed:
        said.append(f"  {spent.failed} calls brought no answer.")
    if (out := ran_out(spent, limits)) is not None:
        said.append(out.sentence())
    return said
