"""The conversation of a session: one row a turn, which is read when it is opened (turn_view.py), filtered and paged by the address."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request

from ..core.usage import Usage
from ..history.window_series import TurnRow
from ..language.text import Text
from ..providers.amounts import Amount
from .html import Attribute, Html, bdi, cut, tag
from .numbers import amount, clock
from .page import number_of, search_box
from .session_data import OpenSession, matching_turns
from .session_list import address
from .turn_view import read_turn, turn_events
from .words import Words

# Turns on one page.
PAGE = 60
ROW_CHARS = 400


def panel(words: Words, request: Request, opened: OpenSession) -> Html:
    """Return the list of turns, filtered and paged by the address."""
    series, asked = opened.series, request.query_params
    wanted, errors = asked.get("find", ""), asked.get("errors") == "1"
    found = matching_turns(opened, wanted, errors=errors)
    number = max(1, number_of(request, "turns") or 1)
    first = (number - 1) * PAGE
    shown = found[first : first + PAGE]
    count = words(
        "{turns}, {requests}",
        turns=words("{n} turn|{n} turns", n=len(series.turns)),
        requests=words("{n} request|{n} requests", n=len(series.requests)),
    )
    match = words("{n} turn matches|{n} turns match", n=len(found)) if wanted or errors else count
    failed = sum(turn.errors for turn in series.turns)
    only = tag(
        "label",
        {"class": "check"},
        tag("input", {"type": "checkbox", "name": "errors", "value": "1", "checked": errors}),
        words("{n} error|{n} errors", n=failed),
    )
    form = tag(
        "form",
        {"class": "filter", "id": "filter", "data-find": "conv-count conv-turns", "data-keep": True},
        tag("input", {"type": "hidden", "name": "r", "value": asked.get("r")}),
        only if failed else None,
        search_box(words, name="find", value=wanted, label=words("Filter this session")),
    )
    header = tag(
        "header",
        None,
        tag("h2", {"id": "hc"}, words("Conversation")),
        tag("span", {"class": "soft small", "role": "status", "id": "conv-count"}, match),
        tag("span", {"class": "sp"}),
        form,
    )
    empty = tag("p", {"class": "body soft"}, words("No turn matches.")) if not shown else None
    here = number_of(request, "turn")
    rows = [_row(words, opened, turn, wanted, asked.get("show", "") if turn.number == here else None) for turn in shown]
    listed = tag("ol", {"class": "turns", "id": "turns"}, rows)
    return tag(
        "section",
        {"class": "panel conv", "aria-labelledby": "hc", "id": "conv"},
        header,
        tag("div", {"id": "conv-turns"}, empty, listed, _pages(words, request, number, len(found))),
    )


def turn_address(session: str, turn: int, *, show: str = "", **query: int) -> str:
    """Return where a turn opens, by the address of its session. `show` is the id, or words, of a record in it."""
    page = (max(1, turn) - 1) // PAGE + 1
    asked = {**query, **({"turns": page} if page > 1 else {}), "turn": turn, **({"show": show} if show else {})}
    return f"{session}?{urlencode(asked)}"


def _row(words: Words, opened: OpenSession, turn: TurnRow, wanted: str, show: str | None) -> Html:
    """Return the row of a turn. If `show` is given, the turn is open."""
    requests = turn.last_request - turn.first_request + 1 if turn.first_request else 0
    tools = ", ".join(f"{count} {name}" for name, count in sorted(turn.tools.items(), key=lambda pair: -pair[1])[:4])
    failed = tag("span", {"class": "bad"}, words("{n} failed", n=turn.errors)) if turn.errors else None
    count = words("{n} request|{n} requests", n=requests) if requests else words("interrupted")
    summary = tag(
        "summary",
        None,
        tag("span", {"class": "soft small t"}, clock(words, turn.time)),
        tag(
            "span",
            None,
            tag("span", {"class": "txt"}, bdi(cut(turn.words, ROW_CHARS) or words("Without a message from you"))),
            tag("span", {"class": "sub"}, tag("span", None, bdi(tools) if tools else words("no tool calls")), failed),
        ),
        tag(
            "span",
            {"class": "amt"},
            count,
            tag("br"),
            amount(words, Amount(_usage(words, opened, turn), turn.usd)) if requests and not opened.series.estimated else None,
        ),
    )
    url = f"{address(opened.session)}/turns/{turn.number}"
    load: dict[str, Attribute] = {"id": f"d{turn.number}", "data-load": f"{url}?{urlencode({'find': wanted})}" if wanted else url}
    content = tag("noscript", None, tag("p", {"class": "ev"}, tag("a", {"href": url}, words("Open this turn"))))
    if show is not None and (read := read_turn(words, opened, turn.number)) is not None:
        load, content = load | {"open": True, "data-loaded": "1"}, turn_events(read, find=wanted, show=show)
    facts: dict[str, Attribute] = {"data-first": turn.first_request, "data-last": turn.last_request, "data-here": show == ""}
    return tag("li", {"id": f"t{turn.number}"} | facts, tag("details", load, summary, content))


def _usage(words: Words, opened: OpenSession, turn: TurnRow) -> Usage:
    """Return the tokens of a turn's requests, if its amount is counted in tokens."""
    found = opened.series.requests[turn.first_request - 1 : turn.last_request] if words.billing == "subscription" else ()
    return sum((point.usage for point in found), Usage())


def _pages(words: Words, request: Request, number: int, count: int) -> Html | None:
    if count <= PAGE:
        return None
    kept = {key: value for key, value in request.query_params.items() if key in ("r", "find", "errors")}

    def link(to: int, key: str) -> Html:
        return tag("a", {"class": "btn sm", "href": f"?{urlencode({**kept, 'turns': to})}#conv"}, words(key))

    return tag(
        "nav",
        {"class": "pages", "aria-label": words("Pages")},
        link(number - 1, Text("Earlier turns")) if number > 1 else None,
        tag("span", {"class": "soft"}, f"{number} / {-(-count // PAGE)}"),
        link(number + 1, Text("Later turns")) if number * PAGE < count else None,
    )
