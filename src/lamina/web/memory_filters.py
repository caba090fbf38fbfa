"""Which memories an address asks for, and the filters beside the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from starlette.requests import Request

from ..memory.store.evidence import Freshness
from ..memory.store.topic import KINDS
from . import labels
from .html import Html, bdi, join, tag
from .memory_history import PlaceFacts, author_of
from .memory_index import Card, FoundCard, MemoryIndex
from .memory_list import Listed, author_name, place_name
from .page import query
from .words import Words

MOST_FOUND = 200
# A longer list has its filters for evidence without counts.
MOST_COUNTED = 2_000
FILTERS = ("type", "by", "source", "use", "evidence")
EVIDENCE = ("fresh", "stale", "unverifiable", "none")


def list_memories(index: MemoryIndex, request: Request) -> Listed:
    asked = request.query_params
    places = index.places.all()
    chosen = next((place for place in places if place.id == asked.get("project")), None)
    looked = [chosen] if chosen is not None else places
    facts = {place.id: index.facts(place) for place in places}
    wanted = asked.get("q", "").strip()
    if wanted and request.headers.get("x-lamina-part") and not any(asked.get(name) for name in FILTERS):
        # While the user types, only what is found is shown, and the directories are looked at once.
        found, total = index.search(wanted, looked, MOST_FOUND)
        return Listed(places, chosen, [], [one.card for one in found], _by_key(found), total, facts)
    every = index.cards(places)
    within = every if chosen is None else [card for card in every if card.place.id == chosen.id]
    matching = _choose(index, facts, within, asked)
    if not wanted:
        return Listed(places, chosen, every, matching, {}, len(matching), facts)
    allowed = {(card.place.id, card.header.file) for card in matching}
    ranked, _ = index.search(wanted, looked, MOST_FOUND)
    found = [one for one in ranked if (one.card.place.id, one.card.header.file) in allowed]
    return Listed(places, chosen, every, [one.card for one in found], _by_key(found), len(matching), facts)


def _by_key(found: list[FoundCard]) -> dict[tuple[str, str], FoundCard]:
    return {(one.card.place.id, one.card.header.file): one for one in found}


def _choose(index: MemoryIndex, facts: Mapping[str, PlaceFacts], cards: list[Card], asked: Mapping[str, str]) -> list[Card]:
    """Return the cards that fit the filters of an address."""
    kind, by, source, use, state = (asked.get(name, "") for name in FILTERS)
    if not any((kind, by, source, use, state)):
        return cards
    states = {card.place.id: card.place for card in cards} if state else {}
    evidence = {id: index.evidence_of(place) for id, place in states.items()}
    return [
        card
        for card in cards
        if (not kind or (card.header.type or "none") == kind)
        and (not source or card.place.origin == source)
        and (not by or author_of(facts[card.place.id], card.place, card.header.file) == by)
        and (not state or evidence_state(evidence[card.place.id], card) == state)
        and (use != "never" or not index.recalls(card.place, facts[card.place.id], card.header.file).times)
    ]


def evidence_state(evidence: Mapping[str, Freshness], card: Card) -> str:
    found = evidence.get(card.header.file)
    return found.state if found is not None else "none"


def filters(words: Words, index: MemoryIndex, request: Request, listed: Listed) -> Html:
    """Return the filters beside the list, each with how many memories it leaves."""
    asked = request.query_params
    within = listed.every if listed.chosen is None else [card for card in listed.every if card.place.id == listed.chosen.id]
    counts = {place.id: index.counts(place) for place in listed.places}
    totals = {id: counted.kinds.total() for id, counted in counts.items()}
    projects = [("", words("All projects"), len(listed.every))]
    projects += [(place.id, place_name(place), totals[place.id]) for place in listed.places if totals[place.id]]
    chosen = [counts[listed.chosen.id]] if listed.chosen is not None else list(counts.values())
    kinds = sum((one.kinds for one in chosen), Counter[str]())
    authors = sum((one.authors for one in chosen), Counter[str]())
    never = sum(one.never for one in chosen)
    trash = tag("li", None, tag("a", {"href": _only(request, "/memories/trash")}, words("Trash")))
    doubles = tag("li", None, tag("a", {"href": _only(request, "/memories/duplicates")}, words("likely duplicates")))
    unused = _filter(request, "use", "never", words("never recalled"), never, asked.get("use") == "never")
    return tag(
        "nav",
        {"class": "side", "aria-label": words("Filters")},
        _group(words("Project"), [_filter(request, "project", *row, asked.get("project", "") == row[0]) for row in projects]),
        _group(
            words("Type"),
            [
                _filter(request, "type", kind, words(labels.MEMORY_TYPES[kind]), kinds[kind], asked.get("type") == kind)
                for kind in (*KINDS, "none")
                if kinds[kind]
            ],
        ),
        _group(
            words("Evidence"),
            [
                _filter(request, "evidence", state, words(labels.EVIDENCE[state]), count, asked.get("evidence") == state)
                for state, count in _count_evidence(index, within)
            ],
        ),
        _group(
            words("Written by"),
            [
                _filter(request, "by", by, author_name(words, by), count, asked.get("by") == by)
                for by, count in authors.most_common()
            ],
        ),
        _group(words("Tidy"), [doubles, unused if never else None, trash]),
    )


def _count_evidence(index: MemoryIndex, cards: list[Card]) -> list[tuple[str, int | None]]:
    """Return the states of evidence with their counts. In a large list they are not counted, because each count reads files."""
    if len(cards) > MOST_COUNTED:
        return [(state, None) for state in EVIDENCE]
    evidence = {id: index.evidence_of(place) for id, place in {card.place.id: card.place for card in cards}.items()}
    counts = Counter(evidence_state(evidence[card.place.id], card) for card in cards)
    return [(state, counts[state]) for state in EVIDENCE if counts[state]]


def _only(request: Request, path: str) -> str:
    project = request.query_params.get("project", "")
    return f"{path}?project={quote(project, safe='')}" if project else path


def _group(title: str, rows: Sequence[Html | None]) -> Html | None:
    return join((tag("h3", None, title), tag("ul", None, rows))) if any(rows) else None


def _filter(request: Request, name: str, value: str, label: str, count: int | None, current: bool) -> Html:
    """Return a filter. The one in force leads to the list without it."""
    keep = None if current else value or None
    shown = tag("span", None, f"{count:,}") if count is not None else None
    href = f"/memories{query(request, **{name: keep, 'page': None, 'edit': None, 'whole': None})}"
    return tag(
        "li",
        None,
        tag(
            "a",
            {"href": href, "aria-current": "true" if current else None},
            bdi(label),
            shown,
        ),
    )
