"""Memories that look alike, side by side, with the sentences that may contradict each other: merge, keep one, or keep both.

A merge is one act in the journal, and its undo takes both changes back. Pairs that the user called distinct are not shown again.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core.errors import InputError
from ..language.text import Text
from ..memory.memory import Memory
from ..memory.store.contract import ChangeReason
from ..memory.store.distinct import note_distinct
from ..memory.store.topic import Topic
from .changes import Done, Fields, Undo, change_route
from .duplicates_data import Pair, PairSearch
from .html import Html, bdi, cut, join, tag
from .markdown import markdown
from .memory_changes import DUPLICATES, REMOVE, bound, place_of, with_notices
from .memory_conflicts import look_again
from .memory_forms import button, change_form, memory_page
from .memory_list import address, author_name, place_name
from .memory_places import Place
from .numbers import ago
from .site import Site
from .words import Words, words_for

MERGE, TAKE_BACK, DISTINCT = (f"/changes/memories/{name}" for name in ("merge", "take-back", "distinct"))
BODY_CHARS = 1_500


def routes(site: Site) -> list[Route]:
    search = PairSearch(site.memories)
    site.watches["duplicates"] = lambda _: search.state()

    def duplicates(request: Request) -> Response:
        return _duplicates(site, search, request)

    runs = {MERGE: _merge, TAKE_BACK: _take_back, DISTINCT: _distinct}
    return [Route(DUPLICATES, duplicates), *(change_route(site, path, bound(site, run)) for path, run in runs.items())]


def _duplicates(site: Site, search: PairSearch, request: Request) -> Response:
    words, wanted, watch = words_for(request), request.query_params.get("project"), site.look("memories:", "duplicates:")
    places = [place for place in site.places.all() if not wanted or place.id == wanted]
    pairs, found, comparing = search.look(places)
    title = words("Likely duplicates")
    shown = [_pair(site, words, number, pair) for number, pair in enumerate(pairs)]
    body = join(
        (
            tag("p", {"class": "crumb"}, tag("a", {"href": "/memories"}, words("Memories"))),
            tag("h1", None, title),
            tag("p", {"class": "soft small"}, _counted(words, len(pairs), found)),
            tag(
                "p",
                {"class": "notice", "role": "status"},
                words("Comparing {n} memories. The pairs appear here once they are found.", n=comparing),
            )
            if comparing
            else None,
            shown
            or (
                None
                if comparing
                else tag("div", {"class": "empty"}, tag("p", None, words("No two private memories of a project look alike.")))
            ),
        )
    )
    data = {
        "pairs": [
            {
                "project": pair.place.id,
                "left": pair.left.file,
                "right": pair.right.file,
                "digests": pair.digests,
                "contradictions": pair.contradictions,
            }
            for pair in pairs
        ],
        "found": found,
        "comparing": comparing,
    }
    return memory_page(site, request, title=title, body=body, data=data, watch=watch)


def _counted(words: Words, shown: int, found: int) -> str:
    return (
        words("{n} pair|{n} pairs", n=found) if shown == found else words("The first {n} of {of} pairs", n=shown, of=f"{found:,}")
    )


def _pair(site: Site, words: Words, number: int, pair: Pair) -> Html:
    clashes = [
        tag("li", None, "“", bdi(cut(one, 200)), "” – “", bdi(cut(other, 200)), "”") for one, other in pair.contradictions[:5]
    ]
    return tag(
        "section",
        {
            "class": "panel pair",
            "data-decide": True,
            "data-row": True,
            "tabindex": "-1",
            "id": f"pair-{number}",
            "data-conflict": True,
        },
        _side(site, words, pair.place, pair.left),
        _side(site, words, pair.place, pair.right),
        tag("div", {"class": "clash warn"}, words("These sentences may contradict each other:"), tag("ul", None, clashes))
        if clashes
        else None,
        None if site.read_only else _buttons(words, pair),
    )


def _side(site: Site, words: Words, place: Place, topic: Topic) -> Html:
    version = site.memories.facts(place).authors.get(topic.file)
    who = "outside" if version is None or version.why is None else version.why.who
    return tag(
        "div",
        None,
        tag("h2", None, tag("a", {"href": address(place, topic.file)}, bdi(cut(topic.name, 120)))),
        tag("div", {"class": "text"}, markdown(topic.body.strip()[:BODY_CHARS] or topic.description)),
        tag(
            "p",
            {"class": "facts"},
            tag("span", None, ago(words, topic.modified, site.clock())),
            tag("span", None, author_name(words, who)),
            tag("span", None, bdi(place_name(place))),
        ),
    )


def _buttons(words: Words, pair: Pair) -> Html:
    left, right = pair.left, pair.right
    both = {"place": pair.place.id, "left": left.file, "right": right.file, "digests": " ".join(pair.digests)}
    merge: dict[str, Any] = {"class": "btn sm" if pair.contradictions else "btn sm main", "data-hotkey": "a"}

    def keep(side: str, above: str, gone: Topic, digest: str) -> Html:
        fields = {"place": pair.place.id, "file": gone.file, "digest": digest, "back": DUPLICATES}
        # On a narrow screen the two lie one above the other.
        label = (tag("span", {"class": "beside"}, words(side)), tag("span", {"class": "above"}, words(above)))
        return change_form(REMOVE, fields, tag("button", {"type": "submit", "class": "btn sm"}, label))

    return tag(
        "footer",
        {"class": "btns"},
        change_form(MERGE, both, button(words("Merge, keep every fact"), merge)),
        keep(Text("Keep left"), Text("Keep the upper one"), right, pair.digests[1]),
        keep(Text("Keep right"), Text("Keep the lower one"), left, pair.digests[0]),
        change_form(
            DISTINCT, {**both, "distinct": "1"}, button(words("Not duplicates"), {"class": "btn sm quiet", "data-hotkey": "x"})
        ),
    )


# Changes


def _topics(words: Words, memory: Memory, fields: Fields) -> tuple[Topic, Topic]:
    left, right = (memory.get(fields.get(side, "")) for side in ("left", "right"))
    if left is None or right is None:
        raise look_again(words, words("One of the two is no longer there."), DUPLICATES)
    return left, right


def _merge(site: Site, words: Words, fields: Fields) -> Done:
    """Give the left memory every sentence of the right one, and move that one to the trash."""
    from ..layers.l6_dream.tidy import merge_topics  # it compiles the patterns of dates in all languages

    place = place_of(site, words, fields)
    digests = fields.get("digests", "").split()
    with site.places.open(place) as memory:
        left, right = _topics(words, memory, fields)
        now = memory.digest(left.file), memory.digest(right.file)
        if [*now] != digests:
            raise look_again(words, words("One of the two has changed. Compare them again."), DUPLICATES)
        joined = merge_topics(left, right)
        why = ChangeReason("user", f"merged {right.name} into {left.name} on the page")
        done = memory.merge(
            left.file, right.file, body=joined.body, description=joined.description, type=left.type, base=now, why=why
        )
    undo = Undo(TAKE_BACK, {"place": place.id, "act": done.act})
    return Done(with_notices(words, words("Merged into “{name}”.", name=done.topic.name), done), undo, DUPLICATES)


def _take_back(site: Site, words: Words, fields: Fields) -> Done:
    place = place_of(site, words, fields)
    with site.places.open(place) as memory:
        done = memory.undo(fields.get("act", ""), why=ChangeReason("user", "undid a merge on the page"))
    if not done.back and not done.left:
        raise InputError("undo", words("it is too late; the history of the memory has its versions"))
    restored = words("Undone: {n} memory restored.|Undone: {n} memories restored.", n=len(done.back))
    return Done(" ".join([restored, *done.sentences]), None, DUPLICATES)


def _distinct(site: Site, words: Words, fields: Fields) -> Done:
    """Remember that two memories are distinct, or take that back."""
    place, distinct = place_of(site, words, fields), fields.get("distinct") == "1"
    with site.places.open(place) as memory:
        left, right = _topics(words, memory, fields)
        gated = memory.store("private")
        gated.check("user")
        note_distinct(gated.store, left.file, right.file, distinct=distinct)
    undo = Undo(DISTINCT, {"place": place.id, "left": left.file, "right": right.file, "distinct": "" if distinct else "1"})
    return Done(words("Noted: not duplicates." if distinct else "The pair is compared again."), undo, DUPLICATES)
