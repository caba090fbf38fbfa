"""Layer 2 in a turn: clear old results before a call, each at most once (M1-M7).

    clear        before a call: clear if the cache is cold, after a pause, in the provider's cache, or by size; then shorten old
                 answers if need be
    clear_repeated   after a compaction: clear results that later ones repeat
    with_edits   add the cache edits to the request
    confirmed    after a call: record what the provider deleted or cleared
    options      when a session opens: the request options for clearing by the provider

A cleared result keeps its marker forever, and a result that the user restored is never cleared again. When the provider clears
results itself (M5), our copy of the conversation stays whole. The server repeats the same report in every response until it clears
more, so only a changed report is recorded.

`carry_out` saves the originals of a clearing to disk, then appends one record with its receipt. The originals are on disk before
the record is written. A crash at any line therefore leaves the new view, or the old view and some files that no record refers to
yet. A result whose original cannot be saved is not cleared. The layer's state (`MicroState`) is updated incrementally from new
messages and rebuilt from the log after a resume.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ...conversation.cache_life import is_cold
from ...conversation.exchange import expect_break
from ...conversation.state import Conversation
from ...conversation.triggers import compaction_at
from ...conversation.window.features import measure_all
from ...conversation.window.thresholds import Thresholds
from ...core.blocks import Block, Wire, tool_result
from ...core.errors import DiskError
from ...core.policy import MicroPolicy, Policy
from ...core.prefix import Reason
from ...core.reach import OWN_NAMES, tool_names
from ...core.receipts import Told, write_receipt
from ...core.records import Clear, Event, Spill, new_id
from ...core.reply import Reply
from ...core.settings import Settings
from ...disk.session_files.spills import DIRECTORY, Spills, open_spills
from ...language.text import Text
from ...providers import Capabilities
from .old_answers import SHORT_ID, ShortenedAnswer, failed_calls, is_clearable, plan_answers
from .plan import (
    Clearing,
    Cycle,
    has_expired,
    pays,
    plan_cold,
    plan_edits,
    plan_idle,
    plan_repeated,
    plan_size,
    shorten_cold,
)
from .registry import Clearable, Registry, Rules, Surfaced, marker, original

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
    if c.settings.idle_clearing:
        rows = plan_idle(state.registry, idle=c.idle(), minutes=c.policy.micro.idle_minutes, keep=c.policy.micro.idle_keep)
        if rows and carry_out(c, state, rows, trigger="idle", at_least=1):
            _forget_edits(c)
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
    applied = read_applied(reply.notes.get("context_management"))
    if applied.tokens not in (0, state.applied):
        edits = list(applied.edits)
        c.record_event("clearing", {"ids": [], "tokens_saved": applied.tokens, "trigger": "provider", "edits": edits})
    state.applied = applied.tokens
    if not c.cache_edits.sent or not reply.complete:
        return
    confirmation = c.cache_edits.confirm(reply.notes.get("cache_edits"))
    if confirmation.ignored:
        c.record_event(EDITS_EVENT, {"ids": [], "ignored": True})
        c.notify(NO_EDITS)
    elif confirmation.ids:
        sizes = {row.block.tool_use_id: row.tokens for row in state.registry.rows}
        saved = sum(sizes.get(call, 0) for call in confirmation.ids)
        c.record_event("clearing", {"ids": list(confirmation.ids), "tokens_saved": saved, "trigger": "cache_edits"})


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
    answers = shorten_cold(
        planned,
        node=uuid[:SHORT_ID] if c.prompt.reach.expand else "",
        tools=clearable_in(c),
        failed=failed_calls(c.log.view.items) if planned.inputs else (),
        measure=partial(tokens_of, c),
    )
    if not carry_out(c, state, planned.results, trigger="cold", at_least=1, answers=answers, uuid=uuid):
        return False
    _forget_edits(c)
    return True


def _forget_edits(c: Conversation) -> None:
    if c.cache_edits.marked:
        c.cache_edits.reset()
        c.record_event(EDITS_EVENT, {"ids": []})


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
        measure=partial(tokens_of, c),
    )
    if not answers:
        return
    saved = sum(answer.saved for answer in answers)
    if not micro.must_pay or _pays(c, state.registry, saved, answers[0].before):
        carry_out(c, state, (), trigger="size", at_least=1, answers=answers, uuid=uuid)


def _pays(c: Conversation, registry: Registry, saved: int, before: int) -> bool:
    policy = c.policy.compact
    tail = c.limits.scaled((policy.tail_min + policy.tail_max) // 2)
    return pays(
        Clearing(
            tokens=c.count.judged,
            saved=saved,
            rewritten=registry.tokens - before - saved,
            growth=registry.growth,
            limit=compaction_at(c) if c.autocompact else c.limits.blocking,
        ),
        after_compaction=Cycle(c.count.before_messages, tail) if c.autocompact else None,
        cold=has_expired(c.idle(), c.prompt.ttl, automatic=c.capabilities.wire == "chat"),
        hour=c.prompt.ttl == "1h",
    )


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
    edits = value.get(name) if isinstance(value, Mapping) else None
    return [edit for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, list | tuple) else []


# An id of the usual length, to estimate the size of a marker before the real id is known.
USUAL_ID = "toolu_" + "0" * 24
EDITS_EVENT = "cache_edits"


class MicroState:
    def __init__(self) -> None:
        self.begun = False
        self.registry = Registry()
        self.spared: frozenset[str] = frozenset()
        self.revoked: frozenset[str] = frozenset()  # the undone decisions that `spared` already includes
        self.applied = 0  # tokens that the provider last reported as cleared
        self.trouble = ""  # the last reported reason why originals could not be saved
        self.marker_tokens = 0
        self.unsupported: set[str] = set()  # settings that the user knows this provider does not support


def updated_state(c: Conversation) -> MicroState:
    state = c.layer_state(MicroState)
    if not state.begun:
        _begin(c, state)
    if c.log.revoked != state.revoked:
        # The user wanted the results of an undone clearing back, so they are never cleared again. They are read from the log, like the
        # undo itself, so that a resumed session spares them too.
        state.revoked = frozenset(c.log.revoked)
        undone = (record for record in c.store.read(c.start) if isinstance(record, Clear) and record.uuid in c.log.revoked)
        state.spared |= {name for record in undone for name in (*record.markers, *record.shortened)}
    cold = c.policy.cold
    rules = Rules(clearable_in(c), state.spared, state.marker_tokens, cold.clear or cold.repeated)
    if state.registry.follow(c.log.view, rules, partial(tokens_of, c)):
        c.cache_edits.prune(state.registry)
    return state


def clearable_in(c: Conversation) -> frozenset[str]:
    """Return the tools whose results may be cleared: those of the policy and, under a loop of the host's own, all that it declares."""
    return clearable_tools(c.policy.micro, c.prompt.tool_names if c.host.tool_runner is None else frozenset())


