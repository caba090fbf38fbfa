"""The session view: figures, the window over time, the selected request, the conversation; and the data that the chart draws."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core.usage import Usage
from ..providers.amounts import Amount, unit_parts
from ..session.window_series import KINDS, RequestPoint, Series
from ..sources.places import NAMES
from ..sources.sessions import SourceSession
from . import conversation, request_view
from .html import Attribute, Child, Html, bdi, cut, join, tag
from .numbers import (
    NO_COUNTS,
    absolute,
    amount,
    at_least,
    clock,
    length,
    moment,
    parts_apart,
    price,
    share,
    size,
    sum_known,
    tokens,
)
from .page import fragment, icon, page, problem, view_head, wants_json
from .session_data import Gone, OpenSession, OpenSessions, columns, watch
from .session_list import MARKS, TITLE_CHARS, address, amount_of, cost_of, is_running, project_name, session_row, title_of
from .site import Site
from .words import Words, words_for

# How much work the data of the chart is compressed with.
SMALLER = 3
# Requests in a part of the table: all of a long session are more than a browser shows in a second.
TABLE_ROWS = 200
# Subagents that are linked, and characters of their titles.
MOST_SUBAGENTS = 8
LINK_CHARS = 40
# What came while the user looked elsewhere; the script counts it.
NEW_BELOW: dict[str, Attribute] = {
    "type": "button",
    "class": "btn main new-below",
    "id": "new-below",
    "data-count": 0,
    "data-keep": True,
    "hidden": True,
}
# Line drawings of the decisions.
ICONS = {
    **MARKS,
    "collapse": "M3 4h10M5 8h6M3 12h10",
    "spill": "M8 2.500v7M5 7l3 3 3-3M3 13h10",
    "undo": "M6 4 3 7l3 3M3 7h6.500a3 3 0 0 1 0 6H7",
    "model": "M3 6h9l-2.500-2.500M13 10H4l2.500 2.500",
    "unrecorded": "M6 6.200a2 2 0 1 1 2.700 1.900c-.5.2-.7.600-.7 1.200M8 12v.1",
}


def routes(site: Site) -> list[Route]:
    site.watches["session"] = lambda key: watch(site, key)
    sessions = OpenSessions(site)
    base = "/sessions/{source}/{id}"
    views: dict[str, Callable[[Site, Request, OpenSession], Response]] = {
        base: _session,
        f"{base}/series": _series,
        f"{base}/table": _table,
        f"{base}/turns/{{number:int}}": conversation.turn,
        f"{base}/texts/{{record}}/{{index:int}}": conversation.text,
        f"{base}/records/{{record}}": conversation.record,
        f"{base}/pictures/{{record}}/{{index:int}}/{{number:int}}": conversation.picture,
        f"{base}/requests/{{number:int}}": request_view.whole,
        f"{base}/requests/{{number:int}}/panel": request_view.panel,
        f"{base}/requests/{{number:int}}/blocks": request_view.blocks,
    }
    return [Route(path, _opened(site, sessions, view)) for path, view in views.items()]


def _opened(
    site: Site, sessions: OpenSessions, view: Callable[[Site, Request, OpenSession], Response]
) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        source, id = request.path_params["source"], request.path_params["id"]
        request.state.watch = site.look(f"session:{source}/{id}")
        try:
            begun = sessions.begin(request) if view is _session and not wants_json(request) else None
            if begun is not None:
                return _opening(site, request, begun)
            return sessions.answer(request, lambda opened: view(site, request, opened))
        except Gone:
            words = words_for(request)
            key = "session.reading" if site.index.listing.of else "session.gone"
            return problem(site, request, words("frame.not_found_title"), words(key), status=404)

    return answer


def _opening(site: Site, request: Request, session: SourceSession) -> Response:
    """Return what the index knows of a session that is being read. The script, or the browser, then asks again and gets the whole."""
    words = words_for(request)
    facts = [NAMES[session.origin], words("sessions.messages", n=session.messages), cost_of(words, session)]
    again = tag("noscript", None, tag("meta", {"http-equiv": "refresh", "content": "0"}))
    body = tag(
        "div",
        {"id": "opening", "data-live": "own"},
        again,
        view_head(
            bdi(cut(title_of(words, session), TITLE_CHARS)),
            tag("div", {"class": "meta"}, [tag("span", None, bdi(fact)) for fact in facts]),
            crumb=_crumb(words, session, None),
        ),
        tag("p", {"class": "empty", "role": "status"}, words("session.opening", size=size(session.size))),
    )
    return page(site, request, title=cut(title_of(words, session), 80), active="sessions", body=body)


def _session(site: Site, request: Request, opened: OpenSession) -> Response:
    words, session, series = words_for(request), opened.session, opened.series
    chosen = _chosen(request, words, series)
    body = tag(
        "div",
        {"data-live": "own", "data-session": address(session), "id": "session"},
        _gone(words),
        _head(words, site, opened),
        opened.once("figures", words, lambda series: _figures(words, series)),
        _warnings(words, series, _subagents(site, opened)),
        tag(
            "div",
            {"class": "work"},
            tag("div", {"class": "left"}, _chart(words, opened), conversation.panel(words, request, opened)),
            request_view.panel_of(words, opened, chosen) if chosen else None,
        ),
        tag("button", NEW_BELOW),
    )
    return page(
        site,
        request,
        title=cut(title_of(words, session), 80),
        active="sessions",
        body=body,
        data=session_row(session) | {"series": series, "kinds": KINDS},
        watch=request.state.watch,
        ahead=f"{address(session)}/series" if series.requests else None,
    )


def _chosen(request: Request, words: Words, series: Series) -> int:
    """Return the number of the selected request: the one asked for, else the dearest decision's, else the last."""
    count = len(series.requests)
    asked = request.query_params.get("r", "")
    if asked.isascii() and asked.isdigit() and len(asked) < 9:
        return max(1, min(int(asked), count)) if count else 0
    costly = [(total, one.request) for one in series.decisions if (total := request_view.total_of(words, one)) is not None]
    return min(costly, key=lambda pair: pair[0])[1] if costly else count


