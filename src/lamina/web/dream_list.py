"""Dreams and background work: what ran, what it cost and changed, what runs now and when the next dream is due."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core.budget import LedgerLine, Spent, limits_of, spent_in
from ..core.usage import Usage
from ..disk.home.ledger import day_of, read_ledger_day
from ..language.text import Text
from ..layers.l6_dream.record import DreamRecord, DreamTurn
from ..providers.amounts import Amount
from . import labels
from .dream_data import PlaceDreams, dream_state, find_next, list_dreams
from .dream_jobs import DreamStart
from .html import Attribute, Child, Html, bdi, cut, join, tag
from .memory_forms import button, change_form
from .memory_list import place_name
from .memory_places import Place
from .numbers import ago, amount, clock, money, parts_apart, share, tokens
from .page import page, view_head
from .site import Site
from .words import Words, words_for

START, STOP, DISMISS, SHOW_AGAIN = (f"/changes/dreams/{name}" for name in ("start", "stop", "dismiss", "show-again"))
MOST_TURNS_SHOWN = 30
MOST_CALLS_SHOWN = 100
# The purposes of background calls that have a name on the page.


def routes(site: Site) -> list[Route]:
    site.watches["dreams"] = lambda _: [*dream_state(site.memories), *site.dreams.state()]

    def dreams(request: Request) -> Response:
        return _dreams(site, request)

    return [Route("/dreams", dreams)]


def address(place: Place, record: DreamRecord) -> str:
    return f"/dreams/{quote(place.id, safe='')}/{record.id}"


def _dreams(site: Site, request: Request) -> Response:
    watch = site.look("dreams:", "memories:")
    words, found = words_for(request), list_dreams(site.memories)
    lines = read_ledger_day(site.home, day_of(site.clock())) if site.home is not None else []
    starts = _starts(site, found)
    body = join(
        (
            view_head(
                words("Dreams and background"),
                tag(
                    "p",
                    {"class": "meta"},
                    words(
                        "A dream merges duplicates, replaces relative dates and repairs the index. Every change can be undone."
                    ),
                ),
                right=_start_form(site, words, found),
            ),
            [_start_panel(site, words, place, start) for place, start in starts],
            [running_panel(site, words, one, linked=True) for one in found if one.running is not None],
            _background(site, words, lines),
            _listed(site, words, found),
            _next(site, words, found),
            _calls(words, lines),
        )
    )
    data = {
        "dreams": [dream_json(one.place, record) for one in found for record in one.records],
        "running": [one.place.id for one in found if one.running is not None and one.alive],
        "starting": [place.id for place, start in starts if not start.begun.done()],
        "not_started": {place.id: words(error) for place, start in starts if (error := start.error) is not None},
        "background": [{"purpose": line.purpose, "model": line.model, "usd": line.usd, "time": line.time} for line in lines],
    }
    title = words("Dreams and background")
    return page(site, request, title=title, active="dreams", body=body, data=data, watch=watch)


def _startable(site: Site, found: list[PlaceDreams]) -> list[Place]:
    """Return the projects in which a dream can run: they have a memory, are known, and no dream runs there."""
    busy = {one.place.id for one in found if one.running is not None and one.alive}
    busy |= {place for place, start in site.dreams.starts.items() if not start.begun.done()}
    own = (place for place in site.places.all() if place.own and place.agent is None and place.project is not None)
    return [place for place in own if place.id not in busy and place.path.is_dir()]


def _start_form(site: Site, words: Words, found: list[PlaceDreams]) -> Html | None:
    places = _startable(site, found)
    if site.read_only or not places:
        return None
    here = site.places.here()
    chosen = here if here in places else places[0]
    options = [tag("option", {"value": one.id, "selected": one == chosen}, place_name(one)) for one in places]
    return change_form(
        START,
        {},
        tag("select", {"name": "place", "class": "pick", "aria-label": words("Project")}, options),
        button(words("Start a dream"), {"class": "btn main", "id": "start"}),
        attributes={"class": "btns", "id": "start-form"},
    )


def _starts(site: Site, found: list[PlaceDreams]) -> list[tuple[Place, DreamStart]]:
    """Return the dreams that have not begun: they start, or could not."""
    running = {one.place.id for one in found if one.running is not None}
    starts = ((site.places.find(id), start) for id, start in site.dreams.starts.items() if id not in running)
    return [(place, start) for place, start in starts if place is not None]


def _start_panel(site: Site, words: Words, place: Place, start: DreamStart) -> Html:
    """Return a dream that starts, or why it could not."""
    error = start.error
    state = tag("span", {"class": "live"}, words("starting"))
    return tag(
        "section",
        {"class": "panel ba", "aria-live": "polite"},
        tag(
            "header",
            None,
            state if error is None else tag("span", {"class": "bad"}, words("not started")),
            tag("h2", None, bdi(place_name(place))),
            tag("span", {"class": "soft small"}, ago(words, start.at, site.clock())),
            tag("span", {"class": "sp"}),
            None if site.read_only or error is None else _dismiss_form(words, place, start),
        ),
        tag("p", {"class": "pad"}, bdi(words(error))) if error is not None else None,
    )


def _dismiss_form(words: Words, place: Place, start: DreamStart) -> Html:
    label: dict[str, Attribute] = {"class": "btn sm", "data-hotkey": "x", "id": f"dismiss-{place.id}"}
    return change_form(DISMISS, {"place": place.id, "at": str(start.at)}, button(words("Dismiss"), label))


def running_panel(site: Site, words: Words, one: PlaceDreams, *, linked: bool = False) -> Html:
    """Return a dream that runs, or whose process has died: phase, answers and cost so far, and how to stop it."""
    record = one.running
    assert record is not None
    name, turns = bdi(place_name(one.place)), [answer(words, turn, 240) for turn in record.turns[-MOST_TURNS_SHOWN:]]
    live = tag("span", {"class": "live"}, words("running"))
    state = words(labels.DREAM_PHASES[record.phase] if one.alive else "its process has died")
    return tag(
        "section",
        {"class": "panel ba", "aria-live": "polite"},
        tag(
            "header",
            None,
            live if one.alive else tag("span", {"class": "bad"}, words("interrupted")),
            tag("h2", None, tag("a", {"href": address(one.place, record)}, name) if linked else name),
            tag("span", {"class": "soft small"}, state, " · ", ago(words, record.started, site.clock())),
            tag(
                "span",
                {"class": "soft small"},
                words("{n} answer|{n} answers", n=len(record.turns)),
                " · ",
                dream_amount(words, record),
            ),
            tag("span", {"class": "sp"}),
            None if site.read_only else _stop_form(words, one, record),
        ),
        tag("ol", {"class": "turnlist"}, turns) if turns else None,
    )


def _stop_form(words: Words, one: PlaceDreams, record: DreamRecord) -> Html:
    """Return the form that stops a dream, or cleans up after a dead one. Its id is the dream's own: the focus returns to it."""
    label: dict[str, Attribute] = {"class": "btn sm", "data-hotkey": "x", "id": f"stop-{one.place.id}-{record.id}"}
    fields = {"place": one.place.id, "dream": record.id}
    return change_form(STOP, fields, button(words("Stop" if one.alive else "Clean up"), label))