def clearable_tools(policy: MicroPolicy, declared: frozenset[str]) -> frozenset[str]:
    return (policy.clearable | declared) - OWN_NAMES - policy.kept_tools


def _begin(c: Conversation, state: MicroState) -> None:
    """Restore the state of a resumed session: the cache edits of its last event, or of the checkpoint."""
    state.begun = True
    resumed = c.resumed.get("micro")
    checkpoint = resumed if isinstance(resumed, dict) else {}
    event = c.log.events.get(EDITS_EVENT)
    marked = _names(event.data.get("ids") if event is not None else checkpoint.get("edits"))
    answer = next((item for item in reversed(c.log.view.items) if item.role == "assistant"), None)
    # An answer newer than the marks belongs to a request that contained them.
    c.cache_edits.resume(
        marked,
        confirmed=event is None or (answer is not None and answer.time > event.time),
        off=bool(event is not None and event.data.get("ignored")),
    )
    state.spared = frozenset(_names(checkpoint.get("spared")))
    path = str((c.directory or Path()) / DIRECTORY / f"{USUAL_ID}.txt")
    state.marker_tokens = tokens_of(c, tool_result(USUAL_ID, marker(USUAL_ID, c.name_for_model(path), c.prompt.reach)))
    c.checkpoint_with("micro", lambda: {"spared": sorted(state.spared), "edits": list(c.cache_edits.marked)})


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list | tuple) else []


def tokens_of(c: Conversation, block: Block) -> int:
    return measure_all((block,), c.memo).plain


