"""The overview: one sentence of figures, money by day and model, what waits, what runs, cache breaks, the newest memories."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..conversation.window.model_window import window_of
from ..core.budget import Spent
from ..disk.home.ledger import read_ledger_day
from ..history.money import DayMoney
from ..history.places import NAMES, Origin
from ..history.sessions import SourceSession, newest_memories
from ..language.text import Text
from ..providers.amounts import units_of
from ..providers.models import table
from ..replay.html import ReportWords, recorded_bill, saving_words
from ..replay.savings import saving
from ..replay.variants import row_title
from . import cache_breaks, labels
from .changes import Done, Fields, change_route
from .html import Child, Html, bdi, cut, join, tag
from .memory_index import Card, MemoryIndex
from .memory_list import address as memory_address
from .memory_list import address_of
from .money_panel import money_panel, sum_days
from .numbers import ago, at_least, money, parts_apart, share, tokens, tokens_apart
from .numbers import day as date_words
from .page import page
from .period import DAYS, Period
from .replay_jobs import SAVING
from .session_index import Listing
from .session_list import address, cost_of, is_running, no_sessions, project_name, session_row, title_of
from .site import Site
from .words import Words, words_for

SHOWN = 6


def routes(site: Site) -> list[Route]:
    causes = cache_breaks.BreakCauses(site)
    site.watches["breaks"] = lambda _: causes.state

    def overview(request: Request) -> Response:
        watch = site.look("sessions:", f"replay:{SAVING}", "breaks:")
        return _overview(site, request, site.sessions(), causes, watch)

    def save(request: Request, fields: Fields) -> Done:
        return _start_saving(site, words_for(request), fields)

    return [Route("/", overview), change_route(site, "/overview/saving", save)]


def _overview(
    site: Site, request: Request, listing: Listing, causes: cache_breaks.BreakCauses, watch: Mapping[str, str]
) -> Response:
    words, asked, paid = words_for(request), Period.of(site, request), listing.money
    every = [one for one in paid if asked.days[0] <= one.day <= asked.days[-1]]
    rows = [one for one in every if not asked.project or one.project == asked.project]
    newest = max((one.day for one in paid if asked.project in ("", one.project)), default="") if not rows else ""
    sessions = asked.sessions(listing.top)
    running = [one for one in listing.top if is_running(one, site.clock())][:SHOWN]
    reading = words(
        "Reading the session file for the first time.|Reading session files for the first time, the newest "
        "first: {done} of {n}. The figures are those of the files read so far.",
        n=listing.of,
        done=f"{listing.done:,}",
    )
    some = bool(listing.top or listing.of)
    body = join(
        (
            _head(words, asked, rows, sessions, reading=listing.of > 0),
            _offer(words, asked, newest) if newest and not listing.of else None,
            tag("p", {"class": "notice", "role": "status"}, reading) if listing.of else None,
            _filters(words, asked, {one.project for one in every if one.project}) if some else no_sessions(site, words),
            tag(
                "div",
                {"class": "over"},
                tag(
                    "div",
                    None,
                    money_panel(words, asked, rows),
                    cache_breaks.panel(words, asked, listing, causes),
                    _saving(site, words, asked) if some and not asked.until else None,
                    _layers(site, words, asked),
                ),
                tag("div", None, _waits(site, words), _runs(site, words, running), _newest(site, words)),
            ),
        )
    )
    data = {
        "days": [msgspec.to_builtins(one) for one in rows],
        "sessions": len(sessions),
        "waiting": site.counts(),
        "running": [session_row(one) for one in running],
        "reading": listing.of,
        "prices_of": table().date,
    }
    return page(site, request, title=words("Overview"), active="overview", body=body, data=data, watch=watch)


def _head(words: Words, asked: Period, rows: list[DayMoney], sessions: list[SourceSession], *, reading: bool) -> Html:
    (total, unpriced), dollars = sum_days(rows), words.billing == "list"
    period, short = asked.name(words), sum(one.short_outputs > 0 for one in sessions)
    if reading:
        nothing = words("{period}: no costs found so far" if dollars else "{period}: no use found so far", period=period)
    else:
        nothing = words("{period}: no costs recorded" if dollars else "{period}: no use recorded", period=period)
    bill = (
        at_least(words, total.usd, short=short > 0) if dollars else f"{'≥ ' if short else ''}{tokens_apart(words, total.usage)}"
    )
    cached = share(total.usage.cache_read, total.usage.prompt)
    line = words(
        "{period}: {n} session, {usd} at list price, {share} read from cache|{period}: {n} sessions, {usd} "
        "at list price, {share} read from cache"
        if words.billing == "list"
        else "{period}: {n} session, {usd}; {share} of the input was read from cache|{period}: {n} sessions, "
        "{usd}; {share} of the input was read from cache",
        period=period,
        n=len(sessions),
        usd=bill,
        share=cached,
    )
    notes = [
        words(
            "Prices of {date}."
            if words.billing == "list"
            else "A unit is one uncached input token, whatever the model. A token read from the cache counts 0.1, one "
            "written to it 1.25 (2 for an hour), an output token 5.",
            date=table().date,
        ),
        words("Price unknown for {n} call.|Price unknown for {n} calls.", n=unpriced) if unpriced and dollars else None,
        words(
            "≥: {n} session recorded only the beginning of some outputs.|≥: {n} sessions recorded only the "
            "beginning of some outputs.",
            n=short,
        )
        if short
        else None,
    ]
    return tag(
        "div",
        {"class": "head"},
        tag(
            "div",
            None,
            tag("h1", None, words("Overview")),
            tag("p", {"class": "lead"}, line if rows else nothing),
            tag("p", {"class": "meta"}, [tag("span", None, note) for note in notes if note]),
        ),
    )


def _offer(words: Words, asked: Period, newest: str) -> Html:
    """Lead from an empty period to the newest one with costs."""
    chosen = {"days": len(asked.days), "until": newest} | ({"project": asked.project} if asked.project else {})
    label = words(
        "Show the newest costs, up to {day}" if words.billing == "list" else "Show the newest use, up to {day}",
        day=date_words(words, datetime.fromisoformat(newest)),
    )
    return tag("p", None, tag("a", {"class": "btn", "id": "newest", "href": f"/?{urlencode(chosen)}"}, label))


def _filters(words: Words, asked: Period, projects: set[str]) -> Html:
    places = sorted(projects | ({asked.project} - {""}), key=lambda path: (os.path.basename(path).casefold(), path))
    named = [("", words("All projects")), *((path, f"{os.path.basename(path)}  {path}") for path in places)]
    spans = [(value, asked._replace(days=asked.days[:1] * count).name(words)) for value, count in DAYS.items()]
    return tag(
        "form",
        {"class": "bar2", "id": "filter", "data-auto": True, "action": "/"},
        tag("input", {"type": "hidden", "name": "until", "value": asked.until}) if asked.until else None,
        _select(words("Period"), "days", spans, str(len(asked.days))),
        _select(words("Project"), "project", named, asked.project),
        tag("button", {"class": "btn noscript"}, words("Apply")),
    )


def _select(label: str, name: str, options: list[tuple[str, str]], chosen: str) -> Html:
    made = [tag("option", {"value": value, "selected": value == chosen}, text) for value, text in options]
    return tag("select", {"name": name, "id": f"pick-{name}", "aria-label": label, "class": "pick"}, made)


def _saving(site: Site, words: Words, asked: Period) -> Html:
    """The saving of the settings in force: the recorded bill minus the replayed one, over the sessions played so far."""
    job = site.replays.get(SAVING)
    report = job.report if job is not None else None
    lines: list[Child] = [
        tag(
            "p",
            {"class": "soft"},
            words("Plays the sessions of this period with your settings, in the background, without a model."),
        )
    ]
    if job is not None and report is not None and report.sessions:
        texts = ReportWords(words.language, words.billing)
        saved = saving(report.played, report.in_force, words.billing)
        sentence = words(
            "The sessions report no usage, so there is no recorded cost to compare with."
            if words.billing == "list"
            else "The sessions report no usage, so there is nothing to compare with."
        )
        if saved is not None:
            change, amounts, spread = saving_words(saved, texts)
            sentence = words(
                "Lamina would have cost {change}: {amounts} ({spread})."
                if words.billing == "list"
                else "Lamina would have used {change}: {amounts} ({spread}).",
                change=change,
                amounts=amounts,
                spread=spread,
            )
        policy = words(
            "Policy {policy}: {n} call compared.|Policy {policy}: {n} calls compared.",
            policy=row_title(job.policies[0]),
            n=report.calls,
        )
        bill = recorded_bill(report, texts)
        lines = [
            tag("p", {"id": "saved"}, sentence),
            tag("p", {"class": "soft small"}, bill) if bill else None,
            tag("p", {"class": "soft small"}, policy),
        ]
    if job is not None:
        text = words("Played {done} of {n} session.|Played {done} of {n} sessions.", n=len(job.files), done=f"{job.done:,}")
        place = os.path.basename(job.project) or words("All projects")
        lines.append(tag("p", {"class": "soft small"}, words("Last {n} day|Last {n} days", n=job.days), " · ", bdi(place)))
        lines.append(tag("p", {"class": "small", "role": "status"}, text))
        lines.append(
            tag("progress", {"value": job.done, "max": len(job.files) or 1, "aria-label": text}) if job.running else None
        )
    label = words("Update") if job is not None else words("Find out")
    hidden = {"days": str(len(asked.days)), "project": asked.project}
    form = tag(
        "form",
        {"data-change": True, "action": "/overview/saving", "method": "post"},
        [tag("input", {"type": "hidden", "name": name, "value": value}) for name, value in hidden.items()],
        tag("button", {"class": "btn", "id": "save"}, label),
    )
    shown = None if site.read_only or (job is not None and job.running) else form
    head = tag("header", None, tag("h2", None, words("What Lamina would have saved")))
    return tag("section", {"class": "panel"}, head, tag("div", {"class": "body"}, lines, shown))


def _layers(site: Site, words: Words, asked: Period) -> Html | None:
    """The background calls of Lamina's layers: extraction, dreams, notes and the others, by purpose."""
    spent: dict[str, Spent] = defaultdict(Spent)
    home = site.home
    for line in [line for day in asked.days for line in read_ledger_day(home, day)] if home is not None else ():
        spent[line.purpose] = spent[line.purpose].with_line(line)
    if not spent:
        return None
    whole = sum(units_of(one.usage) for one in spent.values())

    def cost(one: Spent) -> str:
        if words.billing == "subscription":
            return share(units_of(one.usage), whole)
        return (
            words("Price unknown for {n} call.|Price unknown for {n} calls.", n=one.unpriced) if one.unpriced else money(one.usd)
        )

    rows = [
        tag(
            "tr",
            None,
            tag("td", None, bdi(purpose)),
            tag("td", None, tokens(one.calls)),
            [tag("td", None, part) for part in parts_apart(words, one.usage)],
            tag("td", None, cost(one)),
        )
        for purpose, one in sorted(spent.items(), key=lambda pair: (-pair[1].usd, -pair[1].calls))
    ]
    heads = (
        Text("Purpose"),
        Text("Calls"),
        Text("Read from cache"),
        Text("Written"),
        Text("Output"),
        Text("Cost") if words.billing == "list" else Text("Share"),
    )
    head = tag("thead", None, tag("tr", None, [tag("th", None, words(one)) for one in heads]))
    table = tag("table", {"class": "data"}, head, tag("tbody", None, rows))
    title = tag("header", None, tag("h2", None, words("Background work by layer")))
    return tag("section", {"class": "panel"}, title, tag("div", {"class": "body scroll"}, table))


