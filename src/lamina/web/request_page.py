"""A request as a whole page: what came and went since another request, and every block in the order it is sent.

A long list shows its beginning, and each further part when it is unfolded: a browser shows some 10,000 elements in the time of a click.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from ..history.request_blocks import RequestBlock, RequestBlocks
from .block_rows import block_rows
from .html import Html, bdi, cut, join, tag
from .page import fragment, json_response, later_part, number_of, page, problem, wants_json
from .request_view import block_strip, blocks_of, cache_key, change_head, decision_panel, largest_first, total_line
from .session_data import OpenSession
from .session_list import TITLE_CHARS, address, title_of
from .site import Site
from .turn_events import part_or_page
from .words import Words, words_for

# Blocks of each list that are shown at once, and with each part that is unfolded.
FIRST_ROWS = 50
MORE_ROWS = 150


class _List(NamedTuple):
    """A list of blocks on the page."""

    blocks: Callable[[RequestBlocks], Sequence[RequestBlock]]
    sign: str = ""
    element: str = "ul"


LISTS = {
    "went": _List(lambda found: largest_first(found.went), "−"),
    "came": _List(lambda found: largest_first(found.came), "+"),
    "all": _List(lambda found: found.blocks, element="ol"),
}


def whole(site: Site, request: Request, opened: OpenSession) -> Response:
    """Return the whole request as a page: the difference, then every block in order."""
    words, number = words_for(request), request.path_params["number"]
    found = blocks_of(request, opened)
    if found is None:
        sentence = words("Request {number} does not exist.", number=number)
        return problem(site, request, words("Not found"), sentence, status=404, back=address(opened.session))
    base, series = address(opened.session), opened.series
    point = series.requests[number - 1]
    crumb = tag(
        "p",
        {"class": "crumb"},
        tag("a", {"href": "/sessions"}, words("Sessions")),
        " / ",
        tag("a", {"href": f"{base}?r={number}"}, bdi(cut(title_of(words, opened.session), TITLE_CHARS))),
    )
    title = words("Request {number} of {count}", number=number, count=f"{len(series.requests):,}")
    about = tag("div", None, crumb, tag("h1", None, title), total_line(words, point))
    head = tag("div", {"class": "head"}, about, _steps(words, base, number, len(series.requests), found.against))
    changes = (change_head(words, found), *(_part(words, opened, found, name) for name in ("went", "came")))
    asked = number_of(request, "against")
    missing = (
        words("Request {number} does not exist.", number=asked)
        if asked is not None and not 1 <= asked <= len(series.requests)
        else None
    )
    difference = tag(
        "div",
        {"class": "body"},
        tag("p", {"class": "notice"}, missing) if missing else None,
        block_strip(words, series, found),
        cache_key(words, series, point),
        [decision_panel(words, one) for one in series.decisions if one.request == number],
        changes if found.against is not None else None,
    )
    body = join((head, tag("section", {"class": "panel wide"}, difference), _all_blocks(words, opened, found)))
    return page(site, request, title=title, active="sessions", body=body, data=found)


def rows(site: Site, request: Request, opened: OpenSession) -> Response:
    """Return a further part of one of the lists."""
    words, name = words_for(request), request.path_params["name"]
    found = blocks_of(request, opened)
    if found is None or name not in LISTS:
        return fragment(tag("p", None, words("Request {number} does not exist.", number=request.path_params["number"])), 404)
    if wants_json(request):
        return json_response(LISTS[name].blocks(found))
    return part_or_page(site, request, opened, _part(words, opened, found, name, number_of(request, "from") or 0))


def _part(words: Words, opened: OpenSession, found: RequestBlocks, name: str, start: int = 0) -> Html:
    """Return the rows of a list from one on, and what is needed to unfold the next ones."""
    blocks, sign, element = LISTS[name].blocks(found), LISTS[name].sign, LISTS[name].element
    end = start + (MORE_ROWS if start else FIRST_ROWS)
    shown = tag(element, {"class": "rows"}, block_rows(words, opened, found, blocks[start:end], sign))
    if end >= len(blocks):
        return shown
    url = f"{address(opened.session)}/requests/{found.number}/rows/{name}?from={end}&against={found.against or ''}"
    left = len(blocks) - end
    label = (
        words("Show the other one|Show the other {n}", n=left)
        if left <= MORE_ROWS
        else words("Show the next {n} of {of} more", n=MORE_ROWS, of=f"{left:,}")
    )
    return join((shown, later_part(f"{name}-{end}", url, label)))


def _all_blocks(words: Words, opened: OpenSession, found: RequestBlocks) -> Html:
    count = tag("span", {"class": "soft small"}, words("{n} block|{n} blocks", n=len(found.blocks)))
    header = tag("header", None, tag("h2", None, words("All blocks, in the order they are sent")), count)
    return tag("section", {"class": "panel wide"}, header, tag("div", {"class": "body"}, _part(words, opened, found, "all")))


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
            "aria-label": words("Compare with request"),
        },
    )
    form = tag(
        "form",
        {"class": "btns"},
        tag("label", {"class": "soft small"}, words("Compare with request"), " ", field),
        tag("button", {"class": "btn"}, words("Compare")),
    )
    json = tag("a", {"class": "btn", "href": f"{base}/requests/{number}?format=json"}, "JSON")
    before = tag(
        "a", {"class": "btn", "href": f"{base}/requests/{max(1, number - 1)}", "aria-label": words("Previous request")}, "‹"
    )
    after = tag(
        "a", {"class": "btn", "href": f"{base}/requests/{min(count, number + 1)}", "aria-label": words("Next request")}, "›"
    )
    return tag("div", {"class": "btns"}, before, after, json, form)
