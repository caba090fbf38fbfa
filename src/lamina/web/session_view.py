"""The session view: its head, figures, chart, selected request and conversation; and the data that the chart draws."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ..history.places import NAMES
from ..history.sessions import SourceSession
from ..history.window_series import KINDS, Series
from ..language.text import Text
from . import conversation, labels, request_page, request_view, turn_events, turn_view
from .html import Attribute, Html, bdi, cut, tag
from .numbers import size, tokens
from .page import can_wait, icon, number_of, opening, page, patience, problem, view_head
from .session_data import Gone, OpenSession, OpenSessions, columns, watch
from .session_figures import figures, fullest_of
from .session_head import crumb, gone_notice, session_head, subagents_of, warnings
from .session_list import MARKS, TITLE_CHARS, address, cost_of, session_row, title_of
from .session_table import table, table_below
from .site import Site, stamp_of_state
from .words import Words, words_for

# How much work the data of the chart is compressed with.
SMALLER = 3
# What came while the user looked elsewhere; the script counts it.
NEW_BELOW: dict[str, Attribute] = {
    "type": "button",
    "class": "btn main new-below",
    "id": "new-below",
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
        f"{base}/table": table,
        f"{base}/messages/{{message}}": _to_turn,
        f"{base}/turns/{{number:int}}": turn_view.turn,
        f"{base}/turns/{{number:int}}/others": turn_view.others,
        f"{base}/texts/{{record}}/{{index:int}}": turn_events.text,
        f"{base}/records/{{record}}": turn_events.record,
        f"{base}/pictures/{{record}}/{{index:int}}/{{number:int}}": turn_events.picture,
        f"{base}/requests/{{number:int}}": request_page.whole,
        f"{base}/requests/{{number:int}}/rows/{{name}}": request_page.rows,
        f"{base}/requests/{{number:int}}/panel": request_view.panel,
        f"{base}/requests/{{number:int}}/blocks": request_view.blocks,
    }
    return [Route(path, _opened(site, sessions, view)) for path, view in views.items()]


def _opened(
    site: Site, sessions: OpenSessions, view: Callable[[Site, Request, OpenSession], Response]
) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        source, id = request.path_params["source"], request.path_params["id"]
        if not can_wait(request) and not site.index.is_complete and site.index.find(source, id, patience(request)) is None:
            return _reading(site, request)
        watched = f"session:{source}/{id}"
        state = site.state(watched)
        request.state.watch, request.state.file = {watched: stamp_of_state(state)}, state
        try:
            begun = sessions.begin(request) if view in (_session, _to_turn) and not can_wait(request) else None
            if begun is not None:
                return _opening(site, request, begun)
            return sessions.answer(request, lambda opened: view(site, request, opened))
        except Gone:
            words = words_for(request)
            key = (
                Text("The sessions are still being read. Try again in a moment.")
                if site.index.listing.of
                else Text("This session is no longer on disk.")
            )
            return problem(site, request, words("Not found"), words(key), status=404)

    return answer


def _reading(site: Site, request: Request) -> Response:
    """Return that the sessions are listed for the first time, and this one is not among them yet."""
    words = words_for(request)
    title = words("Sessions")
    return opening(
        site,
        request,
        title=title,
        active="sessions",
        head=view_head(title),
        sentence=words("The sessions are being read for the first time…"),
    )


def _opening(site: Site, request: Request, session: SourceSession) -> Response:
    """Return what the index knows of a session that is being read."""
    words = words_for(request)
    facts = [NAMES[session.origin], words("{n} message|{n} messages", n=session.messages), cost_of(words, session)]
    head = view_head(
        bdi(cut(title_of(words, session), TITLE_CHARS)),
        tag("div", {"class": "meta"}, [tag("span", None, bdi(fact)) for fact in facts]),
        crumb=crumb(words, session, None),
    )
    title, sentence = cut(title_of(words, session), 80), words("Reading {size}…", size=size(session.size))
    return opening(site, request, title=title, active="sessions", head=head, sentence=sentence)


def _to_turn(site: Site, request: Request, opened: OpenSession) -> Response:
    """Lead to the turn of a message. A message that is not found leads to the session."""
    base, message = address(opened.session), request.path_params["message"]
    found = opened.find(message)
    return RedirectResponse(conversation.turn_address(base, found[0], show=message) if found is not None else base, 303)


def _session(site: Site, request: Request, opened: OpenSession) -> Response:
    words, session, series = words_for(request), opened.session, opened.series
    chosen = _chosen(request, words, series)
    body = tag(
        "div",
        {
            "data-live": "own",
            "data-session": address(session),
            "data-state": msgspec.json.encode(request.state.file).decode(),
            "id": "session",
        },
        gone_notice(words),
        session_head(words, site, opened),
        opened.once("figures", words, lambda series: figures(words, series)),
        warnings(words, series, subagents_of(site, opened)),
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
    if (asked := number_of(request, "r")) is not None:
        return max(1, min(asked, count)) if count else 0
    costly = [(total, one.request) for one in series.decisions if (total := request_view.total_of(words, one)) is not None]
    return min(costly, key=lambda pair: pair[0])[1] if costly else count


def _series(site: Site, request: Request, opened: OpenSession) -> Response:
    """The data of the chart."""
    words = words_for(request)
    site.views.wait()
    encoded = opened.once("chart", words, lambda series: gzip.compress(_chart_data(words, series), SMALLER))
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(gzip.decompress(encoded), media_type="application/json")
    return Response(encoded, media_type="application/json", headers={"Content-Encoding": "gzip"})


def _chart_data(words: Words, series: Series) -> bytes:
    return msgspec.json.encode(columns(series, words.billing) | _chart_words(words, series))


def _chart_words(words: Words, series: Series) -> dict[str, Any]:
    limit = words("{by} compacts at {n}", by=series.threshold_owner, n=series.threshold) if series.threshold else ""
    return {
        "limit": limit,
        "summary": words(
            "Tokens of the request by kind, at most {most}.|Tokens of each of {n} requests by kind, at most {most}.",
            n=len(series.requests),
            most=tokens(fullest_of(series).tokens if series.requests else 0),
        ),
    }


def _chart(words: Words, opened: OpenSession) -> Html:
    base = address(opened.session)
    modes = [
        tag(
            "button",
            {"type": "button", "data-axis": axis, "aria-pressed": "true" if axis == "request" else "false"},
            words(labels.AXES[axis]),
        )
        for axis in ("request", "time")
    ]
    header = tag(
        "header",
        None,
        tag("h2", {"id": "hw"}, words("What filled the window")),
        tag("span", {"class": "sp"}),
        tag(
            "div",
            {"class": "seg script", "id": "axis", "data-keep": True, "role": "group", "aria-label": words("Horizontal axis")},
            modes,
        ),
    )
    hint = tag(
        "span",
        {"class": "hint"},
        [(tag("kbd", None, key), " ") for key in ("←", "→")],
        f"{words('request')} ",
        [(tag("kbd", None, key), " ") for key in ("[", "]")],
        words("decision"),
    )
    source = words(
        "All sizes are estimates from the transcript."
        if opened.series.estimated
        else "Totals are what the provider reported; the parts are estimates from the transcript, scaled to fit. "
        "Hatched: sent, but not in the transcript. Below: cost of each request at list price."
        if words.billing == "list"
        else "Totals are what the provider reported; the parts are estimates from the transcript, scaled to fit. "
        "Hatched: sent, but not in the transcript. Below: units of each request. A unit is one uncached "
        "input token, whatever the model. A token read from the cache counts 0.1, one written to it 1.25 (2 "
        "for an hour), an output token 5."
    )
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
        table_below(words, base),
    )


def _marks(words: Words, series: Series) -> list[Html]:
    """The decisions as buttons; the script puts each above its request."""
    made = []
    for one in series.decisions:
        if one.kind != "spill" or one.tokens_before != one.tokens_after:
            label = request_view.decision_label(words, one)
            name = words("{label} before request {number}", label=label, number=one.request)
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
