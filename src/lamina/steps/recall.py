"""Recall in a turn: memories that help stand beside the person's message (Q1–Q8).

    bring    before a call: the ranker's choice beside a message no answer has seen; a model's choice behind the results that came since
    landed   a model has chosen, in the background

The ranker is awaited: it takes milliseconds. A model never is: its choice is held until the next results stand, and dropped when the turn
ends first. What is brought is one attachment, entered with its event in one write before the request leaves, always behind everything
that was said, so nothing that was sent changes. A crash leaves both, neither, or the attachment without the event: then only why it is
there is not known. What cannot be read is one sentence for the person.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event as Flag
from typing import NamedTuple

from ..conversation import Conversation
from ..core.blocks import Wire, text
from ..core.cache import FORK_HEADER, SESSION_HEADER
from ..core.effects import Ask
from ..core.errors import Aborted, DiskError, LaminaError
from ..core.ids import new_id
from ..core.records import Attachment, Event
from ..core.reply import Reply
from ..fork.background import Landed
from ..fork.fork import ForkOutcome
from ..layers.l0_window import appended, measure_all
from ..memory.memory import Memory
from ..memory.recalling import Brought, Choice, Said, by_model, by_ranker
from ..memory.surfacing import KIND, Asked, Noticed, Seen, asked_in, surfaced_behind, why_not
from . import forks
from .recall_state import EVENT, SELECT, TOO_LATE, RecallState, leave_selection, placed, say_once


class Selected(NamedTuple):
    """What a job brings back."""

    message: str
    choice: Choice
    reply: Reply | None


def bring(c: Conversation) -> None:
    state = c.room(RecallState)
    items = c.log.view.items
    asked = asked_in(items)
    if state.held is not None:
        _put_in_held(c, state, asked)
    if asked is None or surfaced_behind(items, asked.message):
        return
    again = state.message == asked.message
    if not again:
        leave_selection(c)
        state.message = asked.message
    seen = _seen(c, state)
    if (why := why_not(asked, seen, c.policy.surfacing)) is not None:
        if not again:
            _tell(c, asked.message, Choice(), skipped=why)
    elif c.settings.recall_selector == "local" or not (again or _begin(c, state, asked, seen)):
        _now(c, state, asked, seen, silent=again)


def _seen(c: Conversation, state: RecallState) -> Seen:
    place = state.place
    within = [str(path) for path in (place.path, place.team) if path is not None] if place is not None else []
    if state.noticed is None:
        state.noticed = Noticed()
    return state.noticed.follow(c.log.view, cwd=str(c.cwd), within=within)


# The ranker, at once


def _now(c: Conversation, state: RecallState, asked: Asked, seen: Seen, *, silent: bool) -> None:
    place, began = placed(c, state), time.perf_counter()
    if place is None:
        return
    try:
        with Memory.look(place, settings=c.settings, project=state.project, after=state.looked) as memory:
            choice = by_ranker(memory, asked, seen, c.policy.surfacing)
            state.looked = memory
    except (DiskError, OSError) as error:
        say_once(c, f"{error} No memories are brought to messages until then.")
        return
    if choice.brought or not silent:
        _enter(c, asked.message, choice, seconds=time.perf_counter() - began)


# A model, in the background


def _begin(c: Conversation, state: RecallState, asked: Asked, seen: Seen) -> bool:
    """Whether a model was asked. The job gets frozen values and has a memory of its own."""
    place, settings, project, policy = placed(c, state), c.settings, state.project, c.policy.surfacing
    model, ask_side = settings.small_model or c.prompt.model, c.ask_side
    turn = c.host.desk.context.abort if c.host.desk is not None else None

    def job(abort: Flag) -> Selected | None:
        if place is None:
            return None
        asking = _Asking(ask_side, _Until(policy.wait_seconds, abort, turn))
        with Memory.look(place, settings=settings, project=project) as memory:
            choice = by_model(memory, asked, seen, policy, model=model, ask=asking)
        return Selected(asked.message, choice, asking.reply)

    return c.background.start(SELECT, job)


class _Until(Flag):
    """Set when the person stops the turn or the session, or when the time is up."""

    def __init__(self, seconds: float, *stops: Flag | None) -> None:
        super().__init__()
        self._end = time.monotonic() + seconds
        self._stops = tuple(stop for stop in stops if stop is not None)

    @property
    def stopped(self) -> bool:
        return any(stop.is_set() for stop in self._stops)

    def is_set(self) -> bool:
        return self.stopped or time.monotonic() >= self._end


class _Asking:
    """One call beside the conversation; a failure is a reason, an abort of the person's ends the job."""

    def __init__(self, ask_side: Callable[[Ask, Flag], Reply], until: _Until) -> None:
        self._ask_side = ask_side
        self._until = until
        self.reply: Reply | None = None

    def __call__(self, request: Wire) -> Said:
        try:
            self.reply = self._ask_side(Ask({**request, "extra_headers": _named()}, SELECT), self._until)
        except Aborted:
            if self._until.stopped:
                raise
            return Said(failed="it took too long")
        except (LaminaError, OSError) as error:
            return Said(failed=str(error) or type(error).__name__)
        return Said(self.reply.text)