def dream_amount(words: Words, record: DreamRecord) -> str:
    """Return what a dream cost, or the units that it used. A record of an older version has only the sum of its tokens."""
    old = words.billing == "subscription" and record.tokens and not record.usage.total
    return words("{n} token|{n} tokens", n=record.tokens) if old else amount(words, Amount(record.usage, record.cost))


def answer(words: Words, turn: DreamTurn, most: int) -> Html:
    """Return an answer of a dream; one without words tells how many tools it called. Only answers of rules have a Chinese form."""
    return tag(
        "li",
        None,
        bdi(cut(words(turn.text), most)) if turn.text.strip() else words("{n} tool call|{n} tool calls", n=turn.calls),
    )


def _background(site: Site, words: Words, lines: list[LedgerLine]) -> Html:
    """Return what background work cost today, by purpose, beside the budget."""
    limits, spent = limits_of(site.settings), spent_in(lines)
    purposes: dict[str, list[LedgerLine]] = {}
    for line in lines:
        purposes.setdefault(line.purpose, []).append(line)
    dollars = words.billing == "list"
    cells: list[Child] = [
        figure(
            words("Background today" if words.billing == "list" else "Share of the cost limit"),
            _cost(words, spent),
            words("of {usd} a day", usd=money(limits.dollars)),
        )
        if dollars
        else figure(
            words("Background today" if words.billing == "list" else "Share of the cost limit"), share(spent.usd, limits.dollars)
        ),
        figure(words("Calls today"), f"{spent.calls:,}", words("of {of}", of=f"{limits.calls:,}")),
        figure(words("Tokens today"), tokens(spent.tokens), words("of {of}", of=tokens(limits.tokens))),
    ]
    for purpose, within in sorted(purposes.items(), key=lambda item: -len(item[1]))[:4]:
        used = spent_in(within)
        value = _cost(words, used) if dollars else words("{n} token|{n} tokens", n=used.tokens)
        cells.append(figure(_purpose(words, purpose), value, words("{n} call|{n} calls", n=len(within))))
    return tag("dl", {"class": "figs"}, cells)


def _cost(words: Words, spent: Spent) -> str:
    return (
        words("Price unknown for {n} call.|Price unknown for {n} calls.", n=spent.unpriced)
        if spent.unpriced
        else money(spent.usd)
    )


def _purpose(words: Words, purpose: str) -> str:
    return words(labels.PURPOSES[purpose]) if purpose in labels.PURPOSES else purpose


