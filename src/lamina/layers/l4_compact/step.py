"""Layer 4 in a turn: a summary replaces old messages, and important context is restored after it (C1-C9, B1-B3).

    for_model   before a call: compact because the model asked for it (`answer_request`)
    if_needed   before a call: compact with notes if possible (layer 3), else with a summary; a prefetched one needs no waiting
    compact     compact on request: everything, from a message on, or up to a message
    too_long    compact after the provider rejected the conversation as too long
    preview     show what `compact` would do, without a model call and without a change

Nothing is appended before the summary is complete and its receipt covers every record in view. Then everything is appended in one
write. A crash leaves the old view or the new one, at worst without the last restored attachments. Forks never compact (C9).
A summary is committed only if the view gets smaller with it and the context restored after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias
from uuid import uuid4

import msgspec

from ...conversation import price
from ...conversation.compaction.commit import Compacted, CompactionRequest, How, Replacement, budget_of, ceiling, commit
from ...conversation.compaction.compose import SummaryOrigin, WayBack, compose, used_in
from ...conversation.compaction.cuts import FOLDED, is_said, rounds
from ...conversation.compaction.hooks import CompactHooks
from ...conversation.compaction.restoration import Restoration, put_back, size_of, size_of_items, tokens_of
from ...conversation.compaction.user_messages import LEAST_CHARACTERS, escaped, said_in, shortened, words_of
from ...conversation.state import Conversation
from ...conversation.triggers import CompactionRoom, compaction_room, last_compaction, nearly_full
from ...core.effects import Flow
from ...core.errors import NotCompacted, PromptTooLong
from ...core.receipts import Told
from ...core.records import new_id
from ...core.usage import Usage
from ...core.view import Item
from ...disk.session_files.spills import DIRECTORY
from ...language.text import Text
from .plan import (
    ANSWERS_A_TURN,
    EVENT,
    BreakerLedger,
    Pivot,
    SummaryPlan,
    explanation,
    failed,
    filled,
    gave_up_on_model,
    plan,
    read_ledger,
    turns_since,
    worked,
)
from .summary_call import (
    SummaryFailed,
    SummaryMade,
    begin_ahead,
    is_running_ahead,
    ready_ahead,
    reserve,
    summarise,
    without_model,
)

# A compaction without a model call. Returns None if it is not possible.
QuickCompaction: TypeAlias = Callable[[Conversation, CompactHooks], Flow[Compacted | None]]

# The expected tokens of a summary, for previews. The median is 12,181 characters, measured in 470 sessions of one agent.
EXPECTED = 3_000
# An unanswered message larger than this percentage of the threshold is summarised instead of kept.
MOST_KEPT_PERCENT = 50
# A model's request is turned down below this percentage of the threshold, or if less was added since the last compaction.
LEAST_REQUESTED_PERCENT = 25
LEAST_GROWTH_PERCENT = 15
NOTHING = "there is nothing to summarise yet"
CHANGED = "the conversation changed while the summary was being written"
GIVEN_UP = "it is no longer asked after several failures in a row"


class CompactionPreview(msgspec.Struct, frozen=True):
    """The expected outcome of a compaction. `tokens_after` is an estimate, since the length of the summary is not known yet."""

    summarised: tuple[str, ...]
    kept: tuple[str, ...]
    rounds: int
    tokens_before: int
    tokens_after: int
    files: tuple[str, ...]
    pins: int
    why: str = ""  # why it would do nothing


def if_needed(c: Conversation, quick: QuickCompaction) -> Flow[None]:
    """Compact if the token count has passed the threshold, or earlier if that pays. `quick`, a compaction without a model call
    (layer 3), is tried first."""
    if not c.autocompact or c.settings.collapse:
        return
    count, ledger, room = c.count.judged, _ledger(c), compaction_room(c)
    if count < room.at:
        if not room.enough:
            _tell_no_room(c, room)
        yield from _before_full(c, ledger, quick)
        return
    full = count >= c.limits.blocking
    if ledger.stopped == "thrashing":
        return
    # After an undo, only the blocking limit ends the pause: the user wanted the messages back.
    if ledger.boundary in c.log.revoked and count < nearly_full(c):
        return
    if not full and (ledger.stopped or _is_vetoed(c, ledger)):
        return
    turns, newest = None, last_compaction(c)
    if newest is not None:
        turns = turns_since(c.log.view.items, newest.kept, answers_a_turn=c.limits.scaled(ANSWERS_A_TURN))
    ledger = filled(ledger, turns, c.policy.compact)
    if ledger.stopped == "thrashing" and count < c.limits.latest:
        return  # only the policy's own, earlier threshold is reached again so soon: wait for that of the window
    if ledger.stopped == "thrashing":
        _write(c, ledger)
    else:
        yield from _compact_automatically(c, ledger, quick, full=full)


def _before_full(c: Conversation, ledger: BreakerLedger, quick: QuickCompaction) -> Flow[None]:
    """Compact below the threshold if that pays, or prepare a summary. Nobody waits for one that is being made: it is used before
    a later call."""
    if gave_up_on_model(ledger, c.policy.compact):
        return
    due = price.due(c)
    if due is None or is_running_ahead(c):
        begin_ahead(c, c.count.judged)
    elif not (ledger.stopped or ledger.boundary in c.log.revoked or _is_vetoed(c, ledger)):
        yield from _compact_automatically(c, ledger, quick, full=False, needed=False, because=due.sentence())


class NoRoomNotice:
    """Whether the user knows that the first request leaves no room for compaction."""

    def __init__(self) -> None:
        self.sent = False


def _tell_no_room(c: Conversation, found: CompactionRoom) -> None:
    notice = c.layer_state(NoRoomNotice)
    if not notice.sent and c.count.judged >= c.limits.autocompact:
        notice.sent = True
        c.notify(
            Text(
                "The first request has {base:,} of {effective:,} tokens, which no compaction can remove, so "
                "automatic compaction waits until the window is nearly full. Shorten the instructions or the list of "
                "tools.",
                base=found.base,
                effective=c.limits.effective,
            )
        )


def _compact_automatically(
    c: Conversation,
    ledger: BreakerLedger,
    quick: QuickCompaction,
    *,
    full: bool,
    refused: PromptTooLong | None = None,
    instructions: str = "",
    needed: bool = True,
    because: str = "",
) -> Flow[Compacted]:
    """Try `quick` first, then a summary, and record the result in the breaker's state. `full` means that nothing more can be sent
    without it, `needed` that the threshold is passed, so that rules take over if the model fails."""
    hooks = CompactHooks(c, "auto", instructions, can_veto=not full, because=because)
    skip = GIVEN_UP if gave_up_on_model(ledger, c.policy.compact) else ""
    by_notes = None if hooks.instructions else (yield from quick(c, hooks))
    outcome = by_notes or (yield from _full(c, hooks, needed=needed, refused=refused, skip_model=skip))
    if hooks.refused:
        c.notify(
            Text(
                "The conversation was not compacted: {refused}. Lamina tries again after your next message.",
                refused=hooks.refused.rstrip("."),
            )
        )
        _write(c, msgspec.structs.replace(ledger, refused=_last_said(c)))
    elif outcome.done:
        _write(c, worked(ledger, outcome.boundary, by_hand=False, by_rules=bool(outcome.instead)))
    elif needed and outcome.why != CHANGED:
        _write(c, failed(ledger, c.policy.compact), outcome.why)
    return outcome


def answer_request(c: Conversation, instructions: str) -> str:
    """Note the model's request for a compaction, and return what to tell the model.

    Nothing is appended here: a tool may run in another thread. A request is turned down if too little was added since the last
    compaction, so a model that keeps asking costs no calls."""
    count, event, room = c.count.judged, c.log.events.get("compaction"), compaction_room(c)
    most = room.at - room.base
    least = room.base + most * LEAST_REQUESTED_PERCENT // 100
    after = event.data.get("tokens_after") if event is not None else None
    if isinstance(after, int):
        least = max(least, after + most * LEAST_GROWTH_PERCENT // 100)
    if not c.settings.compaction:
        return "Compaction is turned off in this session. Continue without it."
    if _ledger(c).stopped:
        return "Automatic compaction has stopped in this session. Continue without it."
    if count < least:
        return f"Not needed: the conversation has {count:,} tokens, and a compaction is worth it from {least:,} on. Continue."
    c.request_compaction(instructions.strip())
    return (
        "The conversation will be compacted before your next step: a summary replaces the earlier messages. The user's messages, "
        "the names of the files used and this round are kept."
    )


def for_model(c: Conversation, quick: QuickCompaction) -> Flow[None]:
    """Carry out the compaction that the model asked for, and tell the user."""
    instructions = c.requested or ""
    c.request_compaction(None)
    c.record_event("compaction_requested", {"instructions": instructions, "tokens": c.count.judged})
    ledger = _ledger(c)
    if ledger.stopped or _is_vetoed(c, ledger):
        return
    outcome = yield from _compact_automatically(c, ledger, quick, full=False, instructions=instructions, needed=False)
    if outcome.done:
        form = Text("The model asked for a compaction: {tokens_before:,} to {tokens_after:,} tokens.")
        c.notify(Text(form, tokens_before=outcome.tokens_before, tokens_after=outcome.tokens_after))
    else:
        c.notify(Text("The model asked for a compaction, which was not possible: {why}.", why=outcome.why.rstrip(".")))


def will_help(c: Conversation) -> bool:
    """Return whether a full window will be compacted before the next call, so that one more message can be accepted."""
    return c.autocompact and not c.settings.collapse and _ledger(c).stopped != "thrashing"


def compact(c: Conversation, quick: QuickCompaction, *, instructions: str = "", pivot: Pivot | None = None) -> Flow[Compacted]:
    """Compact on request, or raise NotCompacted. `quick` is used unless there are instructions or a pivot message."""
    if not c.settings.compaction:
        raise NotCompacted("compaction is turned off (setting lamina.compaction or LAMINA_DISABLE_COMPACT)")
    hooks = CompactHooks(c, "manual", instructions)
    by_notes = None if hooks.instructions or pivot is not None else (yield from quick(c, hooks))
    outcome = by_notes or (yield from _full(c, hooks, needed=False, pivot=pivot))
    if not outcome.done:
        raise NotCompacted(outcome.why or NOTHING)
    _write(c, worked(BreakerLedger(), outcome.boundary, by_hand=True))
    return outcome


def too_long(c: Conversation, error: PromptTooLong, quick: QuickCompaction) -> Flow[bool]:
    """Compact once after the provider rejected the conversation as too long. Return whether the call can be retried."""
    ledger = _ledger(c)
    if not c.autocompact or ledger.stopped == "thrashing":
        return False
    return (yield from _compact_automatically(c, ledger, quick, full=True, refused=error)).done


def preview(c: Conversation, *, pivot: Pivot | None = None) -> CompactionPreview:
    """Return what `compact` would do with a summary. The notes may still replace the summary, which is not shown here."""
    items = tuple(c.log.view.items)
    planned, before = _plan(c, items, pivot), c.count.tokens
    part = items[planned.start : planned.end]
    remaining = tuple(item.uuid for item in (*items[: planned.start], *items[planned.end :]))
    if planned.empty:
        return CompactionPreview((), remaining, 0, before, before, (), len(c.log.view.pins), NOTHING)
    parts = put_together(
        c, items, planned, SummaryMade("", Usage()), CompactionRequest("manual", "", before, pivot is not None), fresh=False
    )
    return CompactionPreview(
        tuple(item.uuid for item in part),
        remaining,
        len(rounds(part)),
        before,
        parts.after + min(EXPECTED, reserve(c)),
        parts.put.files,
        len(c.log.view.pins),
    )


def _full(
    c: Conversation,
    hooks: CompactHooks,
    *,
    needed: bool,
    pivot: Pivot | None = None,
    refused: PromptTooLong | None = None,
    skip_model: str = "",
) -> Flow[Compacted]:
    """Compact with a summary by the model, or by rules if the model cannot write one and room is needed. `skip_model` is the
    reason for not asking the model at all."""
    wanted = CompactionRequest(hooks.trigger, c.clock(), c.count.tokens, pivot is not None, hooks.because)
    items = tuple(c.log.view.items)
    planned = _plan(c, items, pivot, refused)
    if planned.empty and not hooks.refused:
        return Compacted(why=NOTHING, tokens_before=wanted.before)
    if not hooks.ask():
        return Compacted(why=hooks.refused, tokens_before=wanted.before)
    how: How = "summary"
    made_ahead = None if hooks.instructions or pivot is not None else (yield from ready_ahead(c, items))
    if made_ahead is not None:
        # A prefetched summary covers the whole conversation of its time; the tail of it may be kept in addition.
        how, planned = "ahead", SummaryPlan(0, min(planned.end, len(made_ahead.items)), len(items))
        answer: SummaryMade | SummaryFailed = SummaryMade(made_ahead.text, made_ahead.usage)
    elif skip_model:
        answer = SummaryFailed(skip_model, Usage())
    else:
        answer = yield from summarise(
            c, items, planned, instructions=hooks.instructions, partial=wanted.partial, too_long=refused
        )
    now = tuple(c.log.view.items)
    if _is_unchanged(items, now):
        outcome = _applied(c, now, SummaryPlan(planned.start, planned.end, len(now)), answer, how, wanted, needed=needed)
    elif hooks.trigger == "auto" and c.count.judged >= c.limits.blocking and not (planned := _plan(c, now, pivot)).empty:
        outcome = _applied(c, now, planned, SummaryFailed(CHANGED, answer.usage), how, wanted, needed=True)
    else:
        outcome = Compacted(why=CHANGED)
    if not outcome.done:
        c.record_event("compaction_failed", {"trigger": hooks.trigger, "why": outcome.why, "since": price.last_item(c)})
        return msgspec.structs.replace(outcome, usage=answer.usage, tokens_before=wanted.before)
    return outcome


def _applied(
    c: Conversation,
    items: Sequence[Item],
    planned: SummaryPlan,
    answer: SummaryMade | SummaryFailed,
    how: How,
    wanted: CompactionRequest,
    *,
    needed: bool,
) -> Compacted:
    """Commit the model's summary. If there is none, or it saves nothing, rules make one, provided that room is needed: a compaction
    requested below the threshold leaves the conversation as it is."""
    if isinstance(answer, SummaryMade):
        outcome = apply_summary(c, items, planned, answer, "rules" if answer.mechanical else how, wanted)
    else:
        outcome = Compacted(why=answer.why)
    needed = needed or c.count.judged >= compaction_room(c).at
    if outcome.done or not needed or (isinstance(answer, SummaryMade) and answer.mechanical):
        return outcome
    return apply_summary(c, items, planned, without_model(c, items, planned, outcome.why, answer.usage), "rules", wanted)


def _is_unchanged(items: Sequence[Item], now: Sequence[Item]) -> bool:
    """Return whether the summarised items are unchanged. Items added while the model was writing (async sessions) are kept."""
    same = [item.uuid for item in now[: len(items)]] == [item.uuid for item in items]
    return same and not any(item.kind in FOLDED for item in now[len(items) :])


def _plan(c: Conversation, items: Sequence[Item], pivot: Pivot | None, refused: PromptTooLong | None = None) -> SummaryPlan:
    policy, limits = c.policy.compact, c.limits
    # The tail leaves room for the summary and the base.
    room = compaction_room(c)
    most = max(0, ceiling(c) - room.base - reserve(c) // 2)
    return plan(
        items,
        size=partial(size_of, c),
        tail_min=min(limits.scaled(policy.tail_min), most),
        tail_max=min(limits.scaled(policy.tail_max), most),
        most_kept=(room.at - room.base) * MOST_KEPT_PERCENT // 100,
        most_round=_most_round(c, room.base, refused),
        open_calls=c.log.view.flat.open_calls,
        pivot=pivot,
    )


def _most_round(c: Conversation, base: int, refused: PromptTooLong | None) -> int:
    """Return the maximum tokens of an unanswered round that is kept: with a summary before it, it must still fit.

    If the server rejected the conversation, its limit counts, with room to spare because our count was wrong."""
    if refused is not None:
        return max(1, (c.count.tokens - (refused.gap or 0)) * MOST_KEPT_PERCENT // 100)
    return max(1, c.limits.blocking - base - reserve(c) - c.limits.scaled(c.policy.compact.users_tokens))


def _ledger(c: Conversation) -> BreakerLedger:
    """Return the state of the breaker, which is the last event of its name in the log."""
    event = c.log.events.get(EVENT)
    return read_ledger(event.data if event is not None else None)


def _is_vetoed(c: Conversation, ledger: BreakerLedger) -> bool:
    """Return whether a hook vetoed compaction and there is no new user message. Asking before every call would get the same
    veto."""
    return bool(ledger.refused) and ledger.refused == _last_said(c)


def _last_said(c: Conversation) -> str:
    """Return the id of the last user message in view, or "none", which no record has."""
    return next((item.uuid for item in reversed(c.log.view.items) if is_said(item)), "none")


def _write(c: Conversation, ledger: BreakerLedger, why: str = "") -> None:
    """Log the state of the breaker, and notify the user if it has just tripped."""
    c.record_event(EVENT, ledger.to_json())
    room = compaction_room(c)
    if sentence := explanation(ledger, c.policy.compact, base=0 if room.enough else room.base):
        c.notify(Text("{sentence} Last reason: {why}.", sentence=sentence, why=why) if why else sentence)


# A summary may have this many times the tokens that were asked for: less is a difference in counting, not a server that ignores
# `max_tokens`.
MOST_RESERVES = 2


class SummaryParts(NamedTuple):
    """The composed summary, the context restored after it, and the tokens of the resulting view."""

    text: str
    put: Restoration
    after: int


def put_together(
    c: Conversation,
    items: Sequence[Item],
    planned: SummaryPlan,
    got: SummaryMade,
    wanted: CompactionRequest,
    *,
    by: str = "",
    parent: str | None = None,
    fresh: bool = True,
) -> SummaryParts:
    """Return the view that a compaction would leave. Nothing is written.

    With `fresh` off, the host is not asked for anything that could change its state, so a preview can call this too."""
    tokens = partial(tokens_of, c)
    part = items[planned.start : planned.end]
    remaining = [*items[: planned.start], *items[planned.end :]]
    stays = c.count.before_messages + size_of_items(c, remaining)
    room = max(0, ceiling(c) - stays - tokens(got.text))
    written = compose(
        got.text,
        said=said_in(part),
        files=used_in(part, str(c.cwd)),
        way=_way(c, by),
        budget=budget_of(c, room),
        tokens=tokens,
        made=SummaryOrigin(wanted.partial, got.mechanical, 0 if got.mechanical else got.dropped, go_on=wanted.trigger == "auto"),
    )
    size = tokens(written)
    put = put_back(c, items, by=by, parent=parent, kept=remaining, room=max(0, ceiling(c) - stays - size), fresh=fresh)
    return SummaryParts(written, put, stays + size + size_of_items(c, put.records))


def _way(c: Conversation, node: str) -> WayBack:
    reach = c.prompt.reach
    if not reach.files:
        return WayBack(node, expand=reach.expand)
    results = c.directory / DIRECTORY if c.directory is not None else None
    spilled = str(results) if results is not None and results.is_dir() else ""
    return WayBack(node, str(c.store.path or ""), spilled, reach.expand)


def apply_summary(
    c: Conversation, items: Sequence[Item], planned: SummaryPlan, got: SummaryMade, how: How, wanted: CompactionRequest
) -> Compacted:
    """Commit the summary, unless the view would not get smaller."""
    decision, within = new_id(), planned.start > 0
    summary = decision if within else str(uuid4())
    parent = c.log.tree.leaf if within else summary
    parts = put_together(c, items, planned, got, wanted, by=decision, parent=parent)
    too_large = parts.after > ceiling(c) or tokens_of(c, got.text) > MOST_RESERVES * reserve(c)
    if too_large and (short := _within_room(c, got, parts.after - ceiling(c))) != got:
        got, parts = short, put_together(c, items, planned, short, wanted, by=decision, parent=parent)
    # Both sides use the same estimate, since the provider's reported count may follow another rule.
    was = c.count.before_messages + size_of_items(c, items)
    if parts.after >= was:
        why = f"the conversation would not get smaller ({was:,} tokens before, {parts.after:,} after)"
        return Compacted(why=why, usage=got.usage, tokens_before=wanted.before)
    part = items[planned.start : planned.end]
    new = Replacement(
        decision,
        summary,
        parts.text,
        how,
        tuple(item.uuid for item in part),
        parts.put,
        fates={item.uuid: Told("left_out") for item in part if _is_left_out(item, got, parts)},
        usage=got.usage,
        left_out=got.dropped,
        instead=got.instead,
        saved=max(0, was - parts.after),
    )
    return commit(c, items, new, wanted)


def _within_room(c: Conversation, got: SummaryMade, over: int) -> SummaryMade:
    """Shorten a summary with which the window would hold `over` tokens too many, or that is longer than it was asked to be.

    One that fills the window could never be compacted again, and every call would pay for it."""
    tokens = partial(tokens_of, c)
    most = min(reserve(c), tokens(got.text) - max(0, over))
    return msgspec.structs.replace(got, text=shortened(got.text, max(1, most), tokens, least=LEAST_CHARACTERS))


def _is_left_out(item: Item, got: SummaryMade, parts: SummaryParts) -> bool:
    """Return whether an item is lost from the view: no model saw it, and neither the summary nor the restored context contains
    it."""
    if item.uuid not in got.unseen or item.uuid in parts.put.elsewhere:
        return False
    return not (is_said(item) and escaped(words_of(item.blocks)) in parts.text)