def _named() -> dict[str, str]:
    """It shares no prefix with the conversation, so a server that keeps watch over prefixes takes it for one of its own."""
    name = f"{SELECT}-{new_id()[-8:]}"
    return {SESSION_HEADER: name, FORK_HEADER: name}


def landed(c: Conversation, one: Landed) -> None:
    """A job is done: what it used is told; what it chose is held for the turn it was made for."""
    state, chosen = c.room(RecallState), one.value
    if one.error is not None:
        if not isinstance(one.error, Aborted):
            c.tell(EVENT, {"files": [], "by": "model", "skipped": str(one.error) or type(one.error).__name__})
        return
    if not isinstance(chosen, Selected):
        return
    if chosen.reply is not None:
        usage = chosen.reply.usage
        if usage is not None:
            forks.ended(c, SELECT, ForkOutcome(chosen.reply, usage, 1, 0, (chosen.reply.text,)), one.seconds)
    if state.message == chosen.message:
        state.held = chosen
    else:
        _tell(c, chosen.message, Choice(by=chosen.choice.by), skipped=TOO_LATE)


def _put_in_held(c: Conversation, state: RecallState, asked: Asked | None) -> None:
    """Behind the results that came since, for as long as the conversation is about that message."""
    held = state.held
    if held is None or (asked is not None and asked.message == held.message):
        return
    state.held = None
    there = any(item.uuid == held.message for item in reversed(c.log.view.items))
    if asked is not None or not there:
        _tell(c, held.message, Choice(by=held.choice.by), skipped=TOO_LATE)
        return
    seen = _seen(c, state)
    left = tuple(each for each in held.choice.brought if each.path not in seen.surfaced | seen.read)
    _enter(c, held.message, held.choice._replace(brought=left))


# What is entered


def _enter(c: Conversation, message: str, choice: Choice, *, seconds: float | None = None) -> None:
    brought = _that_fit(c, choice.brought)
    if not brought:
        _tell(c, message, choice._replace(brought=()), seconds=seconds)
        return
    uuid, parent, now = c.head()
    facts = {"memories": [each.facts for each in brought]}
    attachment = Attachment(uuid, parent, now, KIND, tuple(text(each.text) for each in brought), facts=facts)
    told = _told(message, choice._replace(brought=brought), seconds=seconds) | {"attachment": uuid}
    c.enter([attachment, Event(new_id(), uuid, now, EVENT, told)])


def _that_fit(c: Conversation, brought: tuple[Brought, ...]) -> tuple[Brought, ...]:
    """A small window takes fewer: what helps must not be what fills it."""
    count, kept = c.count, list[Brought]()
    for each in brought:
        more = appended(count, measure_all((text(each.text),), c.memo))
        if more.judged < c.limits.blocking:
            count = more
            kept.append(each)
    return tuple(kept)


def _tell(c: Conversation, message: str, choice: Choice, *, skipped: str = "", seconds: float | None = None) -> None:
    c.tell(EVENT, _told(message, choice, skipped=skipped, seconds=seconds))


def _told(message: str, choice: Choice, *, skipped: str = "", seconds: float | None = None) -> Wire:
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
