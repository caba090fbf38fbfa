"""Recall in a turn: add relevant memories to the user's message (Q1–Q8).

    bring    before a call: add the ranker's choice to a new user message, and a model's choice after the newest tool results

The ranker takes milliseconds, so the call waits for it; it never waits for a model (model_selector.py). The memories are one
attachment, appended with its event in one write before the request is sent. It always comes last, so nothing that was already
sent changes. A crash leaves both records, neither, or the attachment without the event, which loses only the reason for the
recall. If memories cannot be read, the user is notified.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from ...conversation.state import Conversation
from ...conversation.window.count import appended
from ...conversation.window.features import measure_all
from ...core.blocks import Wire, text
from ...core.errors import DiskError
from ...core.records import Attachment, Event, new_id
from ...fork.background import LOCAL
from ...language.text import Text
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
from ...memory.store.uses import note_uses
from .state import EVENT, RecallState, leave_selection, memory_scopes_of, selector_model


def bring(c: Conversation) -> None:
    state = c.layer_state(RecallState)
    items = c.log.view.items
    asked = find_question(items)
    if state.held is not None:
        from .model_selector import append_held

        append_held(c, state, asked)
    if asked is None or has_surfaced(items, asked.message):
        return
    again = state.message == asked.message
    if not again:
        leave_selection(c)
        state.message = asked.message
    seen = seen_in(c, state)
    _count_uses(c, state, seen.read - state.counted)
    state.counted |= seen.read
    if (why := reason_to_skip(asked, seen, c.policy.surfacing)) is not None:
        if not again:
            record_recall(c, asked.message, RecallChoice(), skipped=why)
    elif c.settings.recall_selector != "model":
        _recall_by_ranker(c, state, asked, seen, silent=again)
        if not again and _adds_by_model(c, state):
            _begin(c, state, asked, seen_in(c, state))
    elif not again and not _begin(c, state, asked, seen):
        _recall_by_ranker(c, state, asked, seen, silent=again)


def _adds_by_model(c: Conversation, state: RecallState) -> bool:
    """Return whether a model adds to the ranker's choice. Offline, the ranker would choose twice."""
    if c.prompt.model == LOCAL or c.settings.recall_selector == "local":
        return False
    return c.settings.recall_selector == "both" or selector_model(c, state) is not None


def _begin(c: Conversation, state: RecallState, asked: RecallQuestion, seen: SeenMemories) -> bool:
    """Start the selection by a model, loading its code first. Return whether it was started."""
    from .model_selector import begin

    return begin(c, state, asked, seen)


def seen_in(c: Conversation, state: RecallState) -> SeenMemories:
    place = state.place
    within = [str(path) for path in (place.path, place.team) if path is not None] if place is not None else []
    if state.noticed is None:
        state.noticed = SeenMemoriesTracker()
    return state.noticed.follow(c.log.view, cwd=str(c.cwd), within=within)


def _recall_by_ranker(c: Conversation, state: RecallState, asked: RecallQuestion, seen: SeenMemories, *, silent: bool) -> None:
    place, began = memory_scopes_of(c, state), time.perf_counter()
    if place is None:
        return
    try:
        with MemoryLibrary.open(place, settings=c.settings, project=state.project, after=state.looked) as memory:
            choice = choose_by_ranker(memory, asked, seen, c.policy.surfacing)
            state.looked = memory
            if memory.problem:
                c.notify_once(memory.problem)
    except (DiskError, OSError) as error:
        c.notify_once(Text("{error} Until this is fixed, no memories are recalled.", error=error))
        return
    if choice.brought or not silent:
        enter(c, asked.message, choice, seconds=time.perf_counter() - began)


def enter(c: Conversation, message: str, choice: RecallChoice, *, seconds: float | None = None) -> None:
    brought = _fitting(c, choice.brought)
    if not brought:
        record_recall(c, message, choice._replace(brought=()), seconds=seconds)
        return
    c.notify_once(*(f"{each.path} contains invisible characters; they are left out." for each in brought if each.hidden))
    uuid, parent, now = c.head()
    facts = {"memories": [each.facts for each in brought]}
    attachment = Attachment(uuid, parent, now, KIND, tuple(text(each.text) for each in brought), facts=facts)
    data = _event_data(message, choice._replace(brought=brought), seconds=seconds) | {"attachment": uuid}
    c.append([attachment, Event(new_id(), uuid, now, EVENT, data)])
    _count_uses(c, c.layer_state(RecallState), [each.path for each in brought])


def _count_uses(c: Conversation, state: RecallState, paths: Collection[str]) -> None:
    """Count recalled memories, and those that the model read or wrote, so that the index lists the ones used most."""
    if paths and state.place is not None and c.settings.memory_mode["private"] not in ("off", "read-only"):
        note_uses(state.place, sorted(paths))


def _fitting(c: Conversation, brought: tuple[SurfacedMemory, ...]) -> tuple[SurfacedMemory, ...]:
    """Return the memories that fit, in order. In a small window these are fewer, so that recall never fills it."""
    count, kept = c.count, list[SurfacedMemory]()
    for each in brought:
        more = appended(count, measure_all((text(each.text),), c.memo))
        if more.judged < c.limits.blocking:
            count = more
            kept.append(each)
    return tuple(kept)


def record_recall(
    c: Conversation, message: str, choice: RecallChoice, *, skipped: str = "", seconds: float | None = None
) -> None:
    c.record_event(EVENT, _event_data(message, choice, skipped=skipped, seconds=seconds))


def _event_data(message: str, choice: RecallChoice, *, skipped: str = "", seconds: float | None = None) -> Wire:
    data: Wire = {
        "message": message,
        "files": [each.file for each in choice.brought],
        "why": [each.why for each in choice.brought],
        "bytes": sum(len(each.text.encode("utf-8", "replace")) for each in choice.brought),
        "by": choice.by,
    }
    more = {"model": choice.model, "instead_of_model": choice.instead, "skipped": skipped}
    data |= {name: value for name, value in more.items() if value}
    return data if seconds is None else data | {"ms": round(seconds * 1000, 1)}
