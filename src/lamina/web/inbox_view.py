"""The inbox: proposed changes of memory, each with its reason, the message it came from and the difference; accept, edit or refuse.
Below them are recent changes by MCP clients, which are in use and can be undone.

A decision goes through the same modes and journal as `lamina inbox`. Invariants: a form carries the digest of the proposal that it
shows; an undo restores the memory byte for byte, and the proposal waits again. The last decisions are
kept on disk, so they can be undone after a restart too: the trash lists them.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from ..core.errors import InputError
from ..language.text import Text, encodable
from ..memory.recall.library import ScopeName
from ..memory.store.change_sets import SINCE, ClientChange
from ..memory.store.contract import ChangeReason, Saved
from ..memory.store.modes import Decision, Proposal
from ..memory.store.topic import read_topic
from . import labels
from .changes import Done, Fields, Undo, change_route, digest
from .diff import diff_unified, whole_text
from .html import Child, Html, bdi, cut, join, tag
from .memory_changes import bound, kind_of, with_notices
from .memory_conflicts import find_conflict, look_again
from .memory_forms import button, change_form, editor_fields, plain
from .memory_list import author_name, place_name
from .memory_places import Place
from .numbers import ago
from .page import query
from .quotes import message_link
from .site import Site
from .words import Words

ACCEPT, EDIT, REFUSE, BACK, UNDO = (f"/changes/inbox/{name}" for name in ("accept", "edit", "refuse", "back", "undo"))
MOST_SHOWN = 50


def routes(site: Site) -> list[Route]:
    runs = {ACCEPT: _accept, EDIT: _edit, REFUSE: _refuse, BACK: _back, UNDO: _undo}
    return [change_route(site, path, bound(site, run)) for path, run in runs.items()]


def token(proposal: Proposal) -> str:
    """Return what a form carries: the id and the digest of a proposal, which may be renewed under the same id."""
    return f"{proposal.id}:{digest(msgspec.json.encode(proposal, enc_hook=encodable))}"


def _asked(site: Site, words: Words, fields: Fields) -> list[tuple[Place, list[Proposal]]]:
    """Return the proposals that a form is about, by place, if they are all as it shows them."""
    waiting = {proposal.id: (place, proposal) for place, proposal in site.memories.waiting()}
    found = list[tuple[Place, Proposal]]()
    for asked in fields.get("ids", "").split():
        id = asked.partition(":")[0]
        if id not in waiting:
            raise InputError("inbox", words("this proposal is already decided"))
        if token(waiting[id][1]) != asked:
            raise look_again(words, words("This proposal has a new difference."), "/memories")
        found.append(waiting[id])
    if not found:
        raise InputError("inbox", words("this proposal is already decided"))
    return [(place, [proposal for _, proposal in group]) for place, group in groupby(found, key=lambda one: one[0])]


# Decisions


def _accept(site: Site, words: Words, fields: Fields) -> Done:
    decided = list[Proposal]()
    for place, proposals in _asked(site, words, fields):
        with site.places.open(place) as memory:
            for proposal in proposals:
                try:
                    memory.accept(proposal.id)
                except InputError as error:
                    if decided:
                        raise InputError(
                            words("accepted {n}, then stopped", n=len(decided)), words(error).rstrip(".。")
                        ) from None
                    raise
                decided.append(proposal)
    return _done(words, Text("Accepted “{name}”.|Accepted {n} changes, from “{name}” on."), decided)


def _edit(site: Site, words: Words, fields: Fields) -> Done:
    """Save the user's own text in place of the proposal."""
    place, (proposal, *_) = _asked(site, words, fields)[0]
    with site.places.open(place) as memory:
        done = memory.save(
            proposal.name,
            type=kind_of(fields),
            description=fields.get("description", ""),
            body=plain(fields.get("body", "")),
            evidence=proposal.evidence,
            scope=_scope(proposal),
            why=ChangeReason(
                "user", "accepted with changes on the page", proposal.why.session, proposal.why.message, act=proposal.id
            ),
            base=proposal.base,
        )
        assert isinstance(done, Saved)  # a user's own memory never waits
        memory.store(_scope(proposal)).inbox.decide(proposal, accepted=True, edited=True)
    answer = _done(words, Text("Accepted “{name}”.|Accepted {n} changes, from “{name}” on."), [proposal], "/memories")
    return msgspec.structs.replace(answer, message=with_notices(words, answer.message, done))


def _refuse(site: Site, words: Words, fields: Fields) -> Done:
    decided = list[Proposal]()
    for place, proposals in _asked(site, words, fields):
        with site.places.open(place) as memory:
            for proposal in proposals:
                memory.reject(proposal.id)
        decided += proposals
    return _done(words, Text("Refused “{name}”.|Refused {n} changes, from “{name}” on."), decided)


