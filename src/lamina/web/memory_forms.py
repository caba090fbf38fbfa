"""The forms of memories, and the page for a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..memory.store.topic import KINDS
from . import labels
from .changes import Fields
from .html import Attribute, Child, Html, join, tag
from .memory_list import place_name
from .page import page
from .site import Site
from .words import Words, words_for


def routes(site: Site) -> list[Route]:
    def new(request: Request) -> Response:
        return _new(site, request)

    return [Route("/memories/new", new)]


def memory_page(
    site: Site, request: Request, *, title: str, body: Html, data: Any, watch: Mapping[str, str] | None = None
) -> Response:
    return page(
        site,
        request,
        title=title,
        active="memories",
        body=body,
        data=data,
        watch=watch if watch is not None else site.look("memories:"),
    )


def change_form(url: str, fields: Fields, *children: Child, attributes: dict[str, Attribute] | None = None) -> Html:
    """Return a form that frame.js sends with the secret."""
    hidden = [tag("input", {"type": "hidden", "name": name, "value": value}) for name, value in fields.items()]
    return tag("form", {"data-change": True, "action": url, "method": "post", **(attributes or {})}, hidden, children)


def button(label: str, attributes: dict[str, Attribute]) -> Html:
    return tag("button", {"type": "submit", **attributes}, label)


def plain(text: str) -> str:
    """Browsers send a form's line breaks as CR LF."""
    return text.replace("\r\n", "\n")


def editor_fields(words: Words, kind: str, description: str, body: str, *, focus: bool = False) -> Html:
    """Return the fields that an edit, a new memory and a proposal share. With `focus`, the first one for a text gets the focus."""
    kinds = (*(() if kind else ("",)), *KINDS)
    options = [tag("option", {"value": one, "selected": one == kind}, words(labels.MEMORY_TYPES[one or "none"])) for one in kinds]
    return join(
        (
            tag("label", None, words("Type"), tag("select", {"name": "type", "class": "pick"}, options)),
            tag(
                "label",
                None,
                words("Description, one line"),
                tag("input", {"name": "description", "value": description, "dir": "auto", "autofocus": focus}),
            ),
            tag(
                "label",
                None,
                words("Text"),
                # The first line break of a text area is dropped by browsers.
                tag("textarea", {"name": "body", "rows": 12, "dir": "auto", "spellcheck": "false"}, "\n", body),
            ),
        )
    )


def _new(site: Site, request: Request) -> Response:
    words, index = words_for(request), site.memories
    places = [place for place in index.places.all() if place.own]
    here = index.places.here()
    chosen = request.query_params.get("project") or (here.id if here is not None else "")
    options = [tag("option", {"value": place.id, "selected": place.id == chosen}, place_name(place)) for place in places]
    title = words("New memory")
    form = change_form(
        "/changes/memories/new",
        {},
        tag("label", None, words("Project"), tag("select", {"name": "place", "class": "pick"}, options)),
        tag(
            "label",
            None,
            words("Name"),
            tag("input", {"name": "name", "required": True, "dir": "auto", "autofocus": True}),
        ),
        editor_fields(words, "project", "", ""),
        tag(
            "div",
            {"class": "btns"},
            button(words("Save"), {"class": "btn main"}),
            tag("a", {"class": "btn", "href": "/memories"}, words("Cancel")),
        ),
        attributes={"class": "editor", "id": "editor"},
    )
    off = tag("p", None, words("You are looking at someone else's files. Changes are off.")) if site.read_only else None
    body = tag(
        "div",
        {"class": "narrow", "data-live": "own", "data-conflict": True},
        tag("p", {"class": "crumb"}, tag("a", {"href": "/memories"}, words("Memories"))),
        tag("h1", None, title),
        off or form,
    )
    return memory_page(site, request, title=title, body=body, data={"projects": [place.id for place in places]})
