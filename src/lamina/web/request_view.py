"""One request: the panel beside the chart, its blocks, and the whole page with the difference to another request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from ..core.errors import InputError
from ..core.settings import Billing
from ..providers.amounts import Amount
from ..providers.models import known as is_known
from ..session.request_blocks import RequestBlock, RequestBlocks
from ..session.window_series import KINDS, Balance, Decision, RequestPoint, Series
from .html import Attribute, Html, bdi, cut, file_name, join, tag
from .numbers import NO_COUNTS, amount, clock, price, share, signed, tokens
from .page import fragment, page, problem
from .session_data import OpenSession
from .session_list import TITLE_CHARS, address, title_of
from .site import Site
from .words import Words, words_for

# Labels of blocks that say no more than their kind.
PLAIN = ("message", "answer", "thinking")
# Less than half a cent is neither a gain nor a loss; nor are as many units, which are as much at a middling price.
LEAST: dict[Billing, float] = {"list": 0.005, "subscription": 1_500}
# Blocks listed beside the chart; the whole page lists all.
MOST_WENT, MOST_CAME, MOST_LARGEST = 4, 4, 8
# Kinds without a share in any request are left out of the legend, except those that every session may have.
RARE = ("system", "tools")


def panel(site: Site, request: Request, opened: OpenSession) -> Response:
    number = request.path_params["number"]
    if not 1 <= number <= len(opened.series.requests):
        return fragment(tag("p", None, words_for(request)("request.missing", number=number)), 404)
    return fragment(panel_of(words_for(request), opened, number))


def panel_of(words: Words, opened: OpenSession, number: int) -> Html:
    """Return the panel beside the chart. Its blocks are fetched after it, because they take a fold of the session."""
    series, base = opened.series, address(opened.session)
    point = series.requests[number - 1]
    count = len(series.requests)

    def step(to: int, sign: str, key: str) -> Html:
        to = max(1, min(count, to))
        return tag("a", {"class": "btn sm", "href": f"{base}?r={to}", "data-select": to, "aria-label": words(key)}, sign)

    header = tag(
        "header",
        None,
        tag("h2", {"id": "hr"}, words("request.title", number=number, count=f"{count:,}")),
        tag(
            "span",
            {"class": "soft small", "id": "hrt"},
            clock(words, point.time, seconds=True),
            words("request.turn", turn=point.turn),
        ),
        tag("span", {"class": "sp"}),
        tag("div", {"class": "pos"}, step(number - 1, "‹", "request.previous"), step(number + 1, "›", "request.next")),
    )
    body = tag(
        "div",
        {"class": "body"},
        _total(words, point),
        _strip(words, series, point),
        _cache_key(words, series, point),
        [_decision(words, one) for one in series.decisions if one.request == number],
        _legend(words, series, point),
        tag(
            "div",
            {"id": "blocks", "data-blocks": f"{base}/requests/{number}/blocks", "aria-busy": "true"},
            tag("p", {"class": "soft small script"}, words("request.reading")),
        ),
        tag("p", None, tag("a", {"class": "btn sm", "href": f"{base}/requests/{number}"}, words("request.whole"))),
    )
    facts: dict[str, Attribute] = {"data-number": number, "data-sentence": _sentence(words, point, count), "data-keep": True}
    return tag("section", {"class": "panel req", "aria-labelledby": "hr", "id": "req"} | facts, header, body)


def _sentence(words: Words, point: RequestPoint, count: int) -> str:
    """Return a request in a sentence, as the slider of the chart says it."""
    kinds = sorted(zip(point.kinds, KINDS, strict=True), reverse=True)[:3]
    return words(
        "request.sentence",
        title=words("request.title", number=f"{point.number:,}", count=f"{count:,}"),
        time=clock(words, point.time, seconds=True),
        tokens=tokens(point.tokens),
        cache=_cached(words, point),
        usd=request_amount(words, point),
        largest=", ".join(f"{words(f'kind.{kind}')} {tokens(held)}" for held, kind in kinds),
    )


def _total(words: Words, point: RequestPoint) -> Html:
    about = "" if point.reported else "≈ "
    return tag(
        "p",
        {"class": "tot", "id": "tot"},
        tag("b", None, about + tokens(point.tokens)),
        f" {words('session.tokens_unit')}",
        tag("span", {"class": "soft"}, _cached(words, point)),
        tag("span", {"class": "soft"}, request_amount(words, point)),
    )


def _cached(words: Words, point: RequestPoint) -> str:
    return words("request.from_cache", share=share(point.read, point.tokens)) if point.reported else words("request.estimate")


def request_amount(words: Words, point: RequestPoint) -> str:
    return amount(words, Amount(point.usage, point.usd)) if point.reported else NO_COUNTS


def _strip(words: Words, series: Series, point: RequestPoint) -> Html:
    """The window in the order in which its kinds are sent."""
    made, left = [], 0.0
    for kind, count in zip(KINDS, point.kinds, strict=True):
        if count:
            width = 1000 * count / series.window
            title = tag("title", None, f"{words(f'kind.{kind}')} {tokens(count)}")
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
    return join((tag("svg", attributes | {"aria-label": words("request.strip")}, made), under if point.reported else None))


def _block_strip(words: Words, series: Series, found: RequestBlocks) -> Html:
    """The same strip, block by block."""
    made, left = [], 0.0
    for block in found.blocks:
        width = 1000 * block.tokens / series.window
        title = tag("title", None, f"{_label(words, block)} {cut(block.file or block.words, 60)} {tokens(block.tokens)}")
        made.append(
            tag(
                "rect",
                {"class": f"k-{block.kind}", "x": f"{left:.2f}", "width": f"{max(0.5, width - 0.6):.2f}", "height": 26},
                title,
            )
        )
        left += width
    attributes = {"class": "strip", "viewBox": "0 0 1000 26", "preserveAspectRatio": "none", "role": "img"}
    return tag("svg", attributes | {"aria-label": words("request.strip")}, made)


def knows_window(series: Series) -> bool:
    """Whether the size of the window is recorded, set or that of a known model."""
    return series.window_source != "default" or is_known(series.model) is not None


def _cache_key(words: Words, series: Series, point: RequestPoint) -> Html:
    new = point.tokens - point.read
    parts = [
        tag("span", None, tag("i", {"class": "dot c-read"}), words("request.read", tokens=tokens(point.read))),
        tag(
            "span",
            None,
            tag("i", {"class": "dot c-written"}),
            words("request.written" if point.written > 2_000 else "request.new", tokens=tokens(new)),
        ),
    ]
    left = tokens(max(0, series.window - point.tokens))
    free = tag("span", None, words("request.free", tokens=left)) if knows_window(series) else None
    return tag("p", {"class": "key small soft"}, parts if point.reported else None, free)


def decision_label(words: Words, decision: Decision) -> str:
    """Return the short label of a mark: what happened, and to how many."""
    count = re.search(r"\d[\d,]*", decision.title) if decision.kind in ("clear", "spill", "collapse") else None
    return words(f"decision.{decision.kind}") + (f" {count[0]}" if count is not None else "")


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


def _decision(words: Words, decision: Decision) -> Html:
    found, kept = _balance(words, decision), decision.balance
    lost = found is not None and found.total <= -LEAST[words.billing]
    decided = found is not None and abs(found.total) >= LEAST[words.billing]
    verdict = words("request.did_not_pay" if lost else "request.paid") if decided else ""
    rows: list[Html] = []
    if found is not None and kept is not None:
        rows = [
            _sum(words("request.written_again", tokens=tokens(decision.written_again)), signed(words, -found.again)),
            _sum(words("request.summary_call"), signed(words, -found.call)) if found.call else Html(""),
            _sum(
                words("request.fewer", tokens=tokens(kept.tokens_fewer), n=kept.requests_until_next),
                signed(words, found.saved),
            ),
            _sum(words("request.balance"), signed(words, found.total), "sum"),
        ]
    even = found.even if found is not None and lost else None
    by = words("request.by", by=decision.by) if decision.by else words("request.by_nobody")
    return tag(
        "div",
        {"class": "why" if lost else "why neutral"},
        tag("h3", None, bdi(words.told(decision.title)), words("request.stop"), verdict),
        tag("p", {"class": "small"}, bdi(words.told(decision.detail))) if decision.detail else None,
        tag("table", None, tag("tbody", None, rows)) if rows else None,
        tag("p", {"class": "small soft"}, by, " ", words("request.even", n=even) if even else None),
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
                "title": words("request.floor"),
            },
            tag("span", {"class": f"sw k-{kind}"}),
            tag("span", None, words(f"kind.{kind}")),
            picture,
            tag("span", {"class": "num"}, tokens(count)),
            tag("span", {"class": "pc"}, share(count, point.tokens) if count else ""),
        )
        rows.append(tag("li", None, button))
    return tag("ul", {"class": "leg", "id": "kinds"}, rows)


def blocks(site: Site, request: Request, opened: OpenSession) -> Response:
    """Return the blocks that came and went, and the largest blocks of a request."""
    words = words_for(request)
    found = _blocks_of(request, opened)
    if found is None:
        return fragment(tag("p", None, words("request.missing", number=request.path_params["number"])), 404)
    return fragment(
        join(
            (
                _block_strip(words, opened.series, found),
                _changes(words, opened, found, short=True),
                _largest(words, opened, found),
            )
        )
    )


def _blocks_of(request: Request, opened: OpenSession) -> RequestBlocks | None:
    number = request.path_params["number"]
    asked = request.query_params.get("against", "")
    against = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else None
    try:
        return opened.requests.blocks(number, against)
    except InputError:  # there is no such request, or no longer: the file was replaced after its window was read
        return None


def _changes(words: Words, opened: OpenSession, found: RequestBlocks, *, short: bool) -> Html:
    if found.against is None:
        return Html("")
    came, went = sorted(found.came, key=_size), sorted(found.went, key=_size)
    minus = words("request.went", n=len(went), tokens=_sum_of(went)) if went else words("request.none_went")
    head = tag(
        "div",
        {"class": "sec"},
        tag("h2", None, words("request.since", number=found.against)),
        tag("span", {"class": "good small"}, words("request.came", n=len(came), tokens=_sum_of(came))),
        tag("span", {"class": "bad small" if went else "soft small"}, minus),
    )
    rows = [
        *_rows(words, opened, found, went[:MOST_WENT] if short else went, "−"),
        *_rows(words, opened, found, came[:MOST_CAME] if short else came, "+"),
    ]
    left = max(0, len(went) - MOST_WENT) + max(0, len(came) - MOST_CAME) if short else 0
    url = f"{address(opened.session)}/requests/{found.number}"
    more = tag("p", {"class": "small"}, tag("a", {"href": url}, words("request.more", n=left))) if left else None
    return join((head, tag("ul", {"class": "rows"}, rows), more))


def _largest(words: Words, opened: OpenSession, found: RequestBlocks) -> Html:
    ordered = sorted(found.blocks, key=_size)
    copies = [block for block in found.blocks if block.older_copy]
    said = (
        tag("span", {"class": "warn small"}, words("request.copies", n=len(copies), tokens=_sum_of(copies))) if copies else None
    )
    head = tag("div", {"class": "sec"}, tag("h2", None, words("request.largest")), said)
    return join((head, tag("ul", {"class": "rows"}, _rows(words, opened, found, ordered[:MOST_LARGEST], ""))))


def _size(block: RequestBlock) -> int:
    return -block.tokens


def _sum_of(blocks: Iterable[RequestBlock]) -> str:
    return tokens(sum(block.tokens for block in blocks))


def _rows(words: Words, opened: OpenSession, found: RequestBlocks, shown: Sequence[RequestBlock], sign: str) -> list[Html]:
    most = max((block.tokens for block in found.blocks), default=1) or 1
    return [_row(words, opened, found, block, sign, most) for block in shown]


def _row(words: Words, opened: OpenSession, found: RequestBlocks, block: RequestBlock, sign: str, most: int) -> Html:
    named = (
        file_name(block.file, opened.session.project) if block.file else tag("span", {"class": "soft"}, bdi(cut(block.words, 90)))
    )
    mark = tag("span", {"class": "bad" if sign == "−" else "good"}, f"{sign} ") if sign else None
    width = max(1.5, min(100.0, 100 * block.tokens / most))
    picture = tag(
        "svg",
        {"class": "bar", "viewBox": "0 0 100 5", "preserveAspectRatio": "none", "aria-hidden": "true"},
        tag("rect", {"class": f"k-{block.kind}", "width": f"{width:.1f}", "height": 5}),
    )
    summary = tag(
        "summary",
        None,
        tag("span", {"class": f"sw k-{block.kind}", "title": words(f"kind.{block.kind}")}),
        tag(
            "span",
            {"class": "what"},
            tag("b", None, mark, bdi(_label(words, block))),
            " ",
            tag("span", {"class": "tag"}, words("request.older")) if block.older_copy else None,
            named,
        ),
        picture,
        tag("span", {"class": "num"}, tokens(block.tokens)),
    )
    return tag("li", None, tag("details", None, summary, _more(words, opened, found, block)))


def _label(words: Words, block: RequestBlock) -> str:
    """Return the tool of a call or result, or the kind of the block."""
    _, _, tool = block.label.partition(" of ")
    if tool:
        return words("request.call", tool=tool) if block.kind == "call" else tool
    return words(f"kind.{block.kind}") if block.kind.startswith("unrecorded") or block.label in PLAIN else words.told(block.label)


def _more(words: Words, opened: OpenSession, found: RequestBlocks, block: RequestBlock) -> Html:
    since = found.number + 1 - block.entered_at
    facts: list[tuple[str, str | Html]] = [
        (words("request.why"), bdi(words.told(block.why))),
        (words("request.in_window"), words("request.since_request", at=block.entered_at, n=max(1, since))),
        (words("request.carried"), price(words, block.carried_usd if words.billing == "list" else block.carried_units)),
        (words("request.cache"), words(f"cached.{block.cached}")),
    ]
    turn = _turn_of(opened, block.entered_at)
    if block.record is not None:
        base = address(opened.session)
        facts.append(
            (
                words("request.comes_from"),
                tag("a", {"href": f"{base}?r={found.number}#t{turn}", "data-turn": turn}, words("request.turn_link", turn=turn)),
            )
        )
    listed = [(tag("dt", None, name), tag("dd", None, value)) for name, value in facts]
    raw = f"{address(opened.session)}/records/{quote(block.record, safe='')}" if block.record is not None else None
    link = tag("p", None, tag("a", {"class": "small", "href": raw, "data-load": raw}, words("request.record"))) if raw else None
    text = tag("pre", {"dir": "auto"}, block.words) if block.words else None
    return tag("div", {"class": "more"}, tag("dl", None, listed), text, link)


def _turn_of(opened: OpenSession, number: int) -> int:
    points = opened.series.requests
    return points[min(max(1, number), len(points)) - 1].turn


def whole(site: Site, request: Request, opened: OpenSession) -> Response:
    """Return the whole request as a page: the difference, then every block in order."""
    words, number = words_for(request), request.path_params["number"]
    found = _blocks_of(request, opened)
    if found is None:
        sentence = words("request.missing", number=number)
        return problem(site, request, words("frame.not_found_title"), sentence, status=404, back=address(opened.session))
    base, series = address(opened.session), opened.series
    point = series.requests[number - 1]
    crumb = tag(
        "p",
        {"class": "crumb"},
        tag("a", {"href": "/sessions"}, words("nav.sessions")),
        " / ",
        tag("a", {"href": f"{base}?r={number}"}, bdi(cut(title_of(words, opened.session), TITLE_CHARS))),
    )
    title = words("request.title", number=number, count=f"{len(series.requests):,}")
    about = tag("div", None, crumb, tag("h1", None, title), _total(words, point))
    head = tag("div", {"class": "head"}, about, _steps(words, base, number, len(series.requests), found.against))
    difference = tag(
        "div",
        {"class": "body"},
        _block_strip(words, series, found),
        _cache_key(words, series, point),
        [_decision(words, one) for one in series.decisions if one.request == number],
        _changes(words, opened, found, short=False),
    )
    body = join((head, tag("section", {"class": "panel wide"}, difference), _all_blocks(words, opened, found)))
    return page(site, request, title=title, active="sessions", body=body, data=found)


def _all_blocks(words: Words, opened: OpenSession, found: RequestBlocks) -> Html:
    count = tag("span", {"class": "soft small"}, words("request.block_count", n=len(found.blocks)))
    rows = tag("ol", {"class": "rows"}, _rows(words, opened, found, found.blocks, ""))
    header = tag("header", None, tag("h2", None, words("request.all_blocks")), count)
    return tag("section", {"class": "panel wide"}, header, tag("div", {"class": "body"}, rows))


def _steps(words: Words, base: str, number: int, count: int, against: int | None) -> Html:
    field = tag(
        "input",
        {
            "type": "number",
            "name": "against",
            "min": 1,
            "max": count,
            "value": against,
            "class": "pick short",
            "aria-label": words("request.against"),
        },
    )
    form = tag(
        "form",
        {"class": "btns"},
        tag("label", {"class": "soft small"}, words("request.against"), " ", field),
        tag("button", {"class": "btn"}, words("request.compare")),
    )
    json = tag("a", {"class": "btn", "href": f"{base}/requests/{number}?format=json"}, "JSON")
    before = tag(
        "a", {"class": "btn", "href": f"{base}/requests/{max(1, number - 1)}", "aria-label": words("request.previous")}, "‹"
    )
    after = tag(
        "a", {"class": "btn", "href": f"{base}/requests/{min(count, number + 1)}", "aria-label": words("request.next")}, "›"
    )
    return tag("div", {"class": "btns"}, before, after, json, form)
