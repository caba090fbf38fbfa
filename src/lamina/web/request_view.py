"""One request: the panel beside the chart, and its blocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from ..core.errors import InputError
from ..core.settings import Billing
from ..history.request_blocks import RequestBlock, RequestBlocks
from ..history.window_series import KINDS, Balance, Decision, RequestPoint, Series
from ..language.text import Text
from ..providers.amounts import Amount
from ..providers.models import known as is_known
from . import labels
from .block_rows import block_label, block_rows
from .html import Attribute, Html, bdi, cut, join, tag
from .numbers import NO_COUNTS, amount, clock, share, signed, time_of_day, tokens
from .page import fragment, number_of
from .session_data import OpenSession
from .session_list import address
from .site import Site
from .words import Words, words_for

# Less than half a cent is neither a gain nor a loss; nor are as many units, which are as much at a middling price.
LEAST: dict[Billing, float] = {"list": 0.005, "subscription": 1_500}
# Blocks listed beside the chart; the whole page lists all.
MOST_WENT, MOST_CAME, MOST_LARGEST = 4, 4, 8
# Kinds without a share in any request are left out of the legend, except those that every session may have.
RARE = ("system", "tools")


def panel(site: Site, request: Request, opened: OpenSession) -> Response:
    number = request.path_params["number"]
    if not 1 <= number <= len(opened.series.requests):
        return fragment(tag("p", None, words_for(request)("Request {number} does not exist.", number=number)), 404)
    return fragment(panel_of(words_for(request), opened, number))


def panel_of(words: Words, opened: OpenSession, number: int) -> Html:
    """Return the panel beside the chart. Its blocks are fetched after it, because they take a fold of the session."""
    series, base = opened.series, address(opened.session)
    point = series.requests[number - 1]
    count = len(series.requests)

    def step(to: int, sign: str, key: str) -> Html:
        to = max(1, min(count, to))
        return tag("a", {"class": "btn sm", "href": f"{base}?r={to}", "data-select": to, "aria-label": words(key)}, sign)

    def kept(name: str, part: Html) -> Html:
        """Return a part that stays while the session grows: it is that of this request, with the blocks that were unfolded."""
        return tag("div", {"id": f"{name}-{number}", "data-keep": True}, part)

    header = tag(
        "header",
        None,
        tag("h2", {"id": "hr"}, words("Request {number} of {count}", number=number, count=f"{count:,}")),
        tag(
            "span",
            {"class": "soft small", "id": "hrt"},
            clock(words, point.time, seconds=True),
            words(", turn {turn}", turn=point.turn),
        ),
        tag("span", {"class": "sp"}),
        tag(
            "div", {"class": "pos"}, step(number - 1, "‹", Text("Previous request")), step(number + 1, "›", Text("Next request"))
        ),
    )
    reading = tag("p", {"class": "soft small script"}, words("Reading the blocks …"))
    body = tag(
        "div",
        {"class": "body"},
        total_line(words, point),
        kept("strip", _strip(words, series, point)),
        cache_key(words, series, point),
        [decision_panel(words, one) for one in series.decisions if one.request == number],
        _legend(words, series, point),
        kept(
            "blocks",
            tag("div", {"id": "blocks", "data-blocks": f"{base}/requests/{number}/blocks", "aria-busy": "true"}, reading),
        ),
        tag("p", None, tag("a", {"class": "btn sm", "href": f"{base}/requests/{number}"}, words("Open the whole request"))),
    )
    facts: dict[str, Attribute] = {"data-number": number, "data-sentence": _sentence(words, point, count)}
    return tag("section", {"class": "panel req", "aria-labelledby": "hr", "id": "req"} | facts, header, body)


def _sentence(words: Words, point: RequestPoint, count: int) -> str:
    """Return a request in a sentence, as the slider of the chart says it."""
    kinds = sorted(zip(point.kinds, KINDS, strict=True), reverse=True)[:3]
    return words(
        "{title}, {time}: {tokens} tokens, {cache}, {usd}. Largest: {largest}.",
        title=words("Request {number} of {count}", number=f"{point.number:,}", count=f"{count:,}"),
        time=time_of_day(point.time),
        tokens=tokens(point.tokens),
        cache=_cached(words, point),
        usd=request_amount(words, point),
        largest=", ".join(f"{words(labels.BLOCK_KINDS[kind])} {tokens(held)}" for held, kind in kinds),
    )


def total_line(words: Words, point: RequestPoint) -> Html:
    about = "" if point.reported else "≈ "
    return tag(
        "p",
        {"class": "tot", "id": "tot"},
        tag("b", None, about + tokens(point.tokens)),
        f" {words('tokens')}",
        tag("span", {"class": "soft"}, _cached(words, point)),
        tag("span", {"class": "soft"}, request_amount(words, point)),
    )


def _cached(words: Words, point: RequestPoint) -> str:
    return words("{share} from cache", share=share(point.read, point.tokens)) if point.reported else words("estimate")


def request_amount(words: Words, point: RequestPoint) -> str:
    return amount(words, Amount(point.usage, point.usd)) if point.reported else NO_COUNTS


def _strip(words: Words, series: Series, point: RequestPoint) -> Html:
    """The window in the order in which its kinds are sent."""
    made, left = [], 0.0
    for kind, count in zip(KINDS, point.kinds, strict=True):
        if count:
            width = 1000 * count / series.window
            title = tag("title", None, f"{words(labels.BLOCK_KINDS[kind])} {tokens(count)}")
            made.append(
                tag("rect", {"class": f"k-{kind}", "x": f"{left:.2f}", "width": f"{max(1.0, width):.2f}", "height": 26}, title)
            )
            left += width
    attributes = {"class": "strip", "viewBox": "0 0 1000 26", "preserveAspectRatio": "none", "role": "img"}
    read = 1000 * point.read / series.window
    written = 1000 * (point.tokens - point.read) / series.window
    under = tag(
        "svg",
        {"class": "under", "viewBox": "0 0 1000 4", "preserveAspectRatio": "none", "aria-hidden": "true"},
        tag("rect", {"class": "c-read", "width": f"{read:.2f}", "height": 4}),
        tag("rect", {"class": "c-written", "x": f"{read:.2f}", "width": f"{max(3.0, written):.2f}", "height": 4}),
    )
    return join(
        (
            tag("svg", attributes | {"aria-label": words("The request in the order it is sent")}, made),
            under if point.reported else None,
        )
    )


def block_strip(words: Words, series: Series, found: RequestBlocks) -> Html:
    """The same strip, block by block."""
    made, left = [], 0.0
    for block in found.blocks:
        width = 1000 * block.tokens / series.window
        title = tag("title", None, f"{block_label(words, block)} {cut(block.file or block.words, 60)} {tokens(block.tokens)}")
        made.append(
            tag(
                "rect",
                {"class": f"k-{block.kind}", "x": f"{left:.2f}", "width": f"{max(0.5, width - 0.6):.2f}", "height": 26},
                title,
            )
        )
        left += width
    attributes = {"class": "strip", "viewBox": "0 0 1000 26", "preserveAspectRatio": "none", "role": "img"}
    return tag("svg", attributes | {"aria-label": words("The request in the order it is sent")}, made)


def knows_window(series: Series) -> bool:
    """Whether the size of the window is recorded, set or that of a known model."""
    return series.window_source != "default" or is_known(series.model) is not None


def cache_key(words: Words, series: Series, point: RequestPoint) -> Html:
    new = point.tokens - point.read
    parts = [
        tag("span", None, tag("i", {"class": "dot c-read"}), words("{tokens} read from cache", tokens=tokens(point.read))),
        tag(
            "span",
            None,
            tag("i", {"class": "dot c-written"}),
            words("{tokens} written to it" if point.written > 2_000 else "{tokens} new", tokens=tokens(new)),
        ),
    ]
    left = tokens(max(0, series.window - point.tokens))
    free = tag("span", None, words("{tokens} free", tokens=left)) if knows_window(series) else None
    return tag("p", {"class": "key small soft"}, parts if point.reported else None, free)


def decision_label(words: Words, decision: Decision) -> str:
    """Return the short label of a mark: what happened, and to how many."""
    label, count = words(labels.DECISIONS[decision.kind]), decision.title.values.get("n")
    return f"{label} {count:,}" if decision.kind in ("clear", "spill", "collapse") and count is not None else label


class _Balance(NamedTuple):
    """What a decision cost and saved, in dollars or units."""

    again: float
    call: float
    saved: float
    total: float
    even: int | None


def _balance(words: Words, decision: Decision) -> _Balance | None:
    """Return the balance of a decision; None if it has none, or if a price is unknown."""
    match decision.balance:
        case Balance(units=units) if words.billing == "subscription":
            return _Balance(units.cost_written_again, units.call, units.saved, units.total, units.breaks_even_after_requests)
        case Balance(cost_written_again_usd=float(again), saved_usd=float(saved), total_usd=float(total)) as found:
            return _Balance(again, found.call_usd or 0.0, saved, total, found.breaks_even_after_requests)
        case _:
            return None


def total_of(words: Words, decision: Decision) -> float | None:
    """Return what a decision saved, minus what it cost."""
    return found.total if (found := _balance(words, decision)) is not None else None


def decision_panel(words: Words, decision: Decision) -> Html:
    found, kept = _balance(words, decision), decision.balance
    lost = found is not None and found.total <= -LEAST[words.billing]
    decided = found is not None and abs(found.total) >= LEAST[words.billing]
    verdict = words("It did not pay." if lost else "It paid.") if decided else ""
    rows: list[Html] = []
    if found is not None and kept is not None:
        rows = [
            _sum(
                words("{tokens} tokens written to the cache again", tokens=tokens(decision.written_again)),
                signed(words, -found.again),
            ),
            _sum(words("The call that wrote the summary"), signed(words, -found.call)) if found.call else Html(""),
            _sum(
                words(
                    "{tokens} tokens fewer to read, once|{tokens} tokens fewer to read, {n} times",
                    tokens=tokens(kept.tokens_fewer),
                    n=kept.requests_until_next,
                ),
                signed(words, found.saved),
            ),
            _sum(words("Balance until the next decision"), signed(words, found.total), "sum"),
        ]
    even = found.even if found is not None and lost else None
    by = words("By {by}.", by=words(decision.by)) if decision.by else words("No record tells why.")
    return tag(
        "div",
        {"class": "why" if lost else "why neutral"},
        tag("h3", None, bdi(words(decision.title)), words(". "), verdict),
        tag("p", {"class": "small"}, bdi(words(decision.detail))) if decision.detail else None,
        tag("table", None, tag("tbody", None, rows)) if rows else None,
        tag(
            "p",
            {"class": "small soft"},
            by,
            " ",
            words("It would have paid after {n} request.|It would have paid after {n} requests.", n=even) if even else None,
        ),
    )


def _sum(label: str, amount: str, row: str = "") -> Html:
    return tag("tr", {"class": row or None}, tag("td", None, label), tag("td", {"class": "num"}, amount))


def _legend(words: Words, series: Series, point: RequestPoint) -> Html:
    """The kinds, in the order of the picture. Rows stay when they are zero, so that nothing jumps while scrubbing."""
    most = max((max(one.kinds) for one in series.requests), default=1) or 1
    rows = []
    for at, kind in reversed(list(enumerate(KINDS))):
        if kind in RARE and not any(one.kinds[at] for one in series.requests):
            continue
        count = point.kinds[at]
        bar = tag(
            "rect", {"class": f"k-{kind}", "width": f"{max(1.0, 100 * count / most) if count else 0:.1f}", "height": 5, "rx": 1}
        )
        picture = tag("svg", {"class": "bar", "viewBox": "0 0 100 5", "preserveAspectRatio": "none", "aria-hidden": "true"}, bar)
        button = tag(
            "button",
            {
                "type": "button",
                "data-kind": kind,
                "aria-pressed": "false",
                "class": None if count else "z",
                "title": words("Draw this kind at the bottom of the chart"),
            },
            tag("span", {"class": f"sw k-{kind}"}),
            tag("span", None, words(labels.BLOCK_KINDS[kind])),
            picture,
            tag("span", {"class": "num"}, tokens(count)),
            tag("span", {"class": "pc"}, share(count, point.tokens) if count else ""),
        )
        rows.append(tag("li", None, button))
    return tag("ul", {"class": "leg", "id": "kinds"}, rows)


def blocks(site: Site, request: Request, opened: OpenSession) -> Response:
    """Return the blocks that came and went, and the largest blocks of a request."""
    words = words_for(request)
    found = blocks_of(request, opened)
    if found is None:
        return fragment(tag("p", None, words("Request {number} does not exist.", number=request.path_params["number"])), 404)
    return fragment(
        join(
            (
                block_strip(words, opened.series, found),
                _changes(words, opened, found),
                _largest(words, opened, found),
            )
        )
    )


def blocks_of(request: Request, opened: OpenSession) -> RequestBlocks | None:
    number = request.path_params["number"]
    try:
        return opened.requests.blocks(number, number_of(request, "against"))
    except InputError:  # there is no such request, or no longer: the file was replaced after its window was read
        return None


def change_head(words: Words, found: RequestBlocks) -> Html:
    """Return how many blocks came and went since the request that is compared."""
    minus = (
        words("−{n} block, {tokens}|−{n} blocks, {tokens}", n=len(found.went), tokens=_sum_of(found.went))
        if found.went
        else words("nothing left")
    )
    return tag(
        "div",
        {"class": "sec"},
        tag("h2", None, words("Since request {number}", number=found.against)),
        tag(
            "span",
            {"class": "good small"},
            words("+{n} block, {tokens}|+{n} blocks, {tokens}", n=len(found.came), tokens=_sum_of(found.came)),
        ),
        tag("span", {"class": "bad small" if found.went else "soft small"}, minus),
    )


def _changes(words: Words, opened: OpenSession, found: RequestBlocks) -> Html:
    if found.against is None:
        return Html("")
    came, went = largest_first(found.came), largest_first(found.went)
    rows = [
        *block_rows(words, opened, found, went[:MOST_WENT], "−"),
        *block_rows(words, opened, found, came[:MOST_CAME], "+"),
    ]
    left = max(0, len(went) - MOST_WENT) + max(0, len(came) - MOST_CAME)
    url = f"{address(opened.session)}/requests/{found.number}"
    more = tag("p", {"class": "small"}, tag("a", {"href": url}, words("{n} more|{n} more", n=left))) if left else None
    return join((change_head(words, found), tag("ul", {"class": "rows"}, rows), more))


def _largest(words: Words, opened: OpenSession, found: RequestBlocks) -> Html:
    ordered = largest_first(found.blocks)
    copies = [block for block in found.blocks if block.older_copy]
    said = (
        tag(
            "span",
            {"class": "warn small"},
            words("{n} older copy, {tokens}|{n} older copies, {tokens}", n=len(copies), tokens=_sum_of(copies)),
        )
        if copies
        else None
    )
    head = tag("div", {"class": "sec"}, tag("h2", None, words("Largest blocks")), said)
    return join((head, tag("ul", {"class": "rows"}, block_rows(words, opened, found, ordered[:MOST_LARGEST]))))


def largest_first(blocks: Iterable[RequestBlock]) -> list[RequestBlock]:
    return sorted(blocks, key=lambda block: -block.tokens)


def _sum_of(blocks: Iterable[RequestBlock]) -> str:
    return tokens(sum(block.tokens for block in blocks))
