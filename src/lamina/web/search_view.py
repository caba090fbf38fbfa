"""Search over memories and sessions of all agents, ranked in one list. Each result opens at its place.

A home that is searched for the first time is read in the background; the view says how far it is and shows what is known.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core.settings import Settings
from ..history.catalogue import Catalogue, day_words
from ..history.places import NAMES
from ..history.query import (
    NO_WORDS,
    SearchedFile,
    SearchResult,
    list_searched_memories,
    list_searched_sessions,
    search,
    search_index,
)
from ..language.terms import excerpt_range, matches
from ..language.text import Text
from . import labels
from .conversation import turn_address
from .html import Child, Html, bdi, cut, join, tag
from .memory_list import address_of
from .numbers import ago
from .page import opening, page, patience, search_box, view_head, wants_json
from .session_index import Listing
from .site import Site
from .words import Words, words_for

RESULTS = 30
SHOWN_CHARS, BEFORE_CHARS = 320, 120
# Characters of the words that tell which message of a turn was found.
SHOW_CHARS = 80
# Characters of a query; a longer one is a document, and the address would not hold it.
MOST_QUERY = 2_000
# Who wrote a text. A transcript may name any other role or type.
# Markdown signs that would separate the words of a result.
MARKUP = re.compile(r"\*\*|`+|(?<!\S)#{1,6}(?=\s)")


class SearchedFiles:
    """The files that a search of all projects looks in. Sessions are listed again when one has changed, memories likewise."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._sessions: tuple[Listing | None, Mapping[int, SearchedFile]] = (None, {})
        self._memories: tuple[Any, Mapping[int, SearchedFile], list[str]] = (None, {}, [])
        self._listing = threading.Lock()

    def listed(self, catalogue: Catalogue, settings: Settings, unread: list[str]) -> dict[int, SearchedFile]:
        listing = self._site.index.listing
        if self._sessions[0] is not listing:
            self._sessions = (listing, list_searched_sessions(self._site.index.by_number()))
        _, memories, told = self._listed_memories(catalogue, settings)
        unread += [*listing.unread, *told]
        return {**self._sessions[1], **memories}

    def _listed_memories(self, catalogue: Catalogue, settings: Settings) -> tuple[Any, Mapping[int, SearchedFile], list[str]]:
        with self._listing:
            state = (self._site.memories.files_state(), settings)
            if self._memories[0] != state:
                told: list[str] = []
                found = list_searched_memories(catalogue, settings, self._site.environ, None, told)
                self._memories = (state, found, told)
            return self._memories

    def prepare(self) -> None:
        """List the memories, so that the next search need not."""
        settings = self._site.settings
        self._site.index.peek(lambda catalogue: self._listed_memories(catalogue, settings))


def routes(site: Site) -> list[Route]:
    files = SearchedFiles(site)
    site.memories.after_looks.append(files.prepare)

    def found(request: Request) -> Response:
        return _search(site, request, files)

    return [Route("/search", found)]


def _search(site: Site, request: Request, files: SearchedFiles) -> Response:
    words, asked = words_for(request), request.query_params
    query, exact = asked.get("q", "").strip()[:MOST_QUERY], asked.get("exact") == "1"
    here, unread, results = asked.get("here") == "1", list[str](), list[SearchResult]()
    # The search itself comes after the reading of files that changed.
    reading = site.index.current(wait=0 if site.index.listing.sessions else None).of
    watch = site.look("sessions:") if reading else None
    reading = site.index.listing.of
    if query and not reading:
        key = ("search", query, exact, here)
        found = site.slow.ask(key, lambda: _found(site, files, query, exact=exact, here=here), patience(request))
        if found is None:
            title, said = words("Search: {query}", query=query), words("Searching…")
            return opening(site, request, title=title, active="search", head=view_head(bdi(title)), sentence=said)
        results, unread = found.result()
    body = join(
        (
            _head(words, query, results, exact=exact),
            _form(words, query, exact=exact, here=here, read_only=site.read_only),
            tag(
                "p",
                {"class": "notice", "role": "status"},
                words(
                    "Lamina is reading {n} new session file. The search starts when it is done.|Lamina is reading {n} "
                    "new session files. The search starts when they are done.",
                    n=reading,
                ),
            )
            if reading
            else None,
            [tag("p", {"class": "notice"}, bdi(words(line))) for line in dict.fromkeys(unread) if line != NO_WORDS],
            _results(site, words, query, results, exact=exact) if query and not reading else None,
        )
    )
    rows = [_row(site, one, query, exact=exact) for one in results] if wants_json(request) else []
    data = {"query": query, "results": rows, "unread": unread, "reading": reading}
    return page(site, request, title=words("Search"), active="search", body=body, data=data, watch=watch)


def _found(site: Site, files: SearchedFiles, query: str, *, exact: bool, here: bool) -> tuple[list[SearchResult], list[str]]:
    """Return the results, and what could not be read."""
    settings, environ, unread = site.settings, site.environ, list[str]()
    if exact and not site.read_only:
        results = search(
            query, site.cwd, RESULTS, exact=True, everywhere=not here, settings=settings, environ=environ, notices=unread
        )
        return results, unread
    site.memories.look_later()

    def found(index: Catalogue) -> list[SearchResult]:
        where, held = (site.cwd, None) if here else (None, files.listed(index, settings, unread))
        return search_index(index, query, where, RESULTS, settings, environ, unread, files=held)

    return site.index.use(found), unread


