"""The list of sessions of all agents: filters, sorting and pages live in the address."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core.settings import Billing
from ..history.places import NAMES
from ..history.sessions import SourceSession
from ..providers.amounts import Amount
from . import labels
from .html import Html, bdi, cut, join, tag
from .numbers import NO_COUNTS, ago, amount, day, moment, tokens, tokens_apart
from .page import icon, number_of, page, query, search_box
from .session_index import Listing
from .site import Site
from .words import Words, words_for

PAGE = 50
# Windows that fullness is a share of.
WINDOW, LONG_WINDOW = 200_000, 1_000_000
# Line drawings of the decisions that a row tells.
MARKS = {
    "compact": "M8 2v4M5.500 4 8 6.500 10.500 4M8 14v-4M5.500 12 8 9.500 10.500 12M2.500 8h11",
    "clear": "M3 5h10M6 5V3h4v2M5 5l.6 8h4.8L11 5",
    "break": "M8 2.500 4.500 9H8l-1 4.500L11.500 7H8Z",
}
# Kinds that the label of a bar names.
MOST_NAMED = 3
TITLE_CHARS = 160
# A session with a line of at most this many seconds ago counts as running.
RUNNING = 120.0
SORTS: dict[str, Callable[[SourceSession, Billing], float]] = {
    "newest": lambda one, _: -one.last_active,
    "dearest": lambda one, billing: -(amount_of(one).number(billing) or 0.0),
    "longest": lambda one, _: -one.messages,
    "fullest": lambda one, _: -one.fullest,
}


def routes(site: Site) -> list[Route]:
    def sessions(request: Request) -> Response:
        return _sessions(site, request)

    return [Route("/sessions", sessions)]


def address(session: SourceSession) -> str:
    """Return the address of a session's view; the id is the file's own."""
    return f"/sessions/{session.origin}/{quote(session.id, safe='')}"


def title_of(words: Words, session: SourceSession) -> str:
    return session.title or words("Without a title")


def project_name(session: SourceSession) -> str:
    return os.path.basename(session.project.rstrip("/")) or session.project


def is_running(session: SourceSession, now: float) -> bool:
    return now - session.last_active < RUNNING


def amount_of(session: SourceSession) -> Amount:
    return Amount(session.usage, session.cost_usd)


def cost_of(words: Words, session: SourceSession) -> str:
    """Return the cost of a session; "≥" if its transcript holds only the beginning of some outputs, "–" if it holds no counts."""
    if not session.usage.total:
        return NO_COUNTS
    return amount(words, amount_of(session), short=session.short_outputs > 0)


def session_row(session: SourceSession) -> dict[str, Any]:
    """Return a session as `?format=json` shows it."""
    return {
        "source": session.origin,
        "id": session.id,
        "url": address(session),
        "title": session.title,
        "project": session.project,
        "started": session.started,
        "ended": session.ended,
        "modified": session.modified,
        "messages": session.messages,
        "tokens": session.tokens,
        "fullest": session.fullest,
        "cost_usd": session.known_cost,
        "cost_is_at_least": session.short_outputs > 0,
        "compactions": session.compactions,
        "clearings": session.clearings,
        "cache_breaks": session.breaks,
        "subagents": [one.id for one in session.subagents],
    }


def _sessions(site: Site, request: Request) -> Response:
    watch = site.look("sessions:")
    words, listing = words_for(request), site.sessions()
    every = listing.top
    found = filtered(request, every)
    number = max(1, number_of(request, "page") or 1)
    shown = found[(number - 1) * PAGE : number * PAGE]
    body = join(
        (
            _head(words, listing, len(found)),
            _filters(words, request, every) if every else None,
            _unread(words, listing),
            tag(
                "div",
                {"id": "sessions-found"},
                _rows(words, request, shown, site.clock()) if shown else _nothing(site, words, listing, bool(every)),
                _pages(words, request, number, len(found)),
            ),
        )
    )
    data = {"sessions": [session_row(one) for one in shown], "count": len(found), "reading": listing.of, "unread": listing.unread}
    title = words("Sessions")
    return page(site, request, title=title, active="sessions", body=body, data=data, watch=watch)


def filtered(request: Request, every: Sequence[SourceSession]) -> list[SourceSession]:
    """Return the sessions that the address asks for, in its order."""
    asked = request.query_params
    found = list(every)
    if wanted := asked.get("q", "").casefold().split():
        found = [one for one in found if all(word in f"{one.title} {one.id} {one.project}".casefold() for word in wanted)]
    if project := asked.get("project"):
        found = [one for one in found if one.project == project]
    if source := asked.get("source"):
        found = [one for one in found if one.origin == source]
    sort = asked.get("sort", "")
    billing = words_for(request).billing
    return sorted(found, key=lambda one: SORTS[sort](one, billing)) if sort in SORTS else found


def _head(words: Words, listing: Listing, count: int) -> Html:
    reading = (
        words("Reading {n} session: {done} done|Reading {n} sessions: {done} done", n=listing.of, done=f"{listing.done:,}")
        if listing.of
        else None
    )
    return tag(
        "div",
        {"class": "head"},
        tag(
            "div",
            None,
            tag("h1", None, words("Sessions")),
            tag(
                "p",
                {"class": "meta"},
                tag("span", {"id": "sessions-count", "role": "status"}, words("{n} session|{n} sessions", n=count)),
                tag("span", {"role": "status"}, reading) if reading else None,
                tag(
                    "span",
                    None,
                    words(
                        "Costs are at list price."
                        if words.billing == "list"
                        else "A unit is one uncached input token, whatever the model. A token read from the cache counts 0.1, one "
                        "written to it 1.25 (2 for an hour), an output token 5."
                    ),
                )
                if listing.top
                else None,
            ),
        ),
    )


def _filters(words: Words, request: Request, every: Sequence[SourceSession]) -> Html:
    asked = request.query_params
    projects = sorted({one.project for one in every if one.project}, key=lambda path: (os.path.basename(path).casefold(), path))
    sources = [origin for origin in NAMES if any(one.origin == origin for one in every)]
    return tag(
        "form",
        {
            "class": "bar2",
            "id": "filter",
            "action": "/sessions",
            "data-auto": True,
            "data-find": "sessions-count sessions-found",
            "role": "search",
        },
        search_box(words, value=asked.get("q", ""), label=words("Filter by title")),
        _select(
            words("Project"),
            "project",
            [("", words("All projects")), *((path, f"{os.path.basename(path)}  {path}") for path in projects)],
            asked.get("project", ""),
        ),
        _select(
            words("Source"),
            "source",
            [("", words("All sources")), *((origin, NAMES[origin]) for origin in sources)],
            asked.get("source", ""),
        ),
        _select(
            words("Sort"),
            "sort",
            [
                (
                    name,
                    words(
                        labels.USE_FIRST if name == "dearest" and words.billing == "subscription" else labels.SORT_ORDERS[name]
                    ),
                )
                for name in SORTS
            ],
            asked.get("sort", ""),
        ),
        tag("button", {"class": "btn noscript"}, words("Apply")),
    )


def _select(label: str, name: str, options: list[tuple[str, str]], chosen: str) -> Html:
    made = [tag("option", {"value": value, "selected": value == chosen}, text) for value, text in options]
    return tag("select", {"name": name, "aria-label": label, "class": "pick"}, made)


def _unread(words: Words, listing: Listing) -> Html | None:
    if not listing.unread:
        return None
    lines = [tag("li", None, bdi(words(line))) for line in listing.unread]
    return tag("div", {"class": "notice warn"}, words("Not everything could be read:"), tag("ul", None, lines))


def _nothing(site: Site, words: Words, listing: Listing, some: bool) -> Html | None:
    if listing.of:
        return None
    if some:
        link = tag("a", {"href": "/sessions", "class": "btn"}, words("Show all sessions"))
        return tag("div", {"class": "empty"}, tag("p", None, words("No session matches these filters.")), tag("p", None, link))
    return no_sessions(site, words)


def no_sessions(site: Site, words: Words) -> Html:
    """Where Lamina looked for sessions, and what to do."""
    places = ", ".join(str(home) for home in site.homes.values())
    return tag(
        "div",
        {"class": "empty"},
        tag(
            "p",
            None,
            words("No sessions found. Lamina looked in {places}. Set LAMINA_HOME, or start one with lamina.", places=places),
        ),
    )


def _rows(words: Words, request: Request, shown: list[SourceSession], now: float) -> Html:
    if request.query_params.get("sort", "newest") != "newest":
        return tag("div", {"class": "panel"}, tag("ul", {"class": "list"}, [_row(words, one, now) for one in shown]))
    groups = [
        (
            tag("h2", {"class": "day"}, _day(words, now, date)),
            tag("div", {"class": "panel"}, tag("ul", {"class": "list"}, [_row(words, one, now) for one in within])),
        )
        for date, within in groupby(shown, key=lambda one: _date(one.last_active))
    ]
    return join(groups)


def _row(words: Words, session: SourceSession, now: float) -> Html:
    running = is_running(session, now)
    apart = tokens_apart(words, session.usage) if words.billing == "subscription" else None
    marks = [
        tag("span", {"class": "live"}, words("running")) if running else None,
        _mark(MARKS["compact"], words("compacted once|compacted {n} times", n=session.compactions))
        if session.compactions
        else None,
        _mark(MARKS["clear"], words("cleared once|cleared {n} times", n=session.clearings)) if session.clearings else None,
        _mark(MARKS["break"], words("{n} cache break|{n} cache breaks", n=session.breaks)) if session.breaks else None,
        tag("span", None, words("{n} subagent|{n} subagents", n=len(session.subagents))) if session.subagents else None,
    ]
    return tag(
        "li",
        None,
        tag(
            "a",
            {"class": "srow", "href": address(session), "id": f"s-{session.origin}-{session.id}"},
            tag("span", {"class": "what"}, tag("b", None, bdi(cut(title_of(words, session), TITLE_CHARS)))),
            tag("span", {"class": "marks"}, marks),
            tag(
                "span",
                {"class": "soft proj", "title": session.project},
                bdi(project_name(session) or words("no project")),
            ),
            tag("span", {"class": "soft src"}, NAMES[session.origin]),
            tag("span", {"class": "soft when"}, ago(words, session.last_active, now)),
            _fullness(words, session),
            tag("span", {"class": "soft num"}, words("{n} message|{n} messages", n=session.messages)),
            tag("span", {"class": "num cost", "title": apart}, cost_of(words, session)),
        ),
    )


def _fullness(words: Words, session: SourceSession) -> Html:
    """A thin bar: the fullest request by kind, as a share of the window that the session states, of the usual one, or of the long one."""
    from ..history.window_kinds import KINDS, parts_of_fullest  # not needed by the overview, which opens first

    window = max(session.fullest, session.window or (WINDOW if session.fullest <= WINDOW else LONG_WINDOW))
    made, left, parts = list[Html](), 0, parts_of_fullest(session.full, session.head, session.fullest)
    for kind, count in zip(KINDS, parts, strict=True):
        if count:
            x, width = (f"{100 * tokens / window:.1f}" for tokens in (left, count))
            made.append(tag("rect", {"class": f"k-{kind}", "x": x, "width": width, "height": 5}))
            left += count
    named = [
        words("{kind} {percent}%", kind=labels.BLOCK_KINDS[kind], percent=round(100 * count / session.fullest))
        for count, kind in sorted(zip(parts, KINDS, strict=True), reverse=True)[:MOST_NAMED]
        if count
    ]
    told = (
        words("Fullest request: {tokens} tokens", tokens=tokens(session.fullest))
        if session.fullest
        else words("No token counts recorded")
    )
    label = " · ".join([told, *named])
    picture = tag(
        "svg", {"class": "bar", "viewBox": "0 0 100 5", "preserveAspectRatio": "none", "role": "img", "aria-label": label}, made
    )
    return tag("span", {"class": "fullness", "title": label}, picture)


def _mark(path: str, label: str) -> Html:
    return tag("span", {"class": "m", "title": label}, icon(path), tag("span", {"class": "sr"}, label))


def _pages(words: Words, request: Request, number: int, count: int) -> Html | None:
    if count <= PAGE:
        return None
    before = query(request, page=str(number - 1)) if number > 1 else None
    after = query(request, page=str(number + 1)) if number * PAGE < count else None
    links = [
        tag("a", {"class": "btn", "href": before, "rel": "prev"}, words("Newer sessions")) if before else None,
        tag("span", {"class": "soft"}, f"{number} / {-(-count // PAGE)}"),
        tag("a", {"class": "btn", "href": after, "rel": "next"}, words("Older sessions")) if after else None,
    ]
    return tag("nav", {"class": "pages", "aria-label": words("Pages")}, links)


def _date(modified: float) -> datetime | None:
    at = moment(modified)
    return at.replace(hour=0, minute=0, second=0, microsecond=0) if at is not None else None


def _day(words: Words, now: float, date: datetime | None) -> str:
    today = _date(now)
    if date is None or today is None:
        return words("time unknown")
    if date.date() == today.date():
        return words("Today")
    return words("Yesterday") if date.date() == (today - timedelta(days=1)).date() else day(words, date)
