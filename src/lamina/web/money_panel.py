"""The costs of a period by day and model: the chart, its legend, and the same figures as a table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ..core.usage import Usage
from ..sources.money import DayMoney
from .html import Html, bdi, tag
from .numbers import money, share
from .period import Period
from .words import Words

# The colours of the models, the dearest first: none of those of read, written and output. The last one stands for all others.
COLOURS = ("thinking", "memory", "web", "shell", "user", "call", "other")
MICRO = 1_000_000


def sum_days(rows: Iterable[DayMoney]) -> tuple[float, Usage, int]:
    usd, usage, unpriced = 0.0, Usage(), 0
    for one in rows:
        usd, usage, unpriced = usd + one.usd, usage + one.usage, unpriced + one.unpriced
    return usd, usage, unpriced


def money_panel(words: Words, asked: Period, rows: list[DayMoney]) -> Html:
    by_model: dict[str, float] = defaultdict(float)
    for one in rows:
        by_model[one.model] += one.usd
    models = sorted(by_model, key=lambda name: -by_model[name])
    colour = {name: COLOURS[min(at, len(COLOURS) - 1)] for at, name in enumerate(models)}
    series = _series(words, asked, rows, colour)
    legend = [
        tag(
            "span",
            None,
            tag("i", {"class": f"dot k-{colour[name]}"}),
            bdi(name or words("overview.no_model")),
            f" {money(by_model[name])}",
        )
        for name in models
    ]
    parts = [
        tag("span", None, tag("i", {"class": f"dot c-{name}"}), words(f"overview.{name}"), f" {money(total)}")
        for name, total in zip(("read", "written", "output"), _parts(rows), strict=True)
    ]
    head = tag("header", None, tag("h2", None, words("overview.money")), tag("span", {"class": "sp"}))
    return tag(
        "section",
        {"class": "panel"},
        head,
        tag("div", {"class": "chart", "id": "days", "data-series": json.dumps(series)}) if rows else None,
        tag(
            "div",
            {"class": "body"},
            tag("p", {"id": "day", "role": "status"}, series["sentences"][-1])
            if rows
            else tag("p", None, words("overview.no_money")),
            tag("p", {"class": "key small"}, legend),
            tag("p", {"class": "key small"}, parts) if rows else None,
            _table(words, asked, rows),
        ),
    )


def _parts(rows: Iterable[DayMoney]) -> tuple[float, float, float]:
    read = written = output = 0.0
    for one in rows:
        read, written, output = read + one.usd_read, written + one.usd_written, output + one.usd_output
    return read, written, output


def _by_day(asked: Period, rows: Iterable[DayMoney]) -> dict[str, list[DayMoney]]:
    found: dict[str, list[DayMoney]] = {day: [] for day in asked.days}
    for one in rows:
        found.setdefault(one.day, []).append(one)
    return found


def _series(words: Words, asked: Period, rows: list[DayMoney], colour: dict[str, str]) -> dict[str, Any]:
    """Return the days as columns of the chart: microdollars by model, and below them read, written and output."""
    of_day = _by_day(asked, rows)
    kinds: dict[str, list[int]] = {name: [0] * len(asked.days) for name in COLOURS if name in colour.values()}
    for at, day in enumerate(asked.days):
        for one in of_day[day]:
            kinds[colour[one.model]][at] += round(one.usd * MICRO)
    totals = [sum(values) for values in zip(*kinds.values(), strict=True)] if kinds else [0] * len(asked.days)
    return {
        "tokens": totals,
        "kinds": kinds,
        "usd": [[round(part * MICRO) for part in _parts(of_day[day])] for day in asked.days],
        "turn": list(range(len(asked.days))),
        "start": asked.start,
        "time": [86_400 * at for at in range(len(asked.days))],
        "pause": [0] * len(asked.days),
        "decisions": [],
        "columns": [_short(words, day) for day in asked.days],
        "summary": words("overview.money"),
        "sentences": [_sentence(words, day, of_day[day]) for day in asked.days],
    }


def _short(words: Words, day: str) -> str:
    at = datetime.fromisoformat(day)
    return f"{at.day} {words(f'month.{at.month}')}" if words.lang == "en" else f"{at.month}月{at.day}日"


def _sentence(words: Words, day: str, rows: list[DayMoney]) -> str:
    usd, usage, unpriced = sum_days(rows)
    read, written, output = map(money, _parts(rows))
    line = words(
        "overview.day",
        day=_short(words, day),
        usd=money(usd),
        read=read,
        written=written,
        output=output,
        share=share(usage.cache_read, usage.prompt),
    )
    return f"{line} {words('overview.unpriced', n=unpriced)}" if unpriced else line


def _table(words: Words, asked: Period, rows: list[DayMoney]) -> Html | None:
    if not rows:
        return None
    heads = ("overview.date", "overview.read", "overview.written", "overview.output", "overview.total")
    made = []
    for day, within in reversed(_by_day(asked, rows).items()):
        read, written, output = _parts(within)
        cells = [_short(words, day), money(read), money(written), money(output), money(read + written + output)]
        made.append(tag("tr", None, [tag("td", None, cell) for cell in cells]))
    whole = tag(
        "table",
        {"class": "data"},
        tag("thead", None, tag("tr", None, [tag("th", None, words(head)) for head in heads])),
        tag("tbody", None, made),
    )
    return tag(
        "details",
        {"id": "as-table"},
        tag("summary", {"class": "btn sm"}, words("overview.as_table")),
        tag("div", {"class": "scroll"}, whole),
    )
