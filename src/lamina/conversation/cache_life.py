"""Tracks how long the provider's cache keeps the conversation, and sets the lifetime of the next request's cache marks.

All times are the log's. Every answer to a request with this prefix renews it: the conversation's own calls, forks and keep-alive
requests. With an unknown time, a clock that went back or a provider without a cache, the cache is never cold. A resumed session
computes the same from its log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from ..core.blocks import Wire
from ..core.inputs import AUTO
from ..core.records import Event, new_id
from ..core.usage import Usage
from ..core.view import Item
from ..prompt.break_causes import TTL_SECONDS, readable_after
from ..prompt.cache_marks import LONG, SHORT, PauseEvidence, choose_ttl, is_long_pause, written_ttl
from .state import Conversation, seconds_between

FORK_EVENT = "fork"
TTL_EVENT = "cache_ttl"
# The job and the purpose of requests that only keep the cache alive (keep_alive.py).
KEEP_ALIVE = "keep_alive"


class Exchanged(msgspec.Struct, frozen=True):
    """One answer: when its request was complete, when it came, and its usage."""

    asked: str
    answered: str
    usage: Usage | None


class CacheLife:
    def __init__(self) -> None:
        self.begun = False
        self.until: float | None = None  # in seconds since the epoch; None: nothing is known to be cached
        self.shown = False  # the provider has read something from its cache
        self.ttl = ""  # of the entries that the last request wrote
        self.readable = 0  # tokens that the last answer left in the cache
        self.answered = ""  # time of the last answer
        self.seen = PauseEvidence()
        self.chosen: Wire = {}  # the last choice of a lifetime, and what it was made from


def is_cold(c: Conversation) -> bool:
    """Return whether the cache no longer holds the conversation, so that the next request writes all of it again."""
    until, now = _life(c).until, _epoch(c.clock())
    return until is not None and now is not None and now >= until and (c.prompt.ttl is not None or _automatic(c))


def note_answer(c: Conversation, time: str, usage: Usage | None) -> None:
    """Renew the cached prefix with an answer, before it is appended. Nothing is done until `is_cold` or `settle_ttl` needs it."""
    life = c.layer_state(CacheLife)
    if life.begun:
        items = c.log.view.items
        _take(c, life, Exchanged(items[-1].time if items else "", time, usage), broken=c.last.break_reason is not None)


def note_fork(c: Conversation, answered: str, usage: Usage) -> None:
    """Renew the cached prefix with the answer of a fork that carried it."""
    life = c.layer_state(CacheLife)
    if life.begun and life.until is not None:
        _renew(c, life, answered, written_ttl(usage, c.prompt.ttl or SHORT))


def settle_ttl(c: Conversation) -> None:
    """Set the lifetime of the next request's cache marks, if the policy leaves it open."""
    if c.prompt.ttl is None or not c.free_ttl:
        return
    ttl = c.policy.cache.ttl
    if ttl == AUTO:
        ttl = _chosen(c) if c.capabilities.cache_ttl_1h else SHORT
    if ttl != c.prompt.ttl:
        c.use_ttl(ttl)


def _chosen(c: Conversation) -> str:
    life, context = _life(c), c.count.tokens
    new = context if c.last.announced or is_cold(c) else max(0, context - life.readable)
    ttl = choose_ttl(life.seen, context=context, new=new)
    life.chosen = {"ttl": ttl, "context": context, "new": new, **msgspec.to_builtins(life.seen)}
    return ttl


def ttl_event(c: Conversation, parent: str | None, time: str) -> list[Event]:
    """Return the event that records the lifetime of the answered request, if it was chosen and differs from the one before."""
    chosen, last = c.layer_state(CacheLife).chosen, c.log.events.get(TTL_EVENT)
    if not chosen or chosen["ttl"] != c.prompt.ttl or (last is not None and last.data.get("ttl") == c.prompt.ttl):
        return []
    return [Event(new_id(), parent, time, TTL_EVENT, chosen)]


def _life(c: Conversation) -> CacheLife:
    life = c.layer_state(CacheLife)
    if not life.begun:
        _begin(c, life)
    return life


def _begin(c: Conversation, life: CacheLife) -> None:
    """Read the answers in view. A checkpoint has the evidence of those before it."""
    life.begun = True
    checkpoint = c.resumed.get("cache")
    upto = life.answered = str(checkpoint.get("upto") or "") if isinstance(checkpoint, dict) else ""
    with suppress(msgspec.ValidationError):
        life.seen = msgspec.convert(checkpoint.get("seen") if isinstance(checkpoint, dict) else {}, PauseEvidence)
    for answer in _exchanged(c.log.view.items):
        before = life.seen
        _take(c, life, answer, broken=False)
        if answer.answered <= upto:
            life.seen = before
    fork = c.log.events.get(FORK_EVENT)
    if fork is not None and life.until is not None and isinstance(answered := fork.data.get("answered_at"), str):
        _renew(c, life, answered, life.ttl)
    c.checkpoint_with("cache", lambda: {"seen": msgspec.to_builtins(life.seen), "upto": life.answered})


def _exchanged(items: list[Item]) -> Iterator[Exchanged]:
    request_time, key = "", None
    for item in items:
        if item.role == "user":
            request_time, key = item.time, None
        elif item.from_model and (key is None or item.key != key):
            key = item.key or item.uuid
            yield Exchanged(request_time, item.time, item.usage)


def _take(c: Conversation, life: CacheLife, answer: Exchanged, *, broken: bool) -> None:
    evidence, paused = life.seen, is_long_pause(seconds_between(life.answered, answer.asked))
    # Half of it: other entries, of the tools and the system prompt, may have survived.
    lost = paused and life.ttl == LONG and not broken and answer.usage is not None and answer.usage.cache_read * 2 < life.readable
    life.seen = PauseEvidence(evidence.answers + 1, evidence.pauses + paused, evidence.lost + lost)
    life.ttl = written_ttl(answer.usage, c.prompt.ttl or SHORT)
    life.readable = readable_after(answer.usage) if answer.usage is not None else 0
    life.answered = answer.answered
    life.shown = life.shown or (answer.usage is not None and answer.usage.cache_read > 0)
    cached = _has_cache(c, life, answer.usage)
    if broken or not cached:
        life.until = None
    if cached:
        _renew(c, life, answer.answered, life.ttl)


def _has_cache(c: Conversation, life: CacheLife, usage: Usage | None) -> bool:
    """Return whether the provider caches requests. An automatic cache must have shown it."""
    if _automatic(c):
        return life.shown
    if c.prompt.ttl is None or not c.capabilities.cache_marks:
        return False
    return usage is None or usage.cache_read + usage.cache_write > 0


def _automatic(c: Conversation) -> bool:
    return c.capabilities.wire == "chat"


def _renew(c: Conversation, life: CacheLife, answered: str, ttl: str) -> None:
    """Extend the life of the prefix. Entries of earlier requests may live longer than the new one."""
    moment = _epoch(answered)
    if moment is None:
        life.until = None
        return
    seconds = c.policy.cache.automatic_seconds if _automatic(c) else TTL_SECONDS.get(ttl, TTL_SECONDS[SHORT])
    life.until = max(moment + seconds, life.until or 0.0)


def later(time: str, seconds: float, now: str) -> str:
    """Return the time that many seconds later, but not after `now`; an empty string if the time is unknown."""
    moment, limit = _epoch(time), _epoch(now)
    if moment is None or limit is None:
        return ""
    return now if moment + seconds >= limit else datetime.fromtimestamp(moment + seconds, UTC).isoformat()


def _epoch(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
