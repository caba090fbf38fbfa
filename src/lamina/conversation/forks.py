"""Starts forks from a conversation, performs their effects, and records their usage.

Everything here runs in the conversation's thread, except `ForkDriver`: it runs in a job's thread and has no access to the
conversation.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Any, assert_never

import msgspec
from msgspec.structs import replace

from ..core.blocks import ToolUse, Wire, tool_result
from ..core.effects import Ask, Effect, RunTools, Sleep, Wait
from ..core.errors import Aborted
from ..core.reply import Reply
from ..core.usage import Usage
from ..fork.fork import NO_TOOLS, ForkOutcome
from ..fork.handover import PLACEHOLDER, Handover, PrefixChanged, chain_of
from ..prompt.break_causes import TTL_SECONDS, CacheBreak, judge
from ..providers.models import Cost, cost
from . import repair
from .cache_life import FORK_EVENT, later, note_fork
from .exchange import coming_break, record_cache_miss
from .state import Conversation

if TYPE_CHECKING:
    from ..fork.tool_runner import ToolRunner


def hand_over(c: Conversation) -> Handover:
    """Return the request a fork starts from: the one that would be sent now, even if an answer is last.

    Open tool calls get a placeholder result, because the real results arrive later and only in the parent.
    """
    flat, prompt = c.log.view.flat, c.prompt
    whole = c.log.view.messages()
    messages = repair.applied(c, whole)
    flat.prepare()  # this used up the copy prepared for the next request
    chain = flat.chain if messages is whole else chain_of(messages)
    open_calls = flat.open_calls
    links = len(chain)
    if open_calls:
        links -= len(messages[-1]["content"])
        messages[-1] = _with_placeholders(messages[-1], frozenset(open_calls))
    marked = c.cache_edits.marked if c.capabilities.cache_edits else ()
    # A fork reads the same cache entries as its parent, so it must send the parent's cache edits too.
    cache_edits = {"cache_edits": {"delete": list(marked)}} if marked else {}
    coming = coming_break(c)
    return Handover(
        head=prompt.head,
        messages=tuple(messages),
        options={**prompt.options, **cache_edits},
        base=prompt.base,
        links=links,
        last=chain[links - 1] if links else b"",
        ttl=prompt.ttl,
        open_calls=open_calls,
        readable=0 if coming or c.idle() >= TTL_SECONDS.get(prompt.ttl or "5m", 300) else c.last.readable,
        broken=coming.reason if coming else None,
        handed_at=c.clock(),
        once=frozenset(c.log.view.once),
        unseen=frozenset(flat.unseen),
    )


def _with_placeholders(message: Wire, open_calls: frozenset[str]) -> Wire:
    content = [
        tool_result(block["tool_use_id"], PLACEHOLDER).wire
        if block["type"] == "tool_result" and block["tool_use_id"] in open_calls
        else block
        for block in message["content"]
    ]
    return {**message, "content": content}


class ForkDriver(msgspec.Struct, frozen=True):
    """Performs a fork's effects in any thread: model calls through the side provider, tools through the given runner."""

    ask: Callable[[Ask, Event], Reply]
    abort: Event
    tool_runner: ToolRunner | None = None  # None: every tool call is refused

    def until(self, abort: Event) -> ForkDriver:
        """Return a copy that stops at another event, such as a job's."""
        tool_runner = (
            replace(self.tool_runner, context=replace(self.tool_runner.context, abort=abort))
            if self.tool_runner is not None
            else None
        )
        return ForkDriver(self.ask, abort, tool_runner)

    def __call__(self, effect: Effect) -> Any:
        if self.abort.is_set():
            raise Aborted
        match effect:
            case Ask():
                return self.ask(effect, self.abort)
            case RunTools():
                return self._run(effect.calls)
            case Sleep():
                self.abort.wait(effect.seconds)
                return None
            case Wait():
                raise AssertionError("background work cannot wait for other background work")
            case _:
                assert_never(effect)

    def _run(self, calls: tuple[ToolUse, ...]) -> Any:
        if self.tool_runner is None:
            return tuple(tool_result(call.id, NO_TOOLS, is_error=True) for call in calls)
        ran = self.tool_runner.run(calls)
        if any(completed.ends is not None for completed in ran):  # a hook ends the fork as it would end a turn
            raise Aborted
        return tuple(completed.result_with_context for completed in ran)


def side(c: Conversation, *, tool_runner: ToolRunner | None = None, abort: Event | None = None) -> ForkDriver:
    """Return a driver for a job's fork: `drive(run_fork(…), side(c, tool_runner=…).until(abort))`."""
    return ForkDriver(c.ask_side, abort or Event(), tool_runner)


def ended(c: Conversation, purpose: str, outcome: ForkOutcome, seconds: float) -> None:
    """Record a finished fork's usage, and a cache miss if it read less than the cache held."""
    spent = cost(outcome.reply.model or c.prompt.model, outcome.usage)
    answered = later(outcome.handed_at, seconds, c.clock())
    count(c, purpose, outcome.usage, spent, seconds=seconds, rounds=outcome.rounds, denied=outcome.denied, answered_at=answered)
    if answered:
        note_fork(c, answered, outcome.usage)
    miss = judge(readable=outcome.readable, usage=outcome.first, announced=None, idle=0.0, ttl=c.prompt.ttl, diagnosis=None)
    if miss is not None:
        record_cache_miss(c, miss, lost=miss.lost, fork=purpose)


def cache_figures(outcome: ForkOutcome) -> Wire:
    """Return a fork's cache figures for an event."""
    usage = outcome.usage
    return {
        "rounds": outcome.rounds,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "hit_rate": usage.hit_rate,
    }


def count(
    c: Conversation,
    purpose: str,
    usage: Usage,
    spent: Cost,
    *,
    seconds: float,
    rounds: int,
    denied: int = 0,
    answered_at: str = "",
) -> None:
    """Record the usage of a side call. It never enters the window's token count. `answered_at` is given if the call carried the
    conversation's prefix and so renewed it in the cache."""
    c.side.add(usage, spent)
    c.record_event(
        FORK_EVENT,
        {
            "purpose": purpose,
            "input": usage.input_tokens,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "output": usage.output_tokens,
            "hit_rate": usage.hit_rate,
            "usd": spent.usd,
            "seconds": round(seconds, 3),
            "rounds": rounds,
            "denied": denied,
            **({"answered_at": answered_at} if answered_at else {}),
        },
    )


def failed(c: Conversation, purpose: str, error: BaseException) -> None:
    """Record a failed fork. If it was not sent because its prefix differed from its parent's, record a cache miss too."""
    if isinstance(error, PrefixChanged):
        record_cache_miss(c, CacheBreak(c.last.readable, "messages", str(error)), lost=0, fork=purpose)
    c.record_event("fork_failed", {"purpose": purpose, "why": str(error) or type(error).__name__})
