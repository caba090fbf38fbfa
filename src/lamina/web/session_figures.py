"""The figures of a session: cost by part, requests, the fullest request, the share of the cache, and what the decisions did."""

from __future__ import annotations

from ..core.usage import Usage
from ..history.window_series import RequestPoint, Series
from ..providers.amounts import unit_parts
from . import request_view
from .html import Html, tag
from .numbers import NO_COUNTS, at_least, parts_apart, price, share, sum_known, tokens
from .words import Words


def figures(words: Words, series: Series) -> Html:
    requests = series.requests
    if not requests:
        return tag("div", {"class": "empty", "id": "figs"}, tag("p", None, words("session.no_requests")))
    sent = sum(point.tokens for point in requests)
    read = sum(point.read for point in requests)
    fullest = fullest_of(series)
    peak = words(
        "session.fullest_known", share=share(fullest.tokens, series.window), window=tokens(series.window), at=fullest.number
    )
    again = sum(one.written_again for one in series.decisions)
    dollars = words.billing == "list"
    cost = [one.written_again_usd for one in series.decisions]
    paid = words("session.again_usd", usd=price(words, sum_known(cost))) if dollars else ""
    cached = words("session.again", tokens=tokens(again)) + paid if again else words("session.nothing_again")
    if series.estimated:
        cached = words("sessions.no_counts")
    return tag(
        "dl",
        {"class": "figs", "id": "figs"},
        _cost_figure(words, series),
        _figure(
            words("session.requests"),
            f"{len(requests):,}",
            words("session.in_turns", n=len(series.turns)),
            words("session.average", tokens=tokens(sent / len(requests))),
        ),
        _figure(
            words("session.fullest"),
            tokens(fullest.tokens),
            words("session.tokens_unit"),
            peak if request_view.knows_window(series) else words("session.fullest_unknown", at=fullest.number),
        ),
        _figure(
            words("session.from_cache"),
            f"{100 * read / sent:.1f}%" if sent and not series.estimated else NO_COUNTS,
            "",
            cached,
        ),
        _figure(
            words("session.happened"),
            f"{len(series.decisions):,}",
            words("session.decisions", n=len(series.decisions)),
            _told(words, series),
        ),
    )


def _figure(name: str, value: str, unit: str, text: str, extra: Html | None = None) -> Html:
    small = (" ", tag("small", None, unit)) if unit else None
    return tag("div", None, tag("dt", None, name), tag("dd", None, value, small), extra, tag("dd", {"class": "p"}, text))


def _cost_figure(words: Words, series: Series) -> Html:
    requests, short = series.requests, series.short_outputs > 0
    if series.estimated:
        return _figure(words("session.cost"), NO_COUNTS, "", words("sessions.no_counts"))
    unknown = sum(point.usd is None for point in requests) if words.billing == "list" else 0
    if unknown == len(requests):
        return _figure(words("session.cost"), words("money.unknown"), "", words("session.unpriced", n=unknown))
    parts, texts = _cost_parts(words, requests, short=short)
    total = sum(parts.values())
    bar = tag(
        "svg",
        {
            "class": "split",
            "viewBox": "0 0 1000 6",
            "preserveAspectRatio": "none",
            "role": "img",
            "aria-label": words("session.split"),
        },
        _split(parts, total),
    )
    keys = [
        tag("span", None, tag("i", {"class": f"dot c-{name}"}), words(f"session.{name}", usd=text))
        for name, text in zip(parts, texts, strict=True)
    ]
    more = tag("span", None, words("session.unpriced", n=unknown)) if unknown else None
    return tag(
        "div",
        None,
        tag("dt", None, words("session.cost")),
        tag("dd", None, at_least(words, total, short=short or unknown > 0)),
        tag("dd", {"class": "p"}, bar, tag("span", {"class": "key"}, keys, more)),
    )


def _cost_parts(words: Words, requests: tuple[RequestPoint, ...], *, short: bool) -> tuple[dict[str, float], list[str]]:
    """Return what reading, writing and output cost, and their texts: dollars, or tokens beside the share of the units."""
    names = ("read", "written", "output")
    if words.billing == "list":
        parts = {name: sum(getattr(point, f"usd_{name}") or 0.0 for point in requests) for name in names}
        return parts, [at_least(words, usd, short=short and name == "output") for name, usd in parts.items()]
    usage = sum((point.usage for point in requests), Usage())
    parts = dict(zip(names, unit_parts(usage), strict=True))
    whole, counts = sum(parts.values()), parts_apart(words, usage)
    return parts, [f"{count} ({share(part, whole)})" for part, count in zip(parts.values(), counts, strict=True)]


def _split(parts: dict[str, float], total: float) -> list[Html]:
    drawn, left = [], 0.0
    for name, usd in parts.items():
        width = 1000 * usd / total if total else 0.0
        drawn.append(tag("rect", {"class": f"c-{name}", "x": f"{left:.1f}", "width": f"{max(0.0, width - 3):.1f}", "height": 6}))
        left += width
    return drawn


def fullest_of(series: Series) -> RequestPoint:
    """Return the fullest request, as lists show it: an estimate counts only in a session without any reported count."""
    reported = [point for point in series.requests if point.reported]
    return max(reported or series.requests, key=lambda point: point.tokens)


def _told(words: Words, series: Series) -> str:
    """Say in a sentence or two what the decisions did."""
    told = []
    clearings = [one for one in series.decisions if one.kind in ("clear", "spill", "collapse") and one.balance is not None]
    totals = [total for one in clearings if (total := request_view.total_of(words, one)) is not None]
    if totals:
        balance = sum(totals)
        key = "session.clearings_lost" if balance < 0 else "session.clearings_saved"
        told.append(words(key, n=len(totals), usd=price(words, abs(balance))))
    for kind in ("compact", "model", "break", "unrecorded"):
        if count := sum(one.kind == kind for one in series.decisions):
            told.append(words(f"session.count_{kind}", n=count))
    return " ".join(told) or words("session.nothing_happened")