def carry_out(
    c: Conversation,
    state: MicroState,
    rows: Sequence[Clearable],
    *,
    trigger: str,
    at_least: int,
    answers: Sequence[ShortenedAnswer] = (),
    uuid: str = "",
) -> bool:
    """Save the originals of the results, then append the decision. Return False if it would free too few tokens.

    The log keeps the originals of answers, so no file is written for them. `uuid` is the id of the decision if a marker names
    it."""
    paths = _save(c, state, rows) if rows else {}
    calls = [row.block.tool_use_id for row in rows if row.block.tool_use_id in paths]
    markers = {call: marker(call, c.name_for_model(paths[call]), c.prompt.reach) for call in calls}
    cleared = [row for row in rows if row.block.tool_use_id in markers]
    marker_tokens = sum(tokens_of(c, tool_result(call, words)) for call, words in markers.items())
    saved = sum(row.tokens for row in cleared) - marker_tokens + sum(answer.saved for answer in answers)
    if not (cleared or answers) or saved < at_least:
        return False
    memories = state.registry.old_memories(c.policy.micro.attachments_older_than) if cleared else []
    saved += sum(memory.tokens for memory in memories)
    new, parent, time = c.head()
    uuid = uuid or new
    shortened = {answer.record: [block.wire for block in answer.blocks] for answer in answers}
    fates = {**_fates(c, cleared, paths, memories), **dict.fromkeys(shortened, Told("cleared"))}
    receipt = write_receipt(uuid, [item.uuid for item in c.log.view.items], fates).to_json()
    attachments = tuple(memory.record for memory in memories)
    data: Wire = {"ids": list(markers), "attachments": list(attachments), "answers": list(shortened), "tokens_saved": saved}
    # The calibrated token count is stored with the decision in one write: the usages it came from measured the view before it
    # (T10).
    data |= {"trigger": trigger, "decision": uuid, "count": c.count.to_json()}
    event = Event(new_id(), parent, time, "clearing", data)
    reason: Reason = "compaction" if "compaction" in c.last.announced else "clearing"
    c.append([Clear(uuid, parent, time, markers, attachments, trigger, saved, receipt, shortened), event], reason=reason)
    return True


def _fates(c: Conversation, cleared: Sequence[Clearable], paths: dict[str, str], memories: Sequence[Surfaced]) -> dict[str, Told]:
    """Return the fate of every record in view: kept or cleared. A record with several cleared results names the first one's
    file."""
    fates = {item.uuid: Told("kept") for item in c.log.view.items}
    fates |= {row.record: Told("cleared", paths[row.block.tool_use_id]) for row in reversed(cleared)}
    return fates | {memory.record: Told("cleared") for memory in memories}


def _save(c: Conversation, state: MicroState, rows: Sequence[Clearable]) -> dict[str, str]:
    """Save the original of each result and return the paths by call id, without the results that could not be saved.

    The first failure ends the loop: whatever blocked one file will block the others too. The rest is tried before the next
    call."""
    if c.directory is None:
        return {}
    # A transcript may have been copied without its files. Then only the preview of a spilled result is left, and it is kept.
    spill_records = (record for record in c.log.decisions.values() if isinstance(record, Spill))
    spilled = {spill.tool_use_id: spill.path for spill in spill_records if Path(spill.path).is_file()}
    paths: dict[str, str] = {}
    try:
        with open_spills(c.directory) as spills:
            for row in rows:
                call = row.block.tool_use_id
                if (path := spilled.get(call) or _saved(spills, row, whole=call not in c.log.view.replaced)) is not None:
                    paths[call] = path
    except DiskError as error:
        if str(error) != state.trouble:
            state.trouble = str(error)
            c.record_event("clearing_failed", {"why": str(error)})
            form = Text("Old tool results were not cleared, because their originals could not be saved: {error}")
            c.notify(Text(form, error=error))
        return paths
    state.trouble = ""
    return paths


def _saved(spills: Spills, row: Clearable, *, whole: bool) -> str | None:
    """Return the path of a result's file, writing it if there is none.

    A file exists if the result was spilled, or if a clearing was undone or interrupted. `whole` means that the view shows the
    complete result; a preview is never saved as the original."""
    suffix, data = original(row.block)
    for spill in spills.there(row.block.tool_use_id):
        if not whole or spill.size == len(data):
            return spill.path
    # Written without fsync: the transcript holds the complete result, so a power loss costs the model this file but no data.
    return str(spills.write(row.block.tool_use_id, [data], suffix=suffix).path) if whole else None
