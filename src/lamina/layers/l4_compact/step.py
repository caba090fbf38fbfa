"""Layer 4 in a turn: a summary replaces old messages, and important context is restored after it (C1-C9, B1-B3).

    for_model   before a call: compact because the model asked for it (`answer_request`)
    if_needed   before a call: compact with notes if possible (layer 3), else with a summary; a prefetched one needs no waiting
    compact     compact on request: everything, from a message on, or up to a message
    too_long    compact after the provider rejected the conversation as too long
    preview     show what `compact` would do, without a model call and without a change

Nothing is appended before the summary is complete and its receipt covers every record in view. Then everything is appended in one
write. A crash leaves the old view or the new one, at worst without the last restored attachments. Forks never compact (C9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from ...conversation import price
from ...conversation.compaction.commit import Compacted, CompactionRequest, How, ceiling
from ...conversation.compaction.cuts import FOLDED, is_said, rounds
from ...conversation.compaction.hooks import CompactHooks
from ...conversation.compaction.restoration import size_of
from ...conversation.state import Conversation
from ...conversation.triggers import CompactionRoom, compaction_room, nearly_full
from ...core.effects import Flow
from ...core.errors import NotCompacted, PromptTooLong
from ...core.records import Boundary
from ...core.usage import Usage
from ...core.view import Item
from ...language.text import Text
from . import prefetch as ahead
from .apply import apply_summary, put_together
from .breaker import (
    ANSWERS_A_TURN,
    EVENT,
    BreakerLedger,
    explanation,
    failed,
    filled,
    gave_up_on_model,
    read_ledger,
    turns_since,
    worked,
)
from .plan import Pivot, SummaryPlan, plan
from .summary_call import SummaryFailed, SummaryMade, reserve, summarise, without_model

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
    count, ledger, found = c.count.judged, _ledger(c), compaction_room(c)
    if count < found.at:
        if not found.enough:
            _tell_no_room(c, found)
        yield from _before_full(c, ledger, quick)
        return
    full = count >= c.limits.blocking
    if ledger.stopped == "thrashing" or _paused(c, ledger, count):
        return
    if not full and (ledger.stopped or _is_vetoed(c, ledger)):
        return
    ledger = filled(ledger, _turns_since_compaction(c), c.policy.compact)
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
    if due is None or ahead.is_running(c):
        ahead.begin(c, c.count.judged)
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
    done = by_notes or (yield from _full(c, hooks, needed=needed, refused=refused, skip_model=skip))
    if hooks.refused:
        c.notify(
            Text(
                "The conversation was not compacted: {refused}. Lamina tries again after your next message.",
                refused=hooks.refused.rstrip("."),
            )
        )
        _write(c, msgspec.structs.replace(ledger, refused=_last_said(c)))
    elif done.done:
        _write(c, worked(ledger, done.boundary, by_hand=False, by_rules=bool(done.instead)))
    elif needed and done.why != CHANGED:
        _write(c, failed(ledger, c.policy.compact), done.why)
    return done


def answer_request(c: Conversation, instructions: str) -> str:
    """Note the model's request for a compaction, and return what to tell the model.

    Nothing is appended here: a tool may run in another thread. A request is turned down if too little was added since the last
    compaction, so a model that keeps asking costs no calls."""
    count, event, found = c.count.judged, c.log.events.get("compaction"), compaction_room(c)
    most = found.at - found.base
    least = found.base + most * LEAST_REQUESTED_PERCENT // 100
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
    done = yield from _compact_automatically(c, ledger, quick, full=False, instructions=instructions, needed=False)
    if done.done:
        c.notify(
            Text(
                "The model asked for a compaction: {tokens_before:,} to {tokens_after:,} tokens.",
                tokens_before=done.tokens_before,
                tokens_after=done.tokens_after,
            )
        )
    else:
        c.notify(Text("The model asked for a compaction, which was not possible: {why}.", why=done.why.rstrip(".")))


def will_help(c: Conversation) -> bool:
    """Return whether a full window will be compacted before the next call, so that one more message can be accepted."""
    return c.autocompact and not c.settings.collapse and _ledger(c).stopped != "thrashing"


def compact(c: Conversation, quick: QuickCompaction, *, instructions: str = "", pivot: Pivot | None = None) -> Flow[Compacted]:
    """Compact on request, or raise NotCompacted. `quick` is used unless there are instructions or a pivot message."""
    if not c.settings.compaction:
        raise NotCompacted("compaction is turned off (setting lamina.compaction or LAMINA_DISABLE_COMPACT)")
    hooks = CompactHooks(c, "manual", instructions)
    by_notes = None if hooks.instructions or pivot is not None else (yield from quick(c, hooks))
    done = by_notes or (yield from _full(c, hooks, needed=False, pivot=pivot))
    if not done.done:
        raise NotCompacted(done.why or NOTHING)
    _write(c, worked(BreakerLedger(), done.boundary, by_hand=True))
    return done


def too_long(c: Conversation, error: PromptTooLong, quick: QuickCompaction) -> Flow[bool]:
    """Compact once after the provider rejected the conversation as too long. Return whether the call can be retried."""
    ledger = _ledger(c)
    if not c.autocompact or ledger.stopped == "thrashing":
        return False
    return (yield from _compact_automatically(c, ledger, quick, full=True, refused=error)).done


def preview(c: Conversation, *, pivot: Pivot | None = None) -> CompactionPreview:
    """Return what `compact` would do with a summary. The notes may still replace the summary, which is not shown here."""
    items = tuple(c.log.view.items)
    made, before = _plan(c, items, pivot), c.count.tokens
    part = items[made.start : made.end]
    kept = tuple(item.uuid for item in (*items[: made.start], *items[made.end :]))
    if made.empty:
        return CompactionPreview((), kept, 0, before, before, (), len(c.log.view.pins), NOTHING)
    parts = put_together(
        c, items, made, SummaryMade("", Usage()), CompactionRequest("manual", "", before, pivot is not None), fresh=False
    )
    return CompactionPreview(
        tuple(item.uuid for item in part),
        kept,
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
    made = _plan(c, items, pivot, refused)
    if made.empty and not hooks.refused:
        return Compacted(why=NOTHING, tokens_before=wanted.before)
    if not hooks.ask():
        return Compacted(why=hooks.refused, tokens_before=wanted.before)
    how: How = "summary"
    made_ahead = None if hooks.instructions or pivot is not None else (yield from ahead.ready(c, items))
    if made_ahead is not None:
        # A prefetched summary covers the whole conversation of its time; the tail of it may be kept in addition.
        how, made = "ahead", SummaryPlan(0, min(made.end, len(made_ahead.items)), len(items))
        asked: SummaryMade | SummaryFailed = SummaryMade(made_ahead.text, made_ahead.usage)
    elif skip_model:
        asked = SummaryFailed(skip_model, Usage())
    else:
        asked = yield from summarise(c, items, made, instructions=hooks.instructions, partial=wanted.partial, too_long=refused)
    now = tuple(c.log.view.items)
    if _is_unchanged(items, now):
        done = _applied(c, now, SummaryPlan(made.start, made.end, len(now)), asked, how, wanted, needed=needed)
    elif hooks.trigger == "auto" and c.count.judged >= c.limits.blocking and not (made := _plan(c, now, pivot)).empty:
        done = _applied(c, now, made, SummaryFailed(CHANGED, asked.usage), how, wanted, needed=True)
    else:
        done = Compacted(why=CHANGED)
    if not done.done:
        c.record_event("compaction_failed", {"trigger": hooks.trigger, "why": done.why, "since": price.last_item(c)})
        return msgspec.structs.replace(done, usage=asked.usage, tokens_before=wanted.before)
    return done


def _applied(
    c: Conversation,
    items: Sequence[Item],
    made: SummaryPlan,
    asked: SummaryMade | SummaryFailed,
    how: How,
    wanted: CompactionRequest,
    *,
    needed: bool,
) -> Compacted:
    """Commit the model's summary. If there is none, or it saves nothing, rules make one, provided that room is needed: a compaction
    requested below the threshold leaves the conversation as it is."""
    if isinstance(asked, SummaryMade):
        done = apply_summary(c, items, made, asked, "rules" if asked.mechanical else how, wanted)
    else:
        done = Compacted(why=asked.why)
    needed = needed or c.count.judged >= compaction_room(c).at
    if done.done or not needed or (isinstance(asked, SummaryMade) and asked.mechanical):
        return done
    return apply_summary(c, items, made, without_model(c, items, made, done.why, asked.usage), "rules", wanted)


def _is_unchanged(items: Sequence[Item], now: Sequence[Item]) -> bool:
    """Return whether the summarised items are unchanged. Items added while the model was writing (async sessions) are kept."""
    same = [item.uuid for item in now[: len(items)]] == [item.uuid for item in items]
    return same and not any(item.kind in FOLDED for item in now[len(items) :])


def _plan(c: Conversation, items: Sequence[Item], pivot: Pivot | None, refused: PromptTooLong | None = None) -> SummaryPlan:
    policy, limits = c.policy.compact, c.limits
    # The tail leaves room for the summary and the base.
    found = compaction_room(c)
    most = max(0, ceiling(c) - found.base - reserve(c) // 2)
    return plan(
        items,
        size=lambda blocks: size_of(c, tuple(blocks)),
        tail_min=min(limits.scaled(policy.tail_min), most),
        tail_max=min(limits.scaled(policy.tail_max), most),
        most_kept=(found.at - found.base) * MOST_KEPT_PERCENT // 100,
        most_round=_most_round(c, found.base, refused),
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


def _paused(c: Conversation, ledger: BreakerLedger, count: int) -> bool:
    """Return whether compaction is paused after an undo: the user wanted the messages back, so only the blocking limit ends
    it."""
    return ledger.boundary in c.log.revoked and count < nearly_full(c)


def _is_vetoed(c: Conversation, ledger: BreakerLedger) -> bool:
    """Return whether a hook vetoed compaction and there is no new user message. Asking before every call would get the same
    veto."""
    return bool(ledger.refused) and ledger.refused == _last_said(c)


def _last_said(c: Conversation) -> str:
    """Return the id of the last user message in view, or "none", which no record has."""
    return next((item.uuid for item in reversed(c.log.view.items) if is_said(item)), "none")


def _turns_since_compaction(c: Conversation) -> int | None:
    newest = next((made for made in reversed(c.log.decisions.values()) if isinstance(made, Boundary)), None)
    if newest is None:
        return None
    return turns_since(c.log.view.items, newest.kept, answers_a_turn=c.limits.scaled(ANSWERS_A_TURN))


def _write(c: Conversation, ledger: BreakerLedger, why: str = "") -> None:
    """Log the state of the breaker, and notify the user if it has just tripped."""
    c.record_event(EVENT, ledger.to_json())
    found = compaction_room(c)
    if sentence := explanation(ledger, c.policy.compact, base=0 if found.enough else found.base):
        c.notify(Text("{sentence} Last reason: {why}.", sentence=sentence, why=why) if why else sentence)
