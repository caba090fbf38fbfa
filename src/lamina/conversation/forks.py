"""Forks in a turn: what is handed over, who carries out what a fork asks for, and what is told of it when it is done.

All of this runs in the conversation's own thread; only a `Side` goes to a job's thread, and it holds nothing of the conversation.
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
from .exchange import coming_break, record_cache_miss
from .state import Conversation

if TYPE_CHECKING:
    from ..fork.tool_runner import ToolRunner


def hand_over(c: Conversation) -> Handover:
    """What would be sent now, whether an answer or a message stands last. Open calls get the placeholder (A2), since their real
    results come later and to the parent only."""
    flat, prompt = c.log.view.flat, c.prompt
    whole = c.log.view.messages()
    messages = repair.applied(c, whole)
    flat.prepare()  # the copy taken here was made for the next request
    chain = flat.chain if messages is whole else chain_of(messages)
    open_calls = flat.open_calls
    links = len(chain)
    if open_calls:
        links -= len(messages[-1]["content"])
        messages[-1] = _with_placeholders(messages[-1], frozenset(open_calls))
    coming = coming_break(c)
    return Handover(
        head=prompt.head,
        messages=tuple(messages),
        options={**prompt.options, **_cache_edits(c)},
        base=prompt.base,
        links=links,
        last=chain[links - 1] if links else b"",
        ttl=prompt.ttl,
        open_calls=open_calls,
        readable=0 if coming or c.idle() >= TTL_SECONDS.get(prompt.ttl or "5m", 300) else c.last.readable,
        broken=coming.reason if coming else None,
    )


def _cache_edits(c: Conversation) -> Wire:
    """The edits that ride on the parent's requests: a fork reads the cache entries they were made in."""
    marked = c.cache_edits.marked
    return {"cache_edits": {"delete": list(marked)}} if c.capabilities.cache_edits and marked else {}


def _with_placeholders(message: Wire, open_calls: frozenset[str]) -> Wire:
    content = [
        tool_result(block["tool_use_id"], PLACEHOLDER).wire
        if block["type"] == "tool_result" and block["tool_use_id"] in open_calls
        else block
        for block in message["content"]
    ]
    return {**message, "content": content}


class ForkDriver(msgspec.Struct, frozen=True):
    """Carries out what a fork asks for, in any thread: calls go to whoever answers side calls, tools run with the runner lent to it."""

    ask: Callable[[Ask, Event], Reply]
    abort: Event
    tool_runner: ToolRunner | None = None  # None: every call of a tool is refused

    def until(self, abort: Event) -> ForkDriver:
        """The same, ended by another Event: a job's own."""
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
                raise AssertionError("background work does not wait for background work")
            case _:
                assert_never(effect)

    def _run(self, calls: tuple[ToolUse, ...]) -> Any:
        if self.tool_runner is None:
            return tuple(tool_result(call.id, NO_TOOLS, is_error=True) for call in calls)
        ran = self.tool_runner.run(calls)
        if any(one.ends is not None for one in ran):  # a hook ends the fork as it would end a turn
            raise Aborted
        return tuple(one.result_with_context for one in ran)


def side(c: Conversation, *, tool_runner: ToolRunner | None = None, abort: Event | None = None) -> ForkDriver:
    """A `perform` for a job: `drive(run_fork(…), side(c, tool_runner=…).until(abort))`, with a restricted tool runner."""
    return ForkDriver(c.ask_side, abort or Event(), tool_runner)


def ended(c: Conversation, purpose: str, outcome: ForkOutcome, seconds: float) -> None:
    """Count and tell what a fork used; less read from the cache than there was to read is a finding (K2)."""
    spent = cost(outcome.reply.model or c.prompt.model, outcome.usage)
    count(c, purpose, outcome.usage, spent, seconds=seconds, rounds=outcome.rounds, denied=outcome.denied)
    found = judge(readable=outcome.readable, usage=outcome.first, announced=None, idle=0.0, ttl=c.prompt.ttl, diagnosis=None)
    if found is not None:
        record_cache_miss(c, found, lost=found.lost, fork=purpose)


def cache_figures(outcome: ForkOutcome) -> Wire:
    """What a fork read from the cache, and what it did not."""
    usage = outcome.usage
    return {
        "rounds": outcome.rounds,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "hit_rate": usage.hit_rate,
    }


def count(c: Conversation, purpose: str, usage: Usage, spent: Cost, *, seconds: float, rounds: int, denied: int = 0) -> None:
    """What was used beside the conversation: in its own ledger, never in the window's count (T10)."""
    c.side.add(usage, spent)
    c.record_event(
        "fork",
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
        },
    )


def failed(c: Conversation, purpose: str, error: BaseException) -> None:
    """A fork that came to nothing. One that was not sent because its bytes were not its parent's is a finding too (K2)."""
    if isinstance(error, PrefixChanged):
        record_cache_miss(c, CacheBreak(c.last.readable, "messages", str(error)), lost=0, fork=purpose)
    c.record_event("fork_failed", {"purpose": purpose, "why": str(error) or type(error).__name__})