def _start_saving(site: Site, words: Words, fields: Fields) -> Done:
    count = DAYS.get(fields.get("days", ""), 7)
    since = site.clock() - count * 86_400
    chosen = [one for one in site.sessions().top if one.last_active >= since and fields.get("project", "") in ("", one.project)]
    site.replays.start_saving([one.path for one in chosen], days=count, project=fields.get("project", ""))
    return Done(words("Replaying {n} session.|Replaying {n} sessions.", n=len(chosen)))


def _waits(site: Site, words: Words) -> Html:
    rows = [
        tag(
            "li",
            None,
            tag(
                "a",
                {"class": "row", "href": f"/{view}"},
                words("{view}: {n} waits|{view}: {n} wait", n=count, view=labels.VIEWS[view]),
            ),
        )
        for view, count in site.counts().items()
        if count
    ]
    head = tag("header", None, tag("h2", None, words("Waits for you")))
    content = tag("ul", {"class": "list"}, rows) if rows else tag("div", {"class": "body soft"}, words("Nothing waits for you."))
    return tag("section", {"class": "panel"}, head, content)


def _runs(site: Site, words: Words, running: list[SourceSession]) -> Html:
    rows = [_run(site, words, one) for one in running]
    head = tag("header", None, tag("h2", None, words("Running now")))
    content = tag("ul", {"class": "list"}, rows) if rows else tag("div", {"class": "body soft"}, words("No session runs."))
    return tag("section", {"class": "panel"}, head, content)