def _scope(proposal: Proposal) -> ScopeName:
    return "team" if proposal.scope == "team" else "private"


def _done(words: Words, key: str, decided: list[Proposal], location: str = "") -> Done:
    name = decided[0].name if decided else ""
    return Done(words(key, n=len(decided), name=name), Undo(BACK, {"ids": " ".join(one.id for one in decided)}), location)


def _back(site: Site, words: Words, fields: Fields) -> Done:
    """Restore the memories as they were before the decisions, and let the proposals wait again."""
    decided = wait_again(site, words, fields.get("ids", "").split())
    kinds = {None if one.edited else ACCEPT if one.accepted else REFUSE for one in decided}  # another text is not proposed again
    url = kinds.pop() if len(kinds) == 1 else None
    undo = Undo(url, {"ids": " ".join(token(one.proposal) for one in decided)}) if url is not None else None
    return Done(words("The proposal waits again.|{n} proposals wait again.", n=len(decided)), undo)


def _undo(site: Site, words: Words, fields: Fields) -> Done:
    """Take back what a client changed in a memory."""
    asked = fields.get("id", "")
    place = next((place for place, change in site.memories.recent(site.clock()) if change.id == asked), None)
    if place is not None:
        with site.places.open(place) as memory:
            found = next((one for one in memory.recent_client_changes() if one.id == asked), None)
            if found is not None:
                if left := memory.undo(*found.acts).sentences:
                    raise InputError("undo", left[0].rstrip("."))
                return Done(words("Took back the change of “{name}” by {client}.", name=found.change.name, client=found.client))
    raise InputError("undo", words("it is too late; the history of the memory has its versions"))


def wait_again(site: Site, words: Words, ids: list[str]) -> list[Decision]:
    """Take decisions back, the newest first, and return them."""
    kept = {decision.proposal.id: (place, decision) for place, decision in site.memories.decided()}
    for one in reversed(ids):
        if one not in kept:
            raise InputError("undo", words("it is too late; the history of the memory has its versions"))
        _take_back(site, words, *kept[one])
    return [kept[one][1] for one in ids]


def _take_back(site: Site, words: Words, place: Place, decision: Decision) -> None:
    proposal = decision.proposal
    with site.places.open(place) as memory:
        why = ChangeReason("user", "undid a decision on the page")
        for change in memory.store(_scope(proposal)).take_back(proposal.id, why=why).left:
            if change.problem != SINCE:
                raise InputError(change.name, change.problem)
            file = f"team/{change.file}" if proposal.scope == "team" else change.file
            raise find_conflict(site, words, place, memory, {"file": file})


# What is shown


def inbox_panel(site: Site, words: Words, request: Request, chosen: Place | None) -> Html | None:
    """Return what waits for the user and what clients changed lately, above the memories; None if there is neither."""
    places = [chosen] if chosen is not None else None
    waiting, recent = site.memories.waiting(places), site.memories.recent(site.clock(), places)
    panels = [_waiting_panel(site, words, request, waiting) if waiting else None]
    panels += [_recent_panel(site, words, recent) if recent else None]
    return join(panels) if waiting or recent else None


def _recent_panel(site: Site, words: Words, recent: list[tuple[Place, ClientChange]]) -> Html:
    rows = []
    for place, one in recent[:MOST_SHOWN]:
        name, when = one.change.name, ago(words, one.time, site.clock())
        label = words("Undo the change of {name}", name=cut(name, 60))
        undo = change_form(UNDO, {"id": one.id}, button(words("Undo"), {"class": "btn sm", "aria-label": label}))
        about = [" · ", bdi(cut(one.client, 60)), " · ", bdi(place_name(place)), " · ", when]
        head = tag("p", None, tag("b", None, bdi(cut(name, 120))), tag("span", {"class": "soft"}, about))
        rows.append(tag("div", {"class": "prop"}, head, None if site.read_only else tag("div", {"class": "btns"}, undo)))
    title = tag("h2", {"id": "recent-title"}, words("Recent changes by MCP clients"))
    note = tag("span", {"class": "soft small"}, words("{n} memory; it is in use|{n} memories; all are in use", n=len(recent)))
    return tag("section", {"class": "panel inbox", "aria-labelledby": "recent-title"}, tag("header", None, title, note), rows)


def _waiting_panel(site: Site, words: Words, request: Request, waiting: list[tuple[Place, Proposal]]) -> Html:
    every = " ".join(token(proposal) for _, proposal in waiting)
    all_ = None
    if len(waiting) > 1 and not site.read_only:
        all_ = change_form(ACCEPT, {"ids": every}, button(words("Accept all"), {"class": "btn sm quiet", "id": "accept-all"}))
    editing = request.query_params.get("proposal", "")
    return tag(
        "section",
        {"class": "panel inbox", "aria-labelledby": "inbox-title", "data-live": "own" if editing else None},
        tag(
            "header",
            None,
            tag("h2", {"id": "inbox-title"}, words("Waiting for you")),
            tag(
                "span",
                {"class": "soft small"},
                words("{n} proposal; it is not in use yet|{n} proposals; none is in use yet", n=len(waiting)),
            ),
            tag("span", {"class": "sp"}),
            all_,
        ),
        [_row(site, words, request, place, proposal, editing == proposal.id) for place, proposal in waiting[:MOST_SHOWN]],
    )