def _row(site: Site, found: SearchResult, query: str, *, exact: bool) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__} | {"url": _address(site, found, query, exact=exact)}


def _address(site: Site, found: SearchResult, query: str, *, exact: bool) -> str:
    """Return where a result opens: a message at its turn, a memory on its page, a section of a larger file in the list."""
    if found.kind == "memory":
        return address_of(site.memories, found.path) or f"/memories?{urlencode({'q': found.title})}"
    start = f"/sessions/{found.origin}/{quote(site.index.listing.renamed.get(found.path, found.session_id), safe='')}"
    text = _body(found)
    shared = dict.fromkeys(text[start:end] for start, end in matches(text, query, exact=exact))
    return turn_address(start, found.turn, show=cut(" ".join(shared) or text, SHOW_CHARS))


def highlighted(text: str, query: str, *, exact: bool, most: int = SHOWN_CHARS) -> Html:
    """Return the part of a text that has most of the query's words, with the words marked."""
    line = " ".join((text if exact else MARKUP.sub("", text[: 200 * most]))[: 200 * most].split())
    begin, finish = excerpt_range(line, query, most, exact=exact)
    shown = line[begin:finish]
    children: list[Child] = ["…" if begin else None]
    at = 0
    for start, end in matches(shown, query, exact=exact):
        children += [shown[at:start], tag("mark", None, shown[start:end])]
        at = end
    return tag("bdi", None, *children, shown[at:], "…" if finish < len(line) else None)


def _head(words: Words, query: str, results: list[SearchResult], *, exact: bool) -> Html:
    order = (
        (Text("{n} result, newest first|{n} results, newest first"), Text("The newest result|The newest {n} results"))
        if exact
        else (Text("{n} result, best match first|{n} results, best match first"), Text("The best result|The best {n} results"))
    )
    text = words(order[len(results) >= RESULTS], n=len(results))
    count = tag("p", {"class": "meta", "role": "status"}, text) if results else None
    title = words("Search: {query}", query=query) if query else words("Search")
    return view_head(bdi(title), count)


def _form(words: Words, query: str, *, exact: bool, here: bool, read_only: bool) -> Html:
    def check(name: str, label: str, chosen: bool) -> Html:
        return tag(
            "label", {"class": "check"}, tag("input", {"type": "checkbox", "name": name, "value": "1", "checked": chosen}), label
        )

    return tag(
        "form",
        {"class": "bar2", "id": "filter", "data-auto": True, "action": "/search", "role": "search"},
        search_box(words, value=query),
        check("exact", words("Exact text, newest first"), exact) if not read_only else None,
        check("here", words("Only this directory"), here) if not read_only else None,
        tag("button", {"class": "btn"}, words("Search")),
    )


def _results(site: Site, words: Words, query: str, results: list[SearchResult], *, exact: bool) -> Html:
    if not results:
        key = (
            Text("Nothing matches “{query}”. Use other words.")
            if site.read_only or exact
            else Text("Nothing matches “{query}”. Use other words, or search for the exact text.")
        )
        return tag("div", {"class": "empty"}, tag("p", None, words(key, query=query)))
    rows = [_result(site, words, one, query, exact=exact) for one in results]
    return tag("div", {"class": "panel"}, tag("ol", {"class": "list found"}, rows))


def _result(site: Site, words: Words, found: SearchResult, query: str, *, exact: bool) -> Html:
    return tag(
        "li",
        None,
        tag(
            "a",
            {"class": "result", "href": _address(site, found, query, exact=exact), "data-row": True},
            tag(
                "span",
                {"class": "meta"},
                tag("b", None, highlighted(found.title, query, exact=exact) if found.title else words("Without a title")),
                tag("span", None, words(labels.SPEAKERS.get(found.speaker, labels.SPEAKERS["other"]))),
                tag("span", None, NAMES[found.origin]),
                ago(words, found.time, site.clock()) if found.time else None,
            ),
            tag("span", {"class": "txt"}, highlighted(_body(found), query, exact=exact)),
            _why(words, found, query, exact=exact),
        ),
    )


def _body(found: SearchResult) -> str:
    """Return the text of a result. The text of a memory begins with its name, which is the title of the row."""
    return found.text.removeprefix(found.title) if found.kind == "memory" else found.text


def _why(words: Words, found: SearchResult, query: str, *, exact: bool) -> Html:
    """Return which words of the query match. A message is also found by the one before it, and by its day."""
    for key, text in (
        (Text("Matches: {words}"), found.text),
        (Text("Matches in the name: {words}"), found.title if found.kind == "memory" else ""),
        (Text("Matches in the message before: {words}"), found.before),
        (Text("Matches its day: {words}"), day_words(found.time)),
    ):
        shared = list(dict.fromkeys(text[start:end].casefold() for start, end in matches(text, query, exact=exact)))
        if shared:
            quoted = (
                (" – ", highlighted(text, query, exact=exact, most=BEFORE_CHARS))
                if key == Text("Matches in the message before: {words}")
                else None
            )
            return tag("span", {"class": "soft small"}, words(key, words=", ".join(shared[:8])), quoted)
    return tag("span", {"class": "soft small"}, words("Matches in the text around it."))
