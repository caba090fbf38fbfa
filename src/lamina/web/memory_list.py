"""The list of memories: their cards, and the names of places and authors."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request

from ..history.places import NAMES
from ..history.recalls import Recalls
from ..language.terms import normal
from ..memory.recall.library import Recalled
from ..memory.store.contract import MemoryVersion
from ..memory.store.evidence import Freshness
from ..memory.store.topic import evidence_of
from . import labels
from .html import Child, Html, bdi, cut, join, tag
from .memory_history import PlaceFacts, author_of
from .memory_index import Card, FoundCard, MemoryIndex
from .memory_places import Place
from .numbers import ago
from .page import icon, number_of, query, search_box
from .session_index import MOST_COUNTED
from .site import Site
from .words import Words

PAGE = 30
FOUND = "memory-found"  # the id of the part that is replaced while the user types
NAME_CHARS, DESCRIPTION_CHARS = 120, 220
TYPE_ICONS = {
    "user": "M8 8.500a3 3 0 1 0 0-6 3 3 0 0 0 0 6M3 14c0-3 2-4.500 5-4.500s5 1.500 5 4.500",
    "feedback": "M2.500 3.500h11v7h-6l-3 3v-3h-2z",
    "project": "M2.500 4.500h4l1.200 1.500h5.800v7h-11z",
    "reference": "M6.5 9.5 9.5 6.5M7 4.5l1.5-1.5a2.8 2.8 0 0 1 4 4L11 8.5M9 11.5 7.5 13a2.8 2.8 0 0 1-4-4L5 7.5",
}
STATE_ICONS = {"fresh": "M3 8.500 6.500 12 13 4.500", "stale": "M8 3v6M8 12.500v.1", "unverifiable": "M3 8h10"}


class Listed(NamedTuple):
    """The memories that an address asks for. `found` has the reasons if it is a search; `of` is how many there are without it."""

    places: list[Place]
    chosen: Place | None
    every: list[Card]
    cards: list[Card]
    found: dict[tuple[str, str], FoundCard]
    of: int
    facts: Mapping[str, PlaceFacts]


def address(place: Place, file: str) -> str:
    return f"/memories/{quote(place.id, safe='')}/{quote(file, safe='/')}"


def address_of(index: MemoryIndex, path: str) -> str:
    """Return where the memory of a file opens; empty if no place has it as a file of its own."""
    inside = [one for one in index.places.all() if one.origin != "codex" and path.startswith(f"{one.path}{os.sep}")]
    place = max(inside, key=lambda one: len(str(one.path)), default=None)
    return address(place, Path(path).relative_to(place.path).as_posix()) if place is not None else ""


def author_name(words: Words, author: str) -> str:
    return words(labels.AUTHORS[author]) if author in labels.AUTHORS else author


def place_name(place: Place) -> str:
    return place.name if place.origin in ("lamina", "codex") else f"{place.name} · {NAMES[place.origin]}"


def card_list(words: Words, site: Site, request: Request, listed: Listed, now: float, open_: tuple[str, str] | None) -> Html:
    """Return search box, what was found, and the cards of one page."""
    index = site.memories
    number = page_number(request, listed, open_)
    shown = listed.cards[(number - 1) * PAGE : number * PAGE]
    read = index.read(shown)
    cards = [
        _card(
            words,
            listed.facts[card.place.id],
            index.recalls(card.place, listed.facts[card.place.id], card.header.file),
            request,
            card,
            listed.found.get(_key(card)),
            read.get(_key(card)),
            now,
            _key(card) == open_,
        )
        for card in shown
    ]
    hidden = [
        tag("input", {"type": "hidden", "name": name, "value": value})
        for name, value in request.query_params.items()
        if name in ("project", "type", "by", "source", "use", "evidence", "lang")
    ]
    box = search_box(words, value=request.query_params.get("q", ""), label=words("Search these memories"))
    form = tag(
        "form",
        {"class": "bar2", "action": "/memories", "id": "memory-search", "data-find": FOUND, "role": "search"},
        box,
        hidden,
    )
    status = tag("p", {"class": "soft small", "role": "status", "id": "memory-status"}, _status(words, request, listed))
    body = tag("ul", {"class": "cards"}, cards) if cards else _nothing(words, site, request, listed)
    return tag(
        "div",
        {"id": "memory-cards"},
        form,
        tag("div", {"id": FOUND}, status, body, pages(words, request, number, len(listed.cards))),
    )


def _key(card: Card) -> tuple[str, str]:
    return card.place.id, card.header.file


def _status(words: Words, request: Request, listed: Listed) -> str:
    if not request.query_params.get("q", "").strip():
        return words("{n} memory|{n} memories", n=len(listed.cards))
    clear = sum(one.clear for one in listed.found.values())
    told = words("{n} of {of} matches.|{n} of {of} match.", n=len(listed.cards), of=f"{listed.of:,}")
    return f"{told} {words('Recall would bring the first one.|Recall would bring the first {n}.', n=clear)}" if clear else told


def _nothing(words: Words, site: Site, request: Request, listed: Listed) -> Html:
    if wanted := request.query_params.get("q", "").strip():
        told = words("No memory matches “{q}”.", q=cut(wanted, 80))
        return tag("div", {"class": "empty"}, tag("p", None, told, " ", _sessions_that_match(words, site, wanted)))
    if listed.every:
        link = tag("a", {"class": "btn", "href": "/memories"}, words("Show all memories"))
        return tag("div", {"class": "empty"}, tag("p", None, words("No memory fits these filters.")), tag("p", None, link))
    new = tag("p", None, tag("a", {"class": "btn", "href": "/memories/new"}, words("New memory")))
    return tag(
        "div",
        {"class": "empty"},
        tag("p", None, words("Nothing remembered yet. Memories appear after your first session, or write one now.")),
        None if site.read_only else new,
    )


def _sessions_that_match(words: Words, site: Site, wanted: str) -> Html | None:
    """Return a link to the search over everything, with how many sessions match if that is known; None if none does."""
    count = site.index.count_matching(wanted)
    if count == 0:
        return None
    label = words("{n} session does.|{n} sessions do.", n=count)
    if count is None:
        label = words("Search the sessions, too.")
    elif count >= MOST_COUNTED:
        label = words("{n} sessions or more do.", n=count)
    return tag("a", {"href": f"/search?{urlencode({'q': wanted})}"}, label)


def _card(
    words: Words,
    facts_of: PlaceFacts,
    recalls: Recalls,
    request: Request,
    card: Card,
    found: FoundCard | None,
    recalled: Recalled | None,
    now: float,
    current: bool,
) -> Html:
    header, place = card.header, card.place
    terms = set().union(*found.terms) if found is not None else set()
    named = recalled is not None and bool(evidence_of(recalled.topic))
    href = address(place, header.file) + query(request, edit=None, whole=None)
    facts: list[Child] = [
        evidence_mark(words, recalled.evidence if recalled is not None else None, named),
        tag("span", None, ago(words, header.modified, now)),
        tag("span", None, bdi(author_name(words, author_of(facts_of, card.place, card.header.file)))),
        tag("span", None, recalled_text(words, recalls, now)) if place.own else None,
        tag("span", None, bdi(place_name(place))) if not request.query_params.get("project") else None,
    ]
    return tag(
        "li",
        None,
        tag(
            "a",
            {"class": "card", "href": href, "data-row": True, "aria-current": "true" if current else None},
            _type(words, header.type),
            tag("h2", None, highlighted(cut(header.name, NAME_CHARS), terms)),
            tag("p", {"class": "d"}, highlighted(cut(header.description, DESCRIPTION_CHARS), terms)),
            tag("p", {"class": "facts"}, facts),
            why_found(words, request, found, recalled.evidence if recalled is not None else None) if found is not None else None,
        ),
    )


def recalled_text(words: Words, recalls: Recalls, now: float) -> Html:
    """Return how often a memory was recalled, and when last."""
    if not recalls.times:
        return join((words("never recalled"),))
    last = (words(", "), words("last"), " ", ago(words, recalls.last, now)) if recalls.last else None
    return join((words("recalled once|recalled {n} times", n=recalls.times), last))


def evidence_mark(words: Words, evidence: Freshness | None, named: bool) -> Html:
    """Return the state of the evidence as icon and word, with the cause."""
    if not named or evidence is None:
        return tag("span", {"class": "ev2"}, icon(STATE_ICONS["unverifiable"]), words("no evidence named"))
    label = words(labels.EVIDENCE[evidence.state])
    cause = f"{words(': ')}{cut(words(evidence.why), 80)}" if evidence.state != "fresh" and evidence.why else ""
    return tag("span", {"class": f"ev2 {evidence.state}"}, icon(STATE_ICONS[evidence.state]), bdi(f"{label}{cause}"))


def _type(words: Words, kind: str | None) -> Html | None:
    return (
        tag("span", {"class": "type"}, icon(TYPE_ICONS[kind]), words(labels.MEMORY_TYPES[kind])) if kind in TYPE_ICONS else None
    )


def why_found(words: Words, request: Request, found: FoundCard, evidence: Freshness | None) -> Html:
    """Return why a search found a memory: the matching words by field."""
    parts = [
        join((tag("b", None, bdi(", ".join(asked_words(request, terms)))), " ", words(labels.MATCHED_FIELDS[field])))
        for field, terms in zip(("name", "description", "text"), found.terms, strict=True)
        if terms
    ]
    reasons: list[Child] = []
    for part in parts or [bdi(words("similar meaning only"))]:
        reasons += [words(", ") if reasons else None, part]
    lowered = (
        f" {words('Lowered, because its evidence is stale.')}" if evidence is not None and evidence.state == "stale" else None
    )
    return tag("p", {"class": "whyhit"}, words("Why:"), " ", reasons, words("."), lowered)


def asked_words(request: Request, terms: Sequence[str]) -> list[str]:
    """Return the words of the search that stand for these stems."""
    asked = re.findall(r"\w+", request.query_params.get("q", ""))
    return [next((word for word in asked if normal(word).startswith(normal(term))), term) for term in terms]


def highlighted(text: str, terms: set[str]) -> Html:
    """Return a line with its code as code, and with the words that begin with a term marked: terms are stems."""
    stems = [normal(term) for term in terms if len(term) > 1]
    parts = list[Child]()
    for at, piece in enumerate(re.split(r"`([^`\n]{1,400})`", text)):
        marked = _marked(piece, stems)
        parts.append(tag("code", {"class": "mono"}, marked) if at % 2 else marked)
    return tag("bdi", None, parts)


def _marked(text: str, stems: list[str]) -> Child:
    if not stems:
        return text
    words = re.split(r"(\w+)", text)
    return [tag("mark", None, word) if word and any(normal(word).startswith(stem) for stem in stems) else word for word in words]


def pages(words: Words, request: Request, number: int, count: int) -> Html | None:
    if count <= PAGE:
        return None
    before, after = (query(request, page=str(number + step), edit=None) for step in (-1, 1))
    return tag(
        "nav",
        {"class": "pages", "aria-label": words("Pages")},
        tag("a", {"class": "btn", "href": f"/memories{before}", "rel": "prev"}, words("Previous")) if number > 1 else None,
        tag("span", {"class": "soft"}, f"{number} / {-(-count // PAGE)}"),
        tag("a", {"class": "btn", "href": f"/memories{after}", "rel": "next"}, words("Next")) if number * PAGE < count else None,
    )


def page_number(request: Request, listed: Listed, open_: tuple[str, str] | None) -> int:
    """Return the page that an address asks for; without one, the page with the memory that is open."""
    if (asked := number_of(request, "page")) is not None:
        return max(1, asked)
    if open_ is None:
        return 1
    place, file = open_
    return next(
        (at // PAGE + 1 for at, card in enumerate(listed.cards) if card.header.file == file and card.place.id == place), 1
    )


def card_json(index: MemoryIndex, facts: Mapping[str, PlaceFacts], card: Card, found: FoundCard | None) -> dict[str, Any]:
    """Return a memory as `?format=json` shows it."""
    header, place = card.header, card.place
    recalls = index.recalls(place, facts[place.id], header.file)
    row = {
        "url": address(place, header.file),
        "project": place.id,
        "project_path": str(place.project) if place.project is not None else None,
        "origin": place.origin,
        "file": header.file,
        "name": header.name,
        "description": header.description,
        "type": header.type,
        "modified": header.modified,
        "author": author_of(facts[place.id], card.place, card.header.file),
        "recalled": recalls.times,
        "last_recalled": recalls.last,
    }
    why = {"score": found.score, "terms": found.terms, "recall": found.clear} if found is not None else {}
    return row | why


def version_line(words: Words, version: MemoryVersion) -> str:
    """Return what a change did and who made it."""
    who = "outside" if version.why is None else version.why.who
    return words("{what} by {who}", what=labels.MEMORY_ACTIONS[version.action], who=author_name(words, who))