def _calls(words: Words, lines: list[LedgerLine]) -> Html | None:
    """Return today's background calls, newest first."""
    if not lines:
        return None
    rows = [
        tag(
            "tr",
            None,
            tag("td", None, clock(words, line.time, seconds=True)),
            tag("td", None, bdi(_purpose(words, line.purpose))),
            tag("td", None, bdi(line.model)),
            [tag("td", None, part) for part in parts_apart(words, _usage(line))],
            tag("td", None, words("no answer") if line.failed else amount(words, Amount(_usage(line), line.usd))),
        )
        for line in sorted(lines, key=lambda line: -line.time)[:MOST_CALLS_SHOWN]
    ]
    heads = (
        Text("Time"),
        Text("Purpose"),
        Text("Model"),
        Text("Read from cache"),
        Text("Written"),
        Text("Output"),
        Text("Cost") if words.billing == "list" else Text("Use"),
    )
    head = tag("thead", None, tag("tr", None, [tag("th", None, words(one)) for one in heads]))
    table = tag("table", {"class": "data"}, head, tag("tbody", None, rows))
    summary = tag("summary", {"class": "pad"}, words("{n} background call today|{n} background calls today", n=len(lines)))
    return tag("details", {"class": "panel", "id": "calls"}, summary, tag("div", {"class": "body scroll"}, table))


def _usage(line: LedgerLine) -> Usage:
    return Usage(line.input, line.cache_read, line.cache_write, 0, line.output)


def figure(label: str, value: str, more: Child = "") -> Html:
    unit = (" ", tag("small", None, more)) if more else None
    return tag("div", None, tag("dt", None, bdi(label)), tag("dd", None, value, unit))


def _listed(site: Site, words: Words, found: list[PlaceDreams]) -> Html | None:
    rows = [(one.place, record) for one in found for record in one.records if record is not one.running]
    rows.sort(key=lambda row: -row[1].started)
    if not rows:
        return None if site.dreams.starts or any(one.running is not None for one in found) else _none(site, words, found)
    waiting = {proposal.id for _, proposal in site.memories.waiting([one.place for one in found])}
    items = [tag("li", None, _row(site, words, place, record, waiting)) for place, record in rows]
    return tag("div", {"class": "panel"}, tag("ul", {"class": "list"}, items))


def _none(site: Site, words: Words, found: list[PlaceDreams]) -> Html:
    """Return what leads to a first dream: it needs memories, and then it is started above."""
    new = tag("p", None, tag("a", {"class": "btn main", "href": "/memories/new"}, words("New memory")))
    if _startable(site, found):
        return tag(
            "div",
            {"class": "empty"},
            tag("p", None, words("No dream yet. One starts after enough sessions, or choose a project above and start one.")),
        )
    return tag(
        "div",
        {"class": "empty"},
        tag(
            "p",
            None,
            words(
                "No dream yet. A dream tidies the memories of a project, and there are none yet. Write one, or let a "
                "session remember something."
            ),
        ),
        None if site.read_only else new,
    )


def _next(site: Site, words: Words, found: list[PlaceDreams]) -> Html | None:
    """Return when the next dream of each project is due, or why it is not."""
    rows = []
    for place in _startable(site, found):
        stop = find_next(site.memories, place, site.home)
        told = words("at the end of the next turn") if stop is None else words("not yet, {why}", why=words(stop.why))
        rows.append(tag("li", None, tag("b", None, bdi(place_name(place))), ": ", bdi(told)))
    return join((tag("h2", {"class": "day"}, words("The next dream")), tag("ul", {"class": "entries"}, rows))) if rows else None


def _row(site: Site, words: Words, place: Place, record: DreamRecord, waiting: set[str]) -> Html:
    return tag(
        "a",
        {"class": "drow", "href": address(place, record)},
        tag("b", None, bdi(place_name(place))),
        tag("span", {"class": "bad" if record.status == "failed" else "soft"}, words(labels.DREAM_STATES[record.status])),
        tag("span", {"class": "what"}, bdi(_changes(words, record, waiting))),
        tag("span", {"class": "soft num"}, dream_amount(words, record)),
        tag("span", {"class": "soft"}, ago(words, record.started, site.clock())),
    )


def _changes(words: Words, record: DreamRecord, waiting: set[str]) -> str:
    """Return what a dream changed. `waiting` are the proposals that wait now, of whatever dream."""
    added, changed = record.written()
    counts = (
        ("merged", len(record.merged)),
        ("added", len(added)),
        ("changed", len(changed)),
        ("removed", len(record.removed)),
        ("waiting", pending := sum(id in waiting for id in record.waiting)),
        ("decided", len(record.waiting) - pending),
    )
    told = [words(labels.CHANGE_COUNTS[name], n=count) for name, count in counts if count]
    return ", ".join(told) or cut(words(record.why), 120) or words("nothing to change")


def dream_json(place: Place, record: DreamRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "url": address(place, record),
        "project": place.id,
        "status": record.status,
        "phase": record.phase,
        "by": record.by,
        "started": record.started,
        "ended": record.ended,
        "files": record.files,
        "merged": record.merged,
        "removed": record.removed,
        "waiting": record.waiting,
        "tokens": record.tokens,
        "cost_usd": record.cost,
        "why": record.why,
    }