def _row(site: Site, words: Words, request: Request, place: Place, proposal: Proposal, editing: bool) -> Html:
    verb = "remove" if proposal.action == "remove" else "change" if proposal.base else "new"
    head: list[Child] = [
        tag("b", None, bdi(cut(proposal.name, 120))),
        " ",
        tag("span", {"class": "soft"}, _origin(site, words, place, proposal, verb)),
    ]
    inner = _difference(proposal)
    if editing and not site.read_only:
        inner = change_form(
            EDIT,
            {"ids": token(proposal)},
            editor_fields(words, proposal.type or "", proposal.description, proposal.body, focus=True),
            tag(
                "div",
                {"class": "btns"},
                button(words("Save and accept"), {"class": "btn main"}),
                tag("a", {"class": "btn", "href": f"/memories{query(request, proposal=None)}"}, words("Cancel")),
            ),
            attributes={"class": "editor", "id": "editor"},
        )
    return tag(
        "div",
        {
            "class": "prop",
            "data-decide": True,
            "data-row": True,
            "tabindex": "-1",
            "id": f"proposal-{proposal.id}",
            "data-conflict": True,
        },
        tag("p", None, head),
        None if editing or site.read_only else _buttons(words, request, proposal, verb),
        tag("div", {"class": "shown"}, inner),
    )


def _difference(proposal: Proposal) -> Html | None:
    """Return what would change. Of a whole memory, its description and text are shown."""
    if proposal.action == "remove":
        gone = "\n".join(line[1:] for line in proposal.diff.splitlines()[2:] if line.startswith("-"))
        topic = read_topic(proposal.file, gone, 0)
        return whole_text(f"{topic.description}\n{topic.body}", added=False)
    if not proposal.base:
        return whole_text(f"{proposal.description}\n{proposal.body}", added=True)
    return diff_unified(proposal.diff)


def _origin(site: Site, words: Words, place: Place, proposal: Proposal, verb: str) -> Html:
    """Return who proposed what, from which message and why."""
    why = proposal.why
    link = message_link(site, words, why.session, why.message)
    dream = tag("a", {"href": f"/dreams/{place.id}/{why.dream}"}, words("the dream")) if why.dream else None
    parts: list[Child] = [
        words(labels.PROPOSED[verb], who=why.client or author_name(words, why.who)),
        " · ",
        bdi(place_name(place)),
    ]
    parts += [(" · ", one) for one in (link, dream) if one is not None]
    parts += [" · ", ago(words, proposal.time, site.clock())]
    parts += [words(": "), bdi(cut(words(why.why), 240))] if why.why else []
    parts += [tag("br"), words("It waits: {why}", why=words(proposal.waits))] if proposal.waits else []
    return join(parts)


def _buttons(words: Words, request: Request, proposal: Proposal, verb: str) -> Html:
    fields, name = {"ids": token(proposal)}, cut(proposal.name, 60)
    accept: dict[str, Any] = {"class": "btn sm main", "data-hotkey": "a", "aria-label": words("Accept {name}", name=name)}
    refuse: dict[str, Any] = {"class": "btn sm", "data-hotkey": "x", "aria-label": words("Refuse {name}", name=name)}
    href = f"/memories{query(request, proposal=proposal.id)}#proposal-{proposal.id}"
    label = words("Edit {name}", name=name)
    edit: dict[str, Any] = {"class": "btn sm", "href": href, "data-hotkey": "e", "aria-label": label}
    return tag(
        "div",
        {"class": "btns"},
        change_form(ACCEPT, fields, button(words("Accept"), accept)),
        tag("a", edit, words("Edit")) if verb != "remove" else None,
        change_form(REFUSE, fields, button(words("Keep it" if verb == "remove" else "Refuse"), refuse)),
    )


def proposal_json(place: Place, proposal: Proposal) -> dict[str, Any]:
    why = proposal.why
    return {
        "id": proposal.id,
        "token": token(proposal),
        "project": place.id,
        "name": proposal.name,
        "action": proposal.action,
        "time": proposal.time,
        "who": why.who,
        "client": why.client,
        "why": why.why,
        "waits": proposal.waits,
        "session": why.session,
        "message": why.message,
        "diff": proposal.diff,
    }


def recent_json(place: Place, one: ClientChange) -> dict[str, Any]:
    return {"id": one.id, "project": place.id, "name": one.change.name, "time": one.time, "client": one.client}