def _series(site: Site, request: Request, opened: OpenSession) -> Response:
    """The data of the chart."""
    words = words_for(request)
    encoded = opened.once("chart", words, lambda series: gzip.compress(_chart_data(words, series), SMALLER))
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(encoded), media_type="application/json")
    return Response(encoded, media_type="application/json", headers={"Content-Encoding": "gzip"})


def _chart_data(words: Words, series: Series) -> bytes:
    return msgspec.json.encode(columns(series, words.billing) | _chart_words(words, series))


def _chart_words(words: Words, series: Series) -> dict[str, Any]:
    limit = words("session.limit", by=series.threshold_owner, n=series.threshold) if series.threshold else ""
    return {
        "limit": limit,
        "summary": words(
            "session.chart_summary", n=len(series.requests), most=tokens(_fullest(series).tokens if series.requests else 0)
        ),
    }


def _gone(words: Words) -> Html:
    """Return the line shown once the file is removed; what was read stays on the page."""
    back = tag("a", {"href": "/sessions"}, words("frame.back"))
    return tag("p", {"class": "notice", "id": "gone", "hidden": True}, words("session.gone"), " ", back)


def _head(words: Words, site: Site, opened: OpenSession) -> Html:
    session, series = opened.session, opened.series
    crumb = _crumb(words, session, site.session(session.origin, session.parent) if session.parent else None)
    period = opened.once("period", words, lambda series: _period(words, session.started, series, session.modified))
    facts = [NAMES[session.origin], series.model, *period]
    foreign = tag("span", {"class": "ro"}, words("session.foreign")) if session.origin != "lamina" else None
    running = tag("span", {"class": "live"}, words("sessions.running")) if is_running(session, site.clock()) else None
    replay = tag("a", {"class": "btn main", "href": f"/replay?session={session.origin}/{session.id}"}, words("session.replay"))
    told = [tag("span", None, bdi(fact)) for fact in facts if fact]
    copy = tag("button", {"class": "btn script", "type": "button", "data-copy": ""}, words("session.copy"))
    return view_head(
        bdi(cut(title_of(words, session), TITLE_CHARS)),
        tag("div", {"class": "meta", "id": "meta"}, told, running, foreign),
        crumb=crumb,
        right=tag("div", {"class": "btns"}, copy, replay),
    )


