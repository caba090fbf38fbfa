"""Memories: all of them as cards with filters and search, and one of them with its text, evidence, origin and history."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..history.places import NAMES
from ..memory.store.contract import MOST_READ, READ_IN_PART, MemoryVersion
from ..memory.store.evidence import read_anchor
from ..memory.store.topic import evidence_of, origin_of
from . import labels
from .diff import diff_texts
from .html import Attribute, Child, Html, bdi, cut, join, tag
from .inbox_view import inbox_panel, proposal_json, recent_json
from .markdown import markdown
from .memory_filters import filters, list_memories
from .memory_forms import button, change_form, editor_fields, memory_page
from .memory_index import MemoryIndex, OneMemory
from .memory_list import (
    FOUND,
    PAGE,
    Listed,
    address,
    author_name,
    card_json,
    card_list,
    evidence_mark,
    highlighted,
    page_number,
    place_name,
    recalled_text,
    version_line,
)
from .memory_places import Place
from .numbers import absolute, ago, size
from .page import fragment, opening, patience, problem, query, view_head
from .quotes import message_link
from .site import Site
from .words import Words, words_for

# A longer text shows its beginning first.
TEXT_CHARS = 20_000
MOST_VERSIONS = 30


def routes(site: Site) -> list[Route]:
    site.watches["memories"] = lambda _: site.memories.state()

    def memories(request: Request) -> Response:
        return _reading(site, request) or _memories(site, request, None)

    def one(request: Request) -> Response:
        return _reading(site, request) or _one(site, request)

    return [
        Route("/memories", memories),
        Route("/memories/{place}/{file:path}", one),
    ]


def _reading(site: Site, request: Request) -> Response | None:
    """Return a view that says so, while the memories are read for the first time, or made ready for a search or a filter."""
    request.state.watch = site.look("memories:")
    words, memories, asked = words_for(request), site.memories, request.query_params
    title, typed = words("What your agents remember"), bool(request.headers.get("x-lamina-part"))
    wait = patience(request, told=not typed or site.slow.is_begun("memories"))
    if not memories.is_read(wait):
        sentence = words("Reading the memories…")
    elif asked.get("q", "").strip() and not (
        memories.is_searchable() or site.slow.ask("memories", memories.make_searchable, wait)
    ):
        sentence = words("Searching…")
    elif asked.get("evidence") and not (
        memories.is_evidence_known() or site.slow.ask("evidence", memories.check_all_evidence, wait)
    ):
        sentence = words("Reading the memories…")
    else:
        return None
    if typed:
        return fragment(tag("div", {"id": FOUND, "data-again": True}, tag("p", {"class": "empty", "role": "status"}, sentence)))
    return opening(site, request, title=title, active="memories", head=view_head(title), sentence=sentence)


def _memories(site: Site, request: Request, opened: tuple[Place, OneMemory] | None) -> Response:
    words, index, now = words_for(request), site.memories, site.clock()
    listed = list_memories(index, request)
    if request.headers.get("x-lamina-part"):  # while the user types
        return fragment(card_list(words, site, request, listed, now, None))
    key = (opened[0].id, opened[1].topic.file) if opened is not None else None
    pane = _pane(site, words, request, *opened) if opened is not None else None
    body = join(
        (
            _head(words, site, listed, opened),
            _problems(words, index),
            inbox_panel(site, words, request, listed.chosen) if opened is None else None,
            tag(
                "div",
                {
                    "class": "mem" if pane is not None else "mem wide",
                    "data-live": "own" if "edit" in request.query_params else None,
                },
                filters(words, index, request, listed),
                card_list(words, site, request, listed, now, key),
                pane,
            ),
        )
    )
    number = page_number(request, listed, key)
    shown = listed.cards[(number - 1) * PAGE : number * PAGE]
    data: dict[str, Any] = {
        "memories": [card_json(index, listed.facts, card, listed.found.get((card.place.id, card.header.file))) for card in shown],
        "count": len(listed.cards),
        "waiting": [proposal_json(*one) for one in index.waiting()],
        "recent": [recent_json(*one) for one in index.recent(now)],
        "problems": index.problems,
    }
    if opened is not None:
        data = one_json(site, *opened)
    title = opened[1].topic.name if opened is not None else words("Memories")
    return memory_page(site, request, title=title, body=body, data=data, watch=request.state.watch)


def _head(words: Words, site: Site, listed: Listed, opened: tuple[Place, OneMemory] | None) -> Html:
    chosen = listed.chosen
    crumb = None
    title = words("What your agents remember")
    facts = [words("{n} memory|{n} memories", n=len(listed.every))]
    if chosen is not None:
        all_ = tag("a", {"href": "/memories"}, words("All projects"))
        crumb = join((all_, " / ", bdi(place_name(chosen))))
        title = words("What your agent remembers about {project}", project=chosen.name)
        facts = [words("{n} memory|{n} memories", n=sum(card.place.id == chosen.id for card in listed.every))]
        if chosen.own:
            facts.append(words("mode: {mode}", mode=site.places.settings_of(chosen).memory_mode["private"]))
        else:
            facts.append(words("read-only: {agent} keeps them", agent=NAMES[chosen.origin]))
    buttons = None
    if not site.read_only and (chosen is None or chosen.own):
        where = f"?project={chosen.id}" if chosen is not None else ""
        forget = f"/memories/forget{where}"
        if opened is not None and opened[0].own:
            forget = f"/memories/forget?{urlencode({'project': opened[0].id, 'subject': opened[1].topic.name})}"
        buttons = tag(
            "div",
            {"class": "btns"},
            tag("a", {"class": "btn", "href": forget}, words("Forget a subject")),
            tag("a", {"class": "btn main", "href": f"/memories/new{where}", "data-hotkey": "n"}, words("New memory")),
        )
    meta = tag("p", {"class": "meta"}, [tag("span", None, one) for one in facts])
    return view_head(bdi(title), meta, crumb=crumb, right=buttons)


def _problems(words: Words, index: MemoryIndex) -> Html | None:
    if not index.problems:
        return None
    lines = [tag("li", None, bdi(words(line))) for line in index.problems]
    return tag("div", {"class": "notice warn"}, words("Not everything could be read:"), tag("ul", None, lines))


# One memory


def _one(site: Site, request: Request) -> Response:
    words = words_for(request)
    place = site.places.find(request.path_params["place"])
    file = request.path_params["file"]
    found = site.memories.one(place, file) if place is not None else None
    if place is None or found is None:
        if place is not None and (now := site.memories.renamed(place, file)) and now != file:
            from starlette.responses import RedirectResponse

            return RedirectResponse(address(place, now) + query(request), 303)
        return _gone(site, request, words, place, file)
    return _memories(site, request, (place, found))


def _gone(site: Site, request: Request, words: Words, place: Place | None, file: str) -> Response:
    title, sentence, back = words("No such memory"), words("This memory is no longer on disk."), "/memories"
    if place is not None and any(one.file == file for where, one in site.memories.trash([place]) if where == place):
        title, sentence = words("In the trash"), words("This memory was removed. Restore it from the trash.")
        back = f"/memories/trash?project={place.id}"
    return problem(site, request, title, sentence, status=404, back=back, watch=request.state.watch)


def _pane(site: Site, words: Words, request: Request, place: Place, found: OneMemory) -> Html:
    editable = _may_change(site, place, found)
    editing = editable and "edit" in request.query_params
    topic = found.topic
    inner = _editor(words, request, place, found) if editing else _text(words, request, found)
    buttons: Child = None
    if editable and not editing:
        href = address(place, topic.file) + query(request, edit="1")
        edit = tag(
            "a",
            {"class": "btn sm", "href": href, "data-hotkey": "e", "id": "edit"},
            words("Edit"),
            tag("kbd", None, "E"),
        )
        remove = change_form(
            "/changes/memories/remove",
            {"place": place.id, "file": topic.file, "digest": found.digest, "back": f"/memories{query(request)}"},
            button(words("Remove"), {"class": "btn sm quiet", "id": "remove"}),
        )
        buttons = tag("div", {"class": "btns"}, edit, remove)
    close = tag(
        "a",
        {"class": "btn sm quiet close", "href": f"/memories{query(request, edit=None, whole=None)}"},
        words("Close"),
    )
    return tag(
        "article",
        {"class": "panel pane", "id": "memory", "aria-labelledby": "memory-title", "data-conflict": True},
        tag("header", None, tag("h2", {"id": "memory-title"}, bdi(topic.name)), tag("span", {"class": "sp"}), buttons, close),
        tag(
            "div",
            {"class": "body"},
            tag(
                "p",
                {"class": "notice"},
                words("{agent} keeps this memory. Lamina only reads it; change it with {agent}.", agent=NAMES[place.origin]),
            )
            if not place.own
            else None,
            tag("p", {"class": "notice"}, _why_only_read(words, found)) if found.only_read else None,
            inner,
            None if editing else _facts(site, words, request, place, found),
            None if editing else _history(site, words, request, place, found),
        ),
    )


def _may_change(site: Site, place: Place, found: OneMemory) -> bool:
    return place.own and not site.read_only and not found.only_read


def _why_only_read(words: Words, found: OneMemory) -> str:
    return words(labels.NOT_EDITABLE[found.only_read], size=size(found.size), part=size(MOST_READ))


def _text(words: Words, request: Request, found: OneMemory) -> Html:
    topic = found.topic
    text = topic.body.strip() or topic.description
    whole = "whole" in request.query_params
    rest = None
    if len(text) > TEXT_CHARS and not whole:
        left = size(len(text[TEXT_CHARS:].encode("utf-8", "replace")))
        text = text[:TEXT_CHARS]
        of = size(found.size - len(text.encode("utf-8", "replace"))) if found.only_read == "large" else left
        told = (
            words("Show the other {size}", size=left) if of == left else words("Show {size} of the other {of}", size=left, of=of)
        )
        rest = tag("p", None, tag("a", {"class": "btn sm", "href": query(request, whole="1")}, told))
    faults = [fault for fault in topic.problems if fault != READ_IN_PART]  # the notice above tells that
    problems = tag("p", {"class": "notice"}, bdi("; ".join(faults))) if faults else None
    lead = (
        tag("p", {"class": "soft"}, highlighted(topic.description, set())) if topic.description and topic.body.strip() else None
    )
    return tag("div", {"class": "text"}, problems, lead, markdown(text), rest)


def _facts(site: Site, words: Words, request: Request, place: Place, found: OneMemory) -> Html:
    topic, facts = found.topic, site.memories.facts(place)
    recalls = site.memories.recalls(place, facts, topic.file)
    version = facts.authors.get(topic.file)
    rows: list[tuple[str, Child]] = [
        (words("Project"), bdi(str(place.project or place_name(place)))),
        (words("Type"), words(labels.MEMORY_TYPES[topic.type or "none"])),
        (words("Evidence"), _evidence(site, words, request, place, found)),
        (words("Written"), _written(site, words, place, version) if place.own else NAMES[place.origin]),
        (words("Changed"), ago(words, topic.modified, site.clock())),
        (words("Recalled"), recalled_text(words, recalls, site.clock())) if place.own else ("", None),
        (words("Origin"), bdi(words(origin_of(topic)))) if origin_of(topic) else ("", None),
        (words("File"), tag("span", {"class": "mono"}, bdi(found.path))),
    ]
    return tag("dl", {"class": "kv"}, [(tag("dt", None, name), tag("dd", None, value)) for name, value in rows if name])


def _evidence(site: Site, words: Words, request: Request, place: Place, found: OneMemory) -> Html:
    named = evidence_of(found.topic)
    entries = tag("ul", {"class": "entries mono"}, [tag("li", None, _entry(entry)) for entry in named]) if named else None
    stale = found.evidence is not None and found.evidence.state == "stale"
    changed = tag("summary", None, words("Show what changed"))
    load = f"{address(place, found.topic.file)}/changed-evidence"
    show = tag("details", {"data-load": load, "id": "evidence"}, changed) if stale else None
    check = None
    if stale and _may_change(site, place, found):
        check = change_form(
            "/changes/memories/check",
            _form_fields(request, place, found),
            button(words("Mark as checked"), {"class": "btn sm", "id": "check"}),
        )
    return join((evidence_mark(words, found.evidence, bool(named)), entries, show, check))


def _entry(entry: str) -> Html:
    """Return an entry without the digest, which is on hover: people read the path."""
    anchor = read_anchor(entry)
    if anchor is None or not anchor.digest:
        return bdi(entry)
    return tag("bdi", {"title": entry}, entry.removesuffix(f"@{anchor.digest}"))


def _written(site: Site, words: Words, place: Place, version: MemoryVersion | None) -> Html:
    """Return who wrote a memory, why, and the message it came from as a link."""
    if version is None or version.why is None:
        return join((author_name(words, "outside"),))
    why = version.why
    reason = join((words(": "), bdi(cut(words(why.why), 160)))) if why.why else None
    link = message_link(site, words, why.session, why.message)
    dream = tag("a", {"href": f"/dreams/{place.id}/{why.dream}"}, words("the dream")) if why.dream else None
    return join((author_name(words, why.who), (" · ", link) if link else None, (" · ", dream) if dream else None, reason))


def _history(site: Site, words: Words, request: Request, place: Place, found: OneMemory) -> Html | None:
    versions = site.memories.history(place, found.topic.file)
    if not versions:
        return None
    texts = [text for _, text in versions]
    rows = []
    for at, (version, text) in enumerate(versions[:MOST_VERSIONS]):
        before = next((older for older in texts[at + 1 :] if older is not None), None)
        diff = diff_texts(before, text) if before is not None and text is not None else None
        fields = {**_form_fields(request, place, found), "version": version.id}
        restore = None
        if _may_change(site, place, found) and text is not None and at and version.digest != found.digest:
            told = words("Restore the version of {when}", when=absolute(words, version.time))
            label: dict[str, Attribute] = {"class": "btn sm quiet", "aria-label": told}
            restore = change_form("/changes/memories/restore", fields, button(words("Restore"), label))
        why = words(version.why.why) if version.why is not None else ""
        line = tag(
            "div",
            None,
            tag("span", None, version_line(words, version)),
            tag(
                "span",
                {"class": "soft"},
                " · ",
                ago(words, version.time, site.clock()),
                (words(": "), bdi(cut(why, 200))) if why else None,
            ),
            diff,
        )
        rows.append(tag("li", None, line, restore))
    more = (
        tag("p", {"class": "soft small"}, words("{n} older change|{n} older changes", n=len(versions) - MOST_VERSIONS))
        if len(versions) > MOST_VERSIONS
        else None
    )
    return join((tag("h3", None, words("History")), tag("ol", {"class": "hist"}, rows), more))


def _form_fields(request: Request, place: Place, found: OneMemory) -> dict[str, str]:
    """Return what each form of a memory carries: the file as it is shown, and the view to go back to."""
    back = address(place, found.topic.file) + query(request, edit=None)
    return {"place": place.id, "file": found.topic.file, "digest": found.digest, "back": back}


def _editor(words: Words, request: Request, place: Place, found: OneMemory) -> Html:
    topic, fields = found.topic, _form_fields(request, place, found)
    cancel = tag("a", {"class": "btn", "href": fields["back"]}, words("Cancel"))
    return change_form(
        "/changes/memories/edit",
        fields,
        editor_fields(words, topic.type or "", topic.description, topic.body, focus=True),
        tag("div", {"class": "btns"}, button(words("Save"), {"class": "btn main", "id": "edit"}), cancel),
        attributes={"class": "editor", "id": "editor"},
    )


def one_json(site: Site, place: Place, found: OneMemory) -> dict[str, Any]:
    topic, evidence = found.topic, found.evidence
    return {
        "url": address(place, topic.file),
        "project": place.id,
        "origin": place.origin,
        "file": topic.file,
        "path": found.path,
        "name": topic.name,
        "type": topic.type,
        "description": topic.description,
        "body": topic.body,
        "digest": found.digest,
        "modified": topic.modified,
        "evidence": {"state": evidence.state, "why": evidence.why, "entries": evidence_of(topic)} if evidence else None,
        "recalled": site.memories.recalls(place, site.memories.facts(place), topic.file).times,
        "history": [
            {
                "id": one.id,
                "time": one.time,
                "action": one.action,
                "who": one.why.who if one.why else None,
                "why": one.why.why if one.why else "",
            }
            for one, _ in site.memories.history(place, topic.file)
        ],
    }
