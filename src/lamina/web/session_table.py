"""The numbers of a session's chart as a table, in parts: a fragment below the chart, or a page without scripts."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ..history.window_series import KINDS
from ..language.text import Text
from . import labels, request_view
from .html import Html, bdi, cut, join, tag
from .numbers import clock, share, tokens
from .page import fragment, later_part, number_of, page
from .session_data import OpenSession
from .session_list import TITLE_CHARS, address, title_of
from .site import Site
from .words import Words, words_for

# Requests in a part of the table: all of a long session are more than a browser shows in a second.
TABLE_ROWS = 200


def table_below(words: Words, base: str) -> Html:
    """The numbers of the chart, read when they are unfolded."""
    return tag("div", {"class": "scroll body"}, later_part("as-table", f"{base}/table", words("Show as table")))


def table(site: Site, request: Request, opened: OpenSession) -> Response:
    """The numbers of the chart as a table, in parts."""
    words, series, asked = words_for(request), opened.series, number_of(request, "page")
    number = max(1, asked or 1)
    shown = series.requests[(number - 1) * TABLE_ROWS : number * TABLE_ROWS]
    used = [at for at in range(len(KINDS)) if any(point.kinds[at] for point in series.requests)]
    titles = [
        words("Request"),
        words("Time"),
        words("Tokens"),
        words(Text("Read from cache##a figure")),
        words("Cost at list price" if words.billing == "list" else "Use"),
    ]
    head = [tag("th", {"scope": "col"}, title) for title in (*titles, *(words(labels.BLOCK_KINDS[KINDS[at]]) for at in used))]
    base = address(opened.session)
    rows = [
        tag(
            "tr",
            None,
            tag("th", {"scope": "row"}, tag("a", {"href": f"{base}?r={point.number}"}, point.number)),
            tag("td", None, clock(words, point.time, seconds=True)),
            tag("td", {"class": "num"}, tokens(point.tokens)),
            tag("td", {"class": "num"}, share(point.read, point.tokens)),
            tag("td", {"class": "num"}, request_view.request_amount(words, point)),
            [tag("td", {"class": "num"}, tokens(point.kinds[at])) for at in used],
        )
        for point in shown
    ]
    shown_rows = tag("table", {"class": "data"}, tag("thead", None, tag("tr", None, head)), tag("tbody", None, rows))
    parts = join((shown_rows, _parts(words, f"{base}/table", number, len(series.requests))))
    if request.headers.get("x-lamina-part"):
        return fragment(parts if asked is not None else tag("div", None, parts))
    title = words("What filled the window")
    crumb = tag("p", {"class": "crumb"}, tag("a", {"href": base}, bdi(cut(title_of(words, opened.session), TITLE_CHARS))))
    body = join((crumb, tag("h1", None, title), tag("div", {"class": "panel scroll body"}, parts)))
    return page(site, request, title=title, active="sessions", body=body, data=series.requests)


def _parts(words: Words, base: str, number: int, count: int) -> list[Html | None]:
    """The links to the parts before and after. The script puts a part in the place of this one."""

    def link(to: int, key: str) -> Html | None:
        address = f"{base}?page={to}"
        return tag("a", {"class": "btn sm", "href": address, "data-load": address}, words(key)) if to != number else None

    if count <= TABLE_ROWS:
        return []
    last = -(-count // TABLE_ROWS)
    place = tag("span", {"class": "soft"}, f" {number} / {last} ")
    return [link(max(1, number - 1), Text("Previous")), place, link(min(last, number + 1), Text("Next"))]
