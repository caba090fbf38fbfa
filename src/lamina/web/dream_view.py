"""One dream as before and after: its changes, with the facts numbered on both sides, and the undo of each."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core.budget import limits_of
from ..layers.l6_dream.changes import DreamedFile, DreamFact
from ..layers.l6_dream.record import TURN_CHARS, DreamRecord
from ..memory.store.topic import read_topic
from . import labels
from .diff import diff_texts, whole_text
from .dream_data import ChangeGroup, DreamDetail, dreams_of, name_of, numbers_in, read_dream
from .dream_list import answer, dream_amount, dream_json, figure, running_panel
from .html import Child, Html, bdi, cut, join, tag
from .memory_forms import button, change_form
from .memory_list import place_name
from .memory_places import Place
from .numbers import absolute, length, money, tokens_apart
from .page import page, problem, view_head
from .site import Site
from .words import Words, words_for

UNDO, UNDO_ONE, REDO = (f"/changes/dreams/{name}" for name in ("undo", "undo-one", "redo"))
_SENTENCES = re.compile(r"(?<=[.!?;。！？；])\s+|\n+")


def routes(site: Site) -> list[Route]:
    def dream(request: Request) -> Response:
        return _dream(site, request)

    return [Route("/dreams/{place}/{dream}", dream)]


def _dream(site: Site, request: Request) -> Response:
    words, watch = words_for(request), site.look("dreams:", "memories:")
    place = site.places.find(request.path_params["place"])
    found = read_dream(site.memories, place, request.path_params["dream"]) if place is not None else None
    if place is None or found is None:
        title, sentence = words("No such dream"), words("This dream is no longer kept.")
        return problem(site, request, title, sentence, status=404, back="/dreams", watch=watch)
    record = found.record
    title = words("Dream of {when}", when=absolute(words, record.started))
    listed = dreams_of(site.memories, place)
    running = listed is not None and listed.running is not None and listed.running.id == record.id
    body = join(
        (
            _head(site, words, place, found, title, running=running),
            running_panel(site, words, listed) if running and listed is not None else _figures(site, words, place, found),
            [_group(site, words, place, found, group) for group in found.groups],
            _skipped(words, record),
            _turns(words, record) if not running else None,
        )
    )
    data = _json(place, found)
    return page(site, request, title=title, active="dreams", body=body, data=data, watch=watch)


def _head(site: Site, words: Words, place: Place, found: DreamDetail, title: str, *, running: bool) -> Html:
    record = found.record
    facts = [words(labels.DREAM_STARTERS[record.by])]
    facts += [] if running else [words(labels.DREAM_STATES[record.status])]  # the panel below tells the state
    if record.ended is not None and record.status != "undone":  # an undo writes its own time
        facts.append(length(words, record.ended - record.started))
    facts += [words(record.why)] if record.why else []
    undo, fields = None, {"place": place.id, "dream": record.id}
    if not site.read_only and found.can_undo:
        undo = change_form(UNDO, fields, button(words("Undo the whole dream"), {"class": "btn main", "id": "undo-dream"}))
    elif not site.read_only and found.can_redo:
        undo = change_form(REDO, fields, button(words("Apply again"), {"class": "btn main", "id": "redo-dream"}))
    crumb = join((tag("a", {"href": "/dreams"}, words("Dreams and background")), " / ", bdi(place_name(place))))
    meta = tag("p", {"class": "meta"}, [tag("span", None, bdi(one)) for one in facts])
    return view_head(title, meta, crumb=crumb, right=undo)


def _json(place: Place, found: DreamDetail) -> dict[str, Any]:
    changes = [{"file": one.file, "before": one.before, "after": one.after, "state": one.state} for one in found.files]
    facts = [{"number": fact.number, "text": fact.text, "file": fact.file, "now_in": fact.now_in} for fact in found.facts]
    return dream_json(place, found.record) | {"changes": changes, "facts": facts}


def _figures(site: Site, words: Words, place: Place, found: DreamDetail) -> Html:
    record = found.record
    waiting = sum(one.state == "waiting" for one in found.files)
    done = [group for group in found.groups if not {"waiting", "refused"} & {one.state for one in group.files}]
    sides = [(one.before is not None, one.after is not None) for group in done for one in group.files]
    memories = f"{sum(before for before, _ in sides)} → {sum(after for _, after in sides)}" if sides else "0"
    undone = words("undone") if sides and not found.active else ""
    facts = [fact for group in done for fact in group.facts]
    kept = sum(bool(fact.now_in) for fact in facts)
    index = "–" if record.index_lines is None else "{} → {}".format(*record.index_lines)
    limits = limits_of(site.places.settings_of(place))
    more = words("of {usd} a day", usd=money(limits.dollars)) if words.billing == "list" else tokens_apart(words, record.usage)
    return tag(
        "dl",
        {"class": "figs"},
        figure(words("Changed memories"), memories, undone),
        figure(words("Facts kept"), words("{n} of {of}", n=kept, of=f"{len(facts):,}") if facts else "–"),
        figure(words("Index"), index, words("lines") if index != "–" else ""),
        figure(words("Cost" if words.billing == "list" else "Use"), dream_amount(words, record), more),
        figure(words("Waits for you"), str(waiting), tag("a", {"href": "/memories"}, words("to the inbox")) if waiting else ""),
    )


def _group(site: Site, words: Words, place: Place, found: DreamDetail, group: ChangeGroup) -> Html:
    states = {one.state for one in group.files if one.before != one.after or one.state == "refused"}
    state = next((words(labels.CHANGE_STATES[one]) for one in ("waiting", "refused", "changed", "undone") if one in states), "")
    kept = sum(bool(fact.now_in) for fact in group.facts)
    lost = [tag("li", {"class": "warn"}, words("Not found in the result:"), " ", bdi(cut(fact.text, 300))) for fact in group.lost]
    again = (
        tag(
            "li",
            None,
            tag("span", {"class": "good"}, "✓ "),
            words("{n} fact found again in the result|{n} facts found again in the result", n=kept),
        )
        if kept
        else None
    )
    if "refused" in states:
        shown: Child = tag(
            "p", {"class": "soft pad"}, words("This proposal was refused or withdrawn. The memory was not changed.")
        )
    else:
        shown = _two(words, group, found.facts) if group.merged else _one(words, group.files[0], found.facts)
    return tag(
        "article",
        {"class": "panel ba", "id": f"change-{group.files[0].file}"},
        tag(
            "header",
            None,
            tag("h2", None, bdi(_group_title(words, group))),
            tag("span", {"class": "soft small"}, state),
            tag("span", {"class": "sp"}),
            None if site.read_only or found.record.status != "completed" else _undo_form(words, place, found, group),
        ),
        tag("ul", {"class": "fc"}, lost) if lost else None,
        shown,
        tag("ul", {"class": "fc"}, again) if again and "refused" not in states else None,
    )


def _undo_form(words: Words, place: Place, found: DreamDetail, group: ChangeGroup) -> Html | None:
    """Return the undo of a group; a proposal that waits is withdrawn."""
    files = [one for one in group.files if one.state in ("applied", "waiting") and one.before != one.after]
    fields = {"place": place.id, "dream": found.record.id}
    if not files:
        return None
    waits = all(one.state == "waiting" for one in files)
    label = words("Withdraw" if waits else "Put it back" if group.lost else "Undo this")
    fields |= {"files": "\n".join(one.file for one in files)}
    return change_form(UNDO_ONE, fields, button(label, {"class": "btn sm main" if group.lost and not waits else "btn sm"}))


def _group_title(words: Words, group: ChangeGroup) -> str:
    """Return what became of a group; a pending change is described as a proposal."""
    waits = any(one.state == "waiting" for one in group.files)
    if group.merged:
        return words(
            "{n} memory would become one|{n} memories would become one"
            if waits
            else "{n} memory became one|{n} memories became one",
            n=sum(one.before is not None for one in group.files),
        )
    one = group.files[0]
    if one.state == "refused":
        return name_of(one)
    if group.lost and one.after is not None and not waits:
        return words(
            "{n} fact was dropped from {name}|{n} facts were dropped from {name}", n=len(group.lost), name=cut(name_of(one), 100)
        )
    kind = "added" if one.before is None else "removed" if one.after is None else "changed"
    return words((labels.PROPOSED_CHANGES if waits else labels.CHANGES)[kind], name=cut(name_of(one), 100))


def _two(words: Words, group: ChangeGroup, facts: tuple[DreamFact, ...]) -> Html:
    before = [
        _slip(one.file, one.before, facts, None if one.before == one.after else one.file)
        for one in group.files
        if one.before is not None
    ]
    after = [_slip(one.file, one.after, facts, None) for one in group.files if one.after is not None]
    return tag(
        "div",
        {"class": "two"},
        tag("div", None, tag("h3", None, words("Before")), before),
        tag("div", None, tag("h3", None, words("After")), after),
    )


def _one(words: Words, one: DreamedFile, facts: tuple[DreamFact, ...]) -> Html:
    if not one.known:
        return tag("p", {"class": "soft pad"}, words("Its texts are no longer kept."))
    if one.before is None or one.after is None:
        text = one.after if one.after is not None else one.before
        topic = read_topic(one.file, text or "", 0)
        return tag("div", {"class": "pad"}, whole_text(f"{topic.description}\n{topic.body}", added=one.after is not None))
    return tag("div", {"class": "pad"}, diff_texts(one.before, one.after) or words("nothing to change"))


def _slip(file: str, text: str | None, facts: tuple[DreamFact, ...], own: str | None) -> Html:
    """Return a memory with its facts marked and numbered. `own` is the file that its facts come from; None after the dream."""
    topic = read_topic(file, text or "", 0)
    inside = [fact for fact in facts if (fact.file == own if own is not None else fact.now_in == file)]
    parts: list[Child] = []
    for sentence in _SENTENCES.split(topic.body.strip() or topic.description):
        numbers = numbers_in(sentence, inside)
        gone = any(fact.number in numbers and not fact.now_in for fact in inside)
        style = "gone" if gone else "kept" if numbers else None
        sups = tag("sup", None, ", ".join(map(str, numbers))) if numbers else None
        parts += [tag("span", {"class": style}, bdi(cut(sentence, 600)), sups), " "]
    return tag("div", {"class": "slip"}, tag("b", None, bdi(topic.name)), tag("p", None, parts))


def _skipped(words: Words, record: DreamRecord) -> Html | None:
    if not record.skipped:
        return None
    lines = [tag("li", None, bdi(words("{file}: {why}", file=one.file, why=words(one.why)))) for one in record.skipped[:50]]
    return tag("div", {"class": "notice"}, words("Left unchanged:"), tag("ul", None, lines))


def _turns(words: Words, record: DreamRecord) -> Html | None:
    if not record.turns:
        return None
    rows = [answer(words, turn, TURN_CHARS) for turn in record.turns]
    return tag(
        "details",
        {"class": "panel", "id": "answers"},
        tag("summary", {"class": "pad"}, words("What it answered")),
        tag("ol", {"class": "turnlist"}, rows),
    )
