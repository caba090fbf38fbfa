"""The trash: removed memories to restore, and decided proposals that can wait again."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..memory.store.modes import Decision
from .html import Attribute, Html, bdi, cut, join, tag
from .inbox_view import BACK, proposal_json
from .memory_changes import RESTORE
from .memory_forms import button, change_form, memory_page
from .memory_list import author_name, place_name, version_line
from .memory_places import Place
from .numbers import ago
from .site import Site
from .words import Words, words_for

MOST_TRASH = 500


def routes(site: Site) -> list[Route]:
    def trash(request: Request) -> Response:
        return _trash(site, request)

    return [Route("/memories/trash", trash)]


def _trash(site: Site, request: Request) -> Response:
    words, index, watch = words_for(request), site.memories, site.look("memories:")
    wanted = request.query_params.get("project")
    places = [place for place in index.places.all() if place.own and (not wanted or place.id == wanted)]
    found = index.trash(places)
    rows = []
    for place, version in found[:MOST_TRASH]:
        who = version_line(words, version)
        fields = {"place": place.id, "file": version.file, "version": "", "digest": ""}
        label: dict[str, Attribute] = {"class": "btn sm", "aria-label": words("Restore {name}", name=version.name)}
        restore = change_form(RESTORE, fields, button(words("Restore"), label))
        line = tag(
            "div",
            None,
            tag("b", None, bdi(version.name)),
            tag(
                "span",
                {"class": "soft small"},
                " ",
                bdi(place_name(place)),
                " · ",
                who,
                " · ",
                ago(words, version.time, site.clock()),
            ),
        )
        rows.append(tag("li", {"class": "trow"}, line, None if site.read_only else restore))
    title = words("Trash")
    listing = (
        tag("div", {"class": "panel"}, tag("ul", {"class": "list"}, rows))
        if rows
        else tag("div", {"class": "empty"}, words("The trash is empty."))
    )
    decided = index.decided(places)
    body = join(
        (
            tag("p", {"class": "crumb"}, tag("a", {"href": "/memories"}, words("Memories"))),
            tag("h1", None, title),
            tag(
                "p",
                {"class": "soft small"},
                words("Removed memories stay here until the history drops them. Forgetting a subject removes them for good."),
            ),
            listing,
            _decided(site, words, decided),
        )
    )
    data = {
        "trash": [{"project": place.id, "file": one.file, "name": one.name, "time": one.time} for place, one in found],
        "decided": [proposal_json(place, one.proposal) | {"accepted": one.accepted} for place, one in decided],
    }
    return memory_page(site, request, title=title, body=body, data=data, watch=watch)


def _decided(site: Site, words: Words, decided: list[tuple[Place, Decision]]) -> Html | None:
    """Return the proposals that were accepted or refused, each with a way to let it wait again."""
    if not decided:
        return None
    rows = []
    for place, one in decided:
        name = cut(one.proposal.name, 120)
        label: dict[str, Attribute] = {"class": "btn sm", "aria-label": words("Let {name} wait again", name=name)}
        again = change_form(BACK, {"ids": one.proposal.id}, button(words("Let it wait again"), label))
        verdict = words(
            "proposed by {who}, accepted" if one.accepted else "proposed by {who}, refused",
            who=author_name(words, one.proposal.why.who),
        )
        about = tag(
            "span",
            {"class": "soft small"},
            " ",
            bdi(place_name(place)),
            " · ",
            verdict,
            " · ",
            ago(words, one.time, site.clock()),
        )
        rows.append(
            tag("li", {"class": "trow"}, tag("div", None, tag("b", None, bdi(name)), about), None if site.read_only else again)
        )
    head = tag("h2", {"class": "day"}, words("Decided proposals"))
    return join((head, tag("div", {"class": "panel"}, tag("ul", {"class": "list"}, rows))))
