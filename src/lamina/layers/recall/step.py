"""Recall in a turn: memories that help stand beside the person's message (Q1–Q8).

    bring    before a call: the ranker's choice beside a message no answer has seen; a model's choice behind the results that came since

The ranker is awaited: it takes milliseconds. A model never is (selecting.py). What is brought is one attachment, entered with its event
in one write before the request leaves, always behind everything that was said, so nothing that was sent changes. A crash leaves both,
neither, or the attachment without the event: then only why it is there is not known. What cannot be read is one sentence for the person.
"""

from __future__ import annotations

import time

from ...conversation.state import Conversation
from ...conversation.window.count import appended
from ...conversation.window.features import measure_all
from ...core.blocks import Wire, text
from ...core.errors import DiskError
from ...core.records import Attachment, Event, new_id
from ...memory.recall.library import MemoryLibrary
from ...memory.recall.plan import (
    KIND,
    RecallQuestion,
    SeenMemories,
    SeenMemoriesTracker,
    find_question,
    has_surfaced,
    reason_to_skip,
)
from ...memory.recall.selection import RecallChoice, SurfacedMemory, choose_by_ranker
from .state import EVENT, RecallState, leave_selection, memory_scopes_of


def bring(c: Conversation) -> None:
    state = c.layer_state(RecallState)
    items = c.log.view.items
    asked = find_question(items)
    if state.held is not None:
        from .model_selector import put_in_held

        put_in_held(c, state, asked)
    if asked is None or has_surfaced(items, asked.message):
        return
    again = state.message == asked.message
    if not again:
        leave_selection(c)
        state.message = asked.message
    seen = seen_in(c, state)
    if (why := reason_to_skip(asked, seen, c.policy.surfacing)) is not None:
        if not again:
            tell(c, asked.message, RecallChoice(), skipped=why)
    elif c.settings.recall_selector == "local" or not (again or _begin(c, state, asked, seen)):
        _now(c, state, asked, seen, silent=again)


def _begin(c: Conversation, state: RecallState, asked: RecallQuestion, seen: SeenMemories) -> bool:
    """Whether a model was asked; what that takes is loaded then."""
    from .model_selector import begin

    return begin(c, state, asked, seen)


def seen_in(c: Conversation, state: RecallState) -> SeenMemories:
    place = state.place
    within = [str(path) for path in (place.path, place.team) if path is not None] if place is not None else []
    if state.noticed is None:
        state.noticed = SeenMemoriesTracker()
    return state.noticed.follow(c.log.view, cwd=str(c.cwd), within=within)


# The ranker, at once


def _now(c: Conversation, state: RecallState, asked: RecallQuestion, seen: SeenMemories, *, silent: bool) -> None:
    place, began = memory_scopes_of(c, state), time.perf_counter()
    if place is None:
        return
    try:
        with MemoryLibrary.open(place, settings=c.settings, project=state.project, after=state.looked) as memory:
            choice = choose_by_ranker(memory, asked, seen, c.policy.surfacing)
            state.looked = memory
    except (DiskError, OSError) as error:
        c.notify_once(f"{error} No memories are brought to messages until then.")
        return
    if choice.brought or not silent:
        enter(c, asked.message, choice, seconds=time.perf_counter() - began)


# What is entered


def enter(c: Conversation, message: str, choice: RecallChoice, *, seconds: float | None = None) -> None:
    brought = _that_fit(c, choice.brought)
    if not brought:
        tell(c, message, choice._replace(brought=()), seconds=seconds)
        return
    uuid, parent, now = c.head()
    facts = {"memories": [each.facts for each in brought]}
    attachment = Attachment(uuid, parent, now, KIND, tuple(text(each.text) for each in brought), facts=facts)
    told = _told(message, choice._replace(brought=brought), seconds=seconds) | {"attachment": uuid}
    c.append([attachment, Event(new_id(), uuid, now, EVENT, told)])


def _that_fit(c: Conversation, brought: tuple[SurfacedMemory, ...]) -> tuple[SurfacedMemory, ...]:
    """A small window takes fewer: what helps must not be what fills it."""
    count, kept = c.count, list[SurfacedMemory]()
    for each in brought:
        more = appended(count, measure_all((text(each.text),), c.memo))
        if more.judged < c.limits.blocking:
            count = more
            kept.append(each)
    return tuple(kept)


def tell(c: Conversation, message: str, choice: RecallChoice, *, skipped: str = "", seconds: float | None = None) -> None:
    c.record_event(EVENT, _told(message, choice, skipped=skipped, seconds=seconds))


def _told(message: str, choice: RecallChoice, *, skipped: str = "", seconds: float | None = None) -> Wire:
    told: Wire = {
        "message": message,
        "files": [each.file for each in choice.brought],
        "why": [each.why for each in choice.brought],
        "bytes": sum(len(each.text.encode("utf-8", "replace")) for each in choice.brought),
        "by": choice.by,
    }
    more = {"model": choice.model, "instead_of_model": choice.instead, "skipped": skipped}
    told |= {name: value for name, value in more.items() if value}
    return told if seconds is None else told | {"ms": round(seconds * 1000, 1)}