def _crumb(words: Words, session: SourceSession, parent: SourceSession | None) -> Html:
    """The way back: the list, the project, and for a subagent the session that started it."""
    steps = [tag("a", {"href": "/sessions"}, words("nav.sessions"))]
    if session.project:
        steps.append(tag("a", {"href": f"/sessions?{urlencode({'project': session.project})}"}, bdi(project_name(session))))
    if parent is not None:
        steps.append(_linked(words, parent))
    return join([(" / " if at else None, step) for at, step in enumerate(steps)])


def _linked(words: Words, session: SourceSession) -> Html:
    return tag("a", {"href": address(session)}, bdi(cut(title_of(words, session), LINK_CHARS)))


def _period(words: Words, started: str, series: Series, modified: float) -> list[str]:
    """Return when the session began and ended. The header of a copied session is newer than its first request."""
    times = [at for one in (started, *(point.time for point in series.requests)) if (at := moment(one)) is not None]
    if not times:
        return [absolute(words, modified)]
    begin, end = min(times), max(times)
    if end == begin:
        return [absolute(words, begin.timestamp())]
    until = f"{end:%H:%M}" if begin.date() == end.date() else absolute(words, end.timestamp())[:-3]
    return [
        words("session.period", begin=absolute(words, begin.timestamp())[:-3], end=until),
        length(words, (end - begin).total_seconds()),
    ]


def _subagents(site: Site, opened: OpenSession) -> list[SourceSession]:
    """Return the subagents with separate files. The list adds their costs to those of the session."""
    session = opened.session
    return [one for one in site.index.listing.sessions if one.parent == session.id] if session.origin != "lamina" else []


def _warnings(words: Words, series: Series, subagents: list[SourceSession]) -> Html | None:
    lines: list[Child] = []
    if series.skipped_lines:
        others = series.skipped_lines - len(series.damaged)
        which = ", ".join(f"{line:,}" for line in series.damaged) + (f", +{others:,}" if others else "")
        lines.append(words("session.damaged", n=series.skipped_lines, lines=f"{series.lines:,}", which=which))
    if series.estimated and series.requests:
        lines.append(words("session.estimated"))
    if series.short_outputs:
        lines.append(words("session.short_outputs", n=series.short_outputs))
    if series.beside:
        usd = amount(words, Amount(series.beside_usage, series.beside_usd))
        lines.append(words("session.beside", n=series.beside, usd=usd))
    if subagents:
        usd = amount(words, sum(map(amount_of, subagents), Amount()))
        links = [(" ", _linked(words, one)) for one in subagents[:MOST_SUBAGENTS]]
        more = f" +{len(subagents) - MOST_SUBAGENTS:,}" if len(subagents) > MOST_SUBAGENTS else None
        lines.append(join((words("session.subagents", n=len(subagents), usd=usd), links, more)))
    return tag("div", {"class": "notice", "role": "note"}, [tag("p", None, line) for line in lines]) if lines else None


def _figures(words: Words, series: Series) -> Html:
    requests = series.requests
    if not requests:
        return tag("div", {"class": "empty", "id": "figs"}, tag("p", None, words("session.no_requests")))
    sent = sum(point.tokens for point in requests)
    read = sum(point.read for point in requests)
    fullest = _fullest(series)
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


def _fullest(series: Series) -> RequestPoint:
    return max(series.requests, key=lambda point: point.tokens)


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


