"""Layer 2 in a turn: clear old results before a call, each at most once (M1-M7).

    clear        before a call: clear if the cache is cold, after a pause, in the provider's cache, or by size; then shorten old
                 answers if need be
    clear_repeated   after a compaction: clear results that later ones repeat
    with_edits   add the cache edits to the request
    confirmed    after a call: record what the provider deleted or cleared
    options      when a session opens: the request options for clearing by the provider

A cleared result keeps its marker forever, and a result that the user restored is never cleared again. clearing.py writes the
clearings and keeps the layer's state. When the provider clears results itself (M5), our copy of the conversation stays whole. The
server repeats the same report in every response until it clears more, so only a changed report is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ...conversation.cache_life import is_cold
from ...conversation.exchange import expect_break
from ...conversation.state import Conversation
from ...conversation.triggers import compaction_at
from ...conversation.window.thresholds import Thresholds
from ...core.blocks import Wire
from ...core.policy import Policy
from ...core.reach import tool_names
from ...core.records import new_id
from ...core.reply import Reply
from ...core.settings import Settings
from ...providers import Capabilities
from .clearing import EDITS_EVENT, MicroState, carry_out, clearable_in, clearable_tools, tokens_of, updated_state
from .cold import plan_cold, plan_repeated, shortened
from .old_answers import SHORT_ID, failed_calls, is_clearable, plan_answers
from .plan import Clearing, Cycle, has_expired, pays, plan_edits, plan_idle, plan_size
from .registry import Registry

UNSUPPORTED = {
    "cache_edits": "The provider does not support cache edits (lamina.cacheEdits), so they are not used.",
    "context_management": (
        "This server is not known to clear old tool results itself (lamina.apiClearing, context_management), so it is not asked to. "
        "Lamina clears them by size instead."
    ),
}
NO_EDITS = "The provider ignored the requested cache edits. From now on, old tool results are cleared by size."


def clear(c: Conversation) -> None:
    """Clear old results before a call.

    A clearing with a cold cache or after a pause comes first. Otherwise results are deleted in the provider's cache if it
    supports that, else by size. If the provider clears results itself, it starts earlier, and clearing by size happens only if
    that was not enough."""
    state = updated_state(c)
    if c.policy.cold.clear and is_cold(c) and _when_cold(c, state):
        return
    if c.settings.idle_clearing and _after_pause(c, state):
        return
    asks_provider = clears_by_itself(c.prompt.options)
    by_provider = c.capabilities.context_management and asks_provider
    if c.settings.cache_edits and not c.cache_edits.off:
        _need(c, state, "cache_edits")
    if c.settings.api_clearing or asks_provider:
        _need(c, state, "context_management")
    if c.settings.cache_edits and c.capabilities.cache_edits and not c.cache_edits.off and not by_provider:
        _mark(c, state)
    elif c.settings.size_clearing:
        _by_size(c, state)
        _shorten_answers(c, state)


def _need(c: Conversation, state: MicroState, capability: str) -> None:
    """Tell the user once if a way of clearing is switched on that the provider does not have."""
    if not getattr(c.capabilities, capability) and capability not in state.unsupported:
        state.unsupported.add(capability)
        c.notify_once(UNSUPPORTED[capability])


def clear_repeated(c: Conversation) -> None:
    """Clear results that later ones repeat, if a compaction since the last request makes the provider write everything again."""
    if c.policy.cold.repeated and "compaction" in c.last.announced:
        state = updated_state(c)
        if rows := plan_repeated(state.registry):
            carry_out(c, state, rows, trigger="repeated", at_least=1)


def with_edits(c: Conversation, request: Wire) -> Wire:
    """Add the pending cache edits to a request. They make the provider read fewer cached tokens, which is expected and not
    reported as a cache break."""
    if c.capabilities.cache_edits:
        updated_state(c)
    if not c.cache_edits.send(c.capabilities.cache_edits):
        return request
    if c.cache_edits.open:
        expect_break(c, "clearing")
    return {**request, "cache_edits": {"delete": list(c.cache_edits.sent)}}


def confirmed(c: Conversation, reply: Reply) -> None:
    """After an answer, record once what the provider deleted on request or cleared itself."""
    state = updated_state(c)
    _record_applied(c, state, reply)
    if not c.cache_edits.sent or not reply.complete:
        return
    done = c.cache_edits.confirm(reply.notes.get("cache_edits"))
    if done.ignored:
        c.record_event(EDITS_EVENT, {"ids": [], "ignored": True})
        c.notify(NO_EDITS)
    elif done.ids:
        sizes = {row.block.tool_use_id: row.tokens for row in state.registry.rows}
        saved = sum(sizes.get(call, 0) for call in done.ids)
        c.record_event("clearing", {"ids": list(done.ids), "tokens_saved": saved, "trigger": "cache_edits"})


def options(
    settings: Settings,
    capabilities: Capabilities,
    policy: Policy,
    *,
    limits: Thresholds | None = None,
    tools: Iterable[Wire] = (),
    given: Wire | None = None,
) -> Wire:
    """Return the request options that make the provider clear results itself.

    `given` are the caller's own options. They tell whether thinking is on, and a `context_management` among them takes
    precedence."""
    if not (settings.api_clearing and capabilities.context_management) or "context_management" in (given or {}):
        return {}
    micro = policy.micro
    thinking, names = (given or {}).get("thinking"), tool_names(tools)
    trigger = micro.api_trigger
    if limits is not None:
        trigger = max(1, min(limits.scaled(trigger), limits.autocompact * micro.api_percent // 100))
    return api_options(
        trigger=trigger,
        clear_at_least=micro.api_clear_at_least * trigger // micro.api_trigger,
        excluded=[name for name in names if not is_clearable(name, clearable_tools(micro, frozenset(names)))],
        thinking=isinstance(thinking, dict) and thinking.get("type") in ("enabled", "adaptive"),
    )


def _when_cold(c: Conversation, state: MicroState) -> bool:
    planned, uuid = plan_cold(state.registry, c.policy.cold), new_id()
    answers = shortened(
        planned,
        node=uuid[:SHORT_ID] if c.prompt.reach.expand else "",
        tools=clearable_in(c),
        failed=failed_calls(c.log.view.items) if planned.inputs else (),
        measure=lambda block: tokens_of(c, block),
    )
    if not carry_out(c, state, planned.results, trigger="cold", at_least=1, answers=answers, uuid=uuid):
        return False
    _forget_edits(c)
    return True


def _forget_edits(c: Conversation) -> None:
    if c.cache_edits.marked:
        c.cache_edits.reset()
        c.record_event(EDITS_EVENT, {"ids": []})


def _after_pause(c: Conversation, state: MicroState) -> bool:
    micro = c.policy.micro
    idle = c.idle()
    rows = plan_idle(state.registry, idle=idle, minutes=micro.idle_minutes, keep=micro.idle_keep)
    if not rows or not carry_out(c, state, rows, trigger="idle", at_least=1):
        return False
    _forget_edits(c)
    return True


def _mark(c: Conversation, state: MicroState) -> None:
    rows = plan_edits(state.registry, c.cache_edits, over=c.policy.micro.edits_over, keep=c.policy.micro.edits_keep)
    if not rows:
        return
    c.cache_edits.mark(row.block.tool_use_id for row in rows)
    c.record_event(EDITS_EVENT, {"ids": list(c.cache_edits.marked)})
    c.expect_fewer_tokens(sum(row.tokens for row in rows))


def _by_size(c: Conversation, state: MicroState) -> None:
    micro, registry = c.policy.micro, state.registry
    count = c.count.judged
    # In a larger window the same break costs more, so it must save more.
    at_least = max(c.limits.scaled(micro.save_at_least), micro.save_at_least * count // micro.clear_from)
    rows = plan_size(
        registry,
        above_warning=count >= min(c.limits.warning, micro.clear_from),
        keep_tokens=c.limits.scaled(micro.keep_tokens),
        keep_last=micro.keep_last,
        save_at_least=at_least,
    )
    if rows and (not micro.must_pay or _pays(c, registry, sum(row.tokens for row in rows), rows[0].before)):
        carry_out(c, state, rows, trigger="size", at_least=at_least)


def _shorten_answers(c: Conversation, state: MicroState) -> None:
    """Shorten the inputs of old calls and old texts of the model, if the results alone could not free enough room."""
    if c.count.judged < c.limits.warning:
        return
    long_answers = updated_state(c).registry.long_answers
    if not long_answers:
        return
    micro, uuid = c.policy.micro, new_id()
    answers = plan_answers(
        c.log.view.items,
        long_answers,
        node=uuid[:SHORT_ID] if c.prompt.reach.expand else "",
        tools=clearable_in(c),
        keep_tokens=c.limits.scaled(micro.keep_tokens),
        keep_last=micro.keep_last,
        save_at_least=c.limits.scaled(micro.save_at_least),
        measure=lambda block: tokens_of(c, block),
    )
    if not answers:
        return
    saved = sum(one.saved for one in answers)
    if not micro.must_pay or _pays(c, state.registry, saved, answers[0].before):
        carry_out(c, state, (), trigger="size", at_least=1, answers=answers, uuid=uuid)


def _pays(c: Conversation, registry: Registry, saved: int, before: int) -> bool:
    policy = c.policy.compact
    kept = c.limits.scaled((policy.tail_min + policy.tail_max) // 2)
    return pays(
        Clearing(
            tokens=c.count.judged,
            saved=saved,
            rewritten=registry.tokens - before - saved,
            growth=registry.growth,
            limit=compaction_at(c) if c.autocompact else c.limits.blocking,
        ),
        after_compaction=Cycle(c.count.before_messages, kept) if c.autocompact else None,
        cold=has_expired(c.idle(), c.prompt.ttl, automatic=c.capabilities.wire == "chat"),
        hour=c.prompt.ttl == "1h",
    )


def _record_applied(c: Conversation, state: MicroState, reply: Reply) -> None:
    applied = read_applied(reply.notes.get("context_management"))
    if applied.tokens not in (0, state.applied):
        c.record_event(
            "clearing", {"ids": [], "tokens_saved": applied.tokens, "trigger": "provider", "edits": list(applied.edits)}
        )
    state.applied = applied.tokens


CLEAR_RESULTS = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"
# The model continues from its last thinking, so that turn is kept.
THINKING_TURNS = 1


class Applied(msgspec.Struct, frozen=True):
    tokens: int
    edits: tuple[Wire, ...]


def api_options(*, trigger: int, clear_at_least: int, excluded: Sequence[str], thinking: bool) -> Wire:
    """Return the request's `context_management`. The API requires the thinking edit first, and accepts it only if thinking is
    on."""
    results: Wire = {
        "type": CLEAR_RESULTS,
        "trigger": {"type": "input_tokens", "value": trigger},
        "clear_at_least": {"type": "input_tokens", "value": clear_at_least},
    }
    if excluded:
        results["exclude_tools"] = list(excluded)
    thoughts = {"type": CLEAR_THINKING, "keep": {"type": "thinking_turns", "value": THINKING_TURNS}}
    return {"context_management": {"edits": [thoughts, results] if thinking else [results]}}


def clears_by_itself(options: Mapping[str, Any]) -> bool:
    """Return whether requests with these options ask the provider to clear results."""
    return any(edit.get("type") == CLEAR_RESULTS for edit in _mappings(options.get("context_management"), "edits"))


def read_applied(note: Any) -> Applied:
    """Read from a response which edits the provider applied to the request."""
    edits = tuple(dict(edit) for edit in _mappings(note, "applied_edits"))
    counts = (edit.get("cleared_input_tokens") for edit in edits)
    return Applied(sum(count for count in counts if isinstance(count, int)), edits)


def _mappings(value: Any, name: str) -> Iterable[Mapping[str, Any]]:
    found = value.get(name) if isinstance(value, Mapping) else None
    return [edit for edit in found if isinstance(edit, Mapping)] if isinstance(found, list | tuple) else []
