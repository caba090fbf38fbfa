"""The figures of a session: cost by part, requests, the fullest request, the share of the cache, and what the decisions did."""

from __future__ import annotations

from ..core.usage import Usage
from ..history.window_series import RequestPoint, Series
from ..language.text import Text
from ..providers.amounts import unit_parts
from . import labels, request_view
from .html import Html, tag
from .numbers import NO_COUNTS, at_least, parts_apart, price, share, sum_known, tokens
from .words import Words


def figures(words: Words, series: Series) -> Html:
    requests = series.requests
    if not requests:
        return tag("div", {"class": "empty", "id": "figs"}, tag("p", None, words("This session has no requests yet.")))
    sent = sum(point.tokens for point in requests)
    read = sum(point.read for point in requests)
    fullest = fullest_of(series)
    peak = words(
        "{share} of the {window} window, request {at}",
        share=share(fullest.tokens, series.window),
        window=tokens(series.window),
        at=fullest.number,
    )
    again = sum(one.written_again for one in series.decisions)
    dollars = words.billing == "list"
    cost = [one.written_again_usd for one in series.decisions]
    paid = words(", {usd}", usd=price(words, sum_known(cost))) if dollars else ""
    cached = words("{tokens} tokens written again", tokens=tokens(again)) + paid if again else words("nothing was written twice")
    if series.estimated:
        cached = words("No token counts recorded")
    return tag(
        "dl",
        {"class": "figs", "id": "figs"},
        _cost_figure(words, series),
        _figure(
            words("Requests"),
            f"{len(requests):,}",
            words("in {n} turn|in {n} turns", n=len(series.turns)),
            words("{tokens} tokens on average", tokens=tokens(sent / len(requests))),
        ),
        _figure(
            words("Fullest request"),
            tokens(fullest.tokens),
            words("tokens"),
            peak
            if request_view.knows_window(series)
            else words("request {at}; the size of the window is not recorded", at=fullest.number),
        ),
        _figure(
            words(Text("Read from cache##a figure")),
            f"{100 * read / sent:.1f}%" if sent and not series.estimated else NO_COUNTS,
            "",
            cached,
        ),
        _figure(
            words("What happened to the window"),
            f"{len(series.decisions):,}",
            words("decision|decisions", n=len(series.decisions)),
            _told(words, series),
        ),
    )


def _figure(name: str, value: str, unit: str, text: str, extra: Html | None = None) -> Html:
    small = (" ", tag("small", None, unit)) if unit else None
    return tag("div", None, tag("dt", None, name), tag("dd", None, value, small), extra, tag("dd", {"class": "p"}, text))


def _cost_figure(words: Words, series: Series) -> Html:
    requests, short = series.requests, series.short_outputs > 0
    if series.estimated:
        return _figure(
            words("Cost at list price" if words.billing == "list" else "Use"), NO_COUNTS, "", words("No token counts recorded")
        )
    unknown = sum(point.usd is None for point in requests) if words.billing == "list" else 0
    if unknown == len(requests):
        return _figure(
            words("Cost at list price" if words.billing == "list" else "Use"),
            words("price unknown"),
            "",
            words("price unknown ({n} request)|price unknown ({n} requests)", n=unknown),
        )
    parts, texts = _cost_parts(words, requests, short=short)
    total = sum(parts.values())
    bar = tag(
        "svg",
        {
            "class": "split",
            "viewBox": "0 0 1000 6",
            "preserveAspectRatio": "none",
            "role": "img",
            "aria-label": words(
                "Share of read, written and output cost" if words.billing == "list" else "Share of read, written and output units"
            ),
        },
        _split(parts, total),
    )
    keys = [
        tag("span", None, tag("i", {"class": f"dot c-{name}"}), words(labels.COST_TEXTS[name], usd=text))
        for name, text in zip(parts, texts, strict=True)
    ]
    more = tag("span", None, words("price unknown ({n} request)|price unknown ({n} requests)", n=unknown)) if unknown else None
    return tag(
        "div",
        None,
        tag("dt", None, words("Cost at list price" if words.billing == "list" else "Use")),
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
        key = (
            Text("The clearing cost {usd} more than it saved.|The {n} clearings cost {usd} more than they saved.")
            if balance < 0
            else Text("The clearing saved {usd} more than it cost.|The {n} clearings saved {usd} more than they cost.")
        )
        told.append(words(key, n=len(totals), usd=price(words, abs(balance))))
    for kind in ("compact", "model", "break", "unrecorded"):
        if count := sum(one.kind == kind for one in series.decisions):
            told.append(words(labels.DECISION_COUNTS[kind], n=count))
    return " ".join(told) or words("It only grew.")