def _chart(words: Words, opened: OpenSession) -> Html:
    base = address(opened.session)
    modes = [
        tag(
            "button",
            {"type": "button", "data-axis": axis, "aria-pressed": "true" if axis == "request" else "false"},
            words(f"session.by_{axis}"),
        )
        for axis in ("request", "time")
    ]
    header = tag(
        "header",
        None,
        tag("h2", {"id": "hw"}, words("session.window")),
        tag("span", {"class": "sp"}),
        tag(
            "div",
            {"class": "seg script", "id": "axis", "data-keep": True, "role": "group", "aria-label": words("session.axis")},
            modes,
        ),
    )
    hint = tag(
        "span",
        {"class": "hint"},
        [(tag("kbd", None, key), " ") for key in ("←", "→")],
        f"{words('session.key_request')} ",
        [(tag("kbd", None, key), " ") for key in ("[", "]")],
        words("session.key_decision"),
    )
    source = words("session.caption_estimated" if opened.series.estimated else "session.caption")
    return tag(
        "section",
        {"class": "panel", "aria-labelledby": "hw"},
        header,
        tag(
            "figure",
            {"class": "chart"},
            tag("div", {"class": "lane"}, _marks(words, opened.series)),
            tag("div", {"id": "chart", "data-series": f"{base}/series", "data-keep": True}),
        ),
        tag("div", {"class": "cap"}, tag("span", None, source), hint),
        _table_below(words, base),
    )


def _marks(words: Words, series: Series) -> list[Html]:
    """The decisions as buttons; the script puts each above its request."""
    made = []
    for one in series.decisions:
        if one.kind != "spill" or one.tokens_before != one.tokens_after:
            label = request_view.decision_label(words, one)
            name = words("session.before", label=label, number=one.request)
            kind = "btn mark" if one.by else "btn mark unsure"
            facts: dict[str, Attribute] = {
                "type": "button",
                "class": kind,
                "data-select": one.request,
                "title": name,
                "aria-label": name,
            }
            made.append(tag("button", facts, icon(ICONS[one.kind]), tag("span", None, label)))
    return made


def _table_below(words: Words, base: str) -> Html:
    """The numbers of the chart, read when they are unfolded; without scripts a link to them."""
    title = words("session.as_table")
    link = tag("noscript", None, tag("a", {"href": f"{base}/table"}, title))
    summary = tag("summary", {"class": "script"}, title)
    return tag("details", {"class": "unfold scroll body", "id": "as-table", "data-load": f"{base}/table"}, summary, link)


def _table(site: Site, request: Request, opened: OpenSession) -> Response:
    """The numbers of the chart as a table, in parts."""
    words, series, asked = words_for(request), opened.series, request.query_params.get("page", "")
    number = max(1, int(asked)) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 1
    shown = series.requests[(number - 1) * TABLE_ROWS : number * TABLE_ROWS]
    used = [at for at in range(len(KINDS)) if any(point.kinds[at] for point in series.requests)]
    titles = [
        words("session.col_request"),
        words("session.col_time"),
        words("session.col_tokens"),
        words("session.from_cache"),
        words("session.cost"),
    ]
    head = [tag("th", {"scope": "col"}, title) for title in (*titles, *(words(f"kind.{KINDS[at]}") for at in used))]
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
    table = tag("table", {"class": "data"}, tag("thead", None, tag("tr", None, head)), tag("tbody", None, rows))
    parts = join((table, _table_parts(words, f"{base}/table", number, len(series.requests))))
    if request.headers.get("x-lamina-part"):
        return fragment(parts if asked else tag("div", None, parts))
    title = words("session.window")
    crumb = tag("p", {"class": "crumb"}, tag("a", {"href": base}, bdi(cut(title_of(words, opened.session), TITLE_CHARS))))
    body = join((crumb, tag("h1", None, title), tag("div", {"class": "panel scroll body"}, parts)))
    return page(site, request, title=title, active="sessions", body=body, data=series.requests)


def _table_parts(words: Words, base: str, number: int, count: int) -> list[Html | None]:
    """The links to the parts before and after. The script puts a part in the place of this one."""

    def link(to: int, key: str) -> Html | None:
        address = f"{base}?page={to}"
        return tag("a", {"class": "btn sm", "href": address, "data-load": address}, words(key)) if to != number else None

    if count <= TABLE_ROWS:
        return []
    last = -(-count // TABLE_ROWS)
    place = tag("span", {"class": "soft"}, f" {number} / {last} ")
    return [link(max(1, number - 1), "memories.previous"), place, link(min(last, number + 1), "memories.next")]
