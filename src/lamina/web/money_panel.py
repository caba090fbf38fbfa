"""The costs of a period by day and model, in dollars or in units: the chart, its legend, and the same figures as a table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ..core.usage import Usage
from ..history.money import DayMoney
from ..language.text import Text
from ..providers.amounts import Amount, unit_parts
from ..providers.models import CostParts
from . import labels
from .html import Html, bdi, tag
from .numbers import amount, money, parts_apart, share
from .period import Period
from .words import Words

# The colours of the models, the dearest first: none of those of read, written and output. The last one stands for all others.
COLOURS = ("thinking", "memory", "web", "shell", "user", "call", "other")
MICRO = 1_000_000


def sum_days(rows: Iterable[DayMoney]) -> tuple[Amount, int]:
    """Return the amount of some rows, and how many calls have no price. Those are not in the dollars."""
    total, unpriced = Amount(), 0
    for one in rows:
        total, unpriced = total + Amount(one.usage, one.usd), unpriced + one.unpriced
    return total, unpriced


def money_panel(words: Words, asked: Period, rows: list[DayMoney]) -> Html:
    by_model: dict[str, float] = defaultdict(float)
    for one in rows:
        by_model[one.model] += sum(_parts(words, [one]))
    whole = sum(by_model.values())
    models = sorted(by_model, key=lambda name: -by_model[name])
    colour = {name: COLOURS[min(at, len(COLOURS) - 1)] for at, name in enumerate(models)}
    series = _series(words, asked, rows, colour)
    legend = [
        tag(
            "span",
            None,
            tag("i", {"class": f"dot k-{colour[name]}"}),
            bdi(name or words("model unknown")),
            f" {money(by_model[name]) if words.billing == 'list' else share(by_model[name], whole)}",
        )
        for name in models
    ]
    parts = [
        tag("span", None, tag("i", {"class": f"dot c-{name}"}), words(labels.COST_PARTS[name]), f" {total}")
        for name, total in zip(("read", "written", "output"), _part_texts(words, rows), strict=True)
    ]
    head = tag(
        "header",
        None,
        tag("h2", None, words("Money by day and model" if words.billing == "list" else "Units by day and model")),
        tag("span", {"class": "sp"}),
    )
    return tag(
        "section",
        {"class": "panel"},
        head,
        tag("figure", {"class": "chart"}, tag("div", {"id": "days", "data-series": json.dumps(series)})) if rows else None,
        tag(
            "div",
            {"class": "body"},
            tag("p", {"id": "day", "role": "status"}, series["sentences"][-1])
            if rows
            else tag("p", None, words("No session of this period reports its usage.")),
            tag("p", {"class": "key small"}, legend),
            tag("p", {"class": "key small"}, parts) if rows else None,
            _table(words, asked, rows),
        ),
    )


def _parts(words: Words, rows: Iterable[DayMoney]) -> CostParts:
    """Return what reading, writing and output cost, in dollars or units."""
    if words.billing == "subscription":
        return unit_parts(sum((one.usage for one in rows), Usage()))
    read = written = output = 0.0
    for one in rows:
        read, written, output = read + one.usd_read, written + one.usd_written, output + one.usd_output
    return CostParts(read, written, output)


def _part_texts(words: Words, rows: Iterable[DayMoney]) -> list[str]:
    """Return reading, writing and output in dollars, or in tokens."""
    if words.billing == "list":
        return [money(part) for part in _parts(words, rows)]
    return parts_apart(words, sum((one.usage for one in rows), Usage()))


def _by_day(asked: Period, rows: Iterable[DayMoney]) -> dict[str, list[DayMoney]]:
    found: dict[str, list[DayMoney]] = {day: [] for day in asked.days}
    for one in rows:
        found.setdefault(one.day, []).append(one)
    return found


def _series(words: Words, asked: Period, rows: list[DayMoney], colour: dict[str, str]) -> dict[str, Any]:
    """Return the days as columns of the chart: microdollars or units by model, and below them read, written and output."""
    of_day, scale = _by_day(asked, rows), MICRO if words.billing == "list" else 1
    kinds: dict[str, list[int]] = {name: [0] * len(asked.days) for name in COLOURS if name in colour.values()}
    for at, day in enumerate(asked.days):
        for one in of_day[day]:
            kinds[colour[one.model]][at] += round(sum(_parts(words, [one])) * scale)
    totals = [sum(values) for values in zip(*kinds.values(), strict=True)] if kinds else [0] * len(asked.days)
    return {
        "tokens": totals,
        "kinds": kinds,
        "cost": [[round(part * scale) for part in _parts(words, of_day[day])] for day in asked.days],
        "units": words.billing == "subscription",
        "turn": list(range(len(asked.days))),
        "start": asked.start,
        "time": [86_400 * at for at in range(len(asked.days))],
        "pause": [0] * len(asked.days),
        "columns": [_short(words, day) for day in asked.days],
        "summary": words("Money by day and model" if words.billing == "list" else "Units by day and model"),
        "sentences": [_sentence(words, day, of_day[day], rows) for day in asked.days],
    }


def _short(words: Words, day: str) -> str:
    at = datetime.fromisoformat(day)
    return words("{d} {month}", d=at.day, month=labels.MONTHS[at.month - 1])


def _sentence(words: Words, day: str, rows: list[DayMoney], period: list[DayMoney]) -> str:
    if not rows:
        return words(
            "{period}: no costs recorded" if words.billing == "list" else "{period}: no use recorded", period=_short(words, day)
        )
    total, unpriced = sum_days(rows)
    read, written, output = _part_texts(words, rows)
    line = words(
        "{day}: {usd} (read {read}, written {written}, output {output}); {share} of the input was read from cache."
        if words.billing == "list"
        else "{day}: {part} of the period: {usd} (read {read}, written {written}, output {output}); {share} of "
        "the input was read from cache.",
        day=_short(words, day),
        usd=amount(words, total),
        part=share(sum(_parts(words, rows)), sum(_parts(words, period))),
        read=read,
        written=written,
        output=output,
        share=share(total.usage.cache_read, total.usage.prompt),
    )
    return (
        f"{line} {words('Price unknown for {n} call.|Price unknown for {n} calls.', n=unpriced)}"
        if unpriced and words.billing == "list"
        else line
    )


def _table(words: Words, asked: Period, rows: list[DayMoney]) -> Html | None:
    if not rows:
        return None
    heads = (
        Text("Day"),
        Text("Read from cache"),
        Text("Written"),
        Text("Output"),
        Text("Total") if words.billing == "list" else Text("Share of the period"),
    )
    made, period = [], sum(_parts(words, rows))
    for day, within in reversed(_by_day(asked, rows).items()):
        whole = sum(_parts(words, within))
        last = money(whole) if words.billing == "list" else share(whole, period)
        cells = [_short(words, day), *_part_texts(words, within), last]
        made.append(tag("tr", None, [tag("td", None, cell) for cell in cells]))
    table = tag(
        "table",
        {"class": "data"},
        tag("thead", None, tag("tr", None, [tag("th", None, words(head)) for head in heads])),
        tag("tbody", None, made),
    )
    return tag(
        "details",
        {"id": "as-table"},
        tag("summary", {"class": "btn sm"}, words("Show as table")),
        tag("div", {"class": "scroll"}, table),
    )