def _run(site: Site, words: Words, session: SourceSession) -> Html:
    line = [project_name(session), NAMES[session.origin], cost_of(words, session)]
    bar = None
    sent, model = session.newest
    if sent:
        window = window_of(model, site.settings, session.fullest, session.window).tokens
        label = words("{tokens} of {window} tokens", tokens=tokens(sent), window=tokens(window))
        bar = (
            tag("progress", {"value": min(sent, window), "max": window, "aria-label": label}),
            tag("span", {"class": "soft small"}, label),
        )
    return tag(
        "li",
        None,
        tag(
            "a",
            {"class": "row", "href": address(session)},
            tag("b", None, bdi(cut(title_of(words, session), 120))),
            tag("span", {"class": "soft small"}, bdi(" · ".join(part for part in line if part))),
            bar,
        ),
    )


class _NewMemory(NamedTuple):
    href: str
    name: str
    text: str
    origin: Origin
    modified: float


def _newest_memories(site: Site) -> list[_NewMemory]:
    """Return the newest memories: of the list of memories, once it is there, else of the files that were changed last."""
    index = site.memories
    if (cards := index.newest(SHOWN)) is None:
        index.look_later()
        return [
            _NewMemory(
                address_of(index, one.path) or f"/memories?{urlencode({'q': one.name})}",
                one.name,
                one.description or one.body,
                one.origin,
                one.modified,
            )
            for one in newest_memories(site.settings, SHOWN, environ=site.environ)
        ]
    return [_of_card(index, card) for card in cards]


def _of_card(index: MemoryIndex, card: Card) -> _NewMemory:
    place, header = card
    text = header.description
    if not text and (found := index.one(place, header.file)) is not None:
        text = found.topic.body
    return _NewMemory(memory_address(place, header.file), header.name, text, place.origin, header.modified)


def _newest(site: Site, words: Words) -> Html:
    rows = [
        tag(
            "li",
            None,
            tag(
                "a",
                {"class": "row", "href": one.href},
                tag("b", None, bdi(cut(one.name, 120))),
                tag("span", {"class": "soft small"}, bdi(cut(one.text, 160))),
                tag("span", {"class": "soft small"}, NAMES[one.origin], " · ", ago(words, one.modified, site.clock())),
            ),
        )
        for one in _newest_memories(site)
    ]
    head = tag("header", None, tag("h2", None, words("Newest memories")))
    content = (
        tag("ul", {"class": "list"}, rows)
        if rows
        else tag("div", {"class": "body soft"}, words("Nothing remembered yet. Memories appear after your first session."))
    )
    return tag("section", {"class": "panel"}, head, content)
