"""Layer 4 in a turn: a summary takes the place of what was said, and what matters is put back (C1-C9, B1-B3).

    if_needed   before a call: the quick way first (layer 3), then a summary; one made ahead of need is swapped in without waiting
    compact     by hand, in whole, or from or up to a message
    too_long    the provider refused the conversation as too long
    preview     what `compact` would do, without a call and without a change

Nothing is entered before the summary is there and its receipt names every record in view; then all of it is entered in one write. A
crash leaves the old view, or the new one, at worst without the last of what was put back. Forks never come here (C9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from ...conversation.compaction.commit import Compacted, CompactionRequest, How, ceiling
from ...conversation.compaction.cuts import FOLDED, is_said, rounds
from ...conversation.compaction.hooks import CompactHooks
from ...conversation.compaction.restoration import size_of
from ...conversation.state import Conversation
from ...core.effects import Flow
from ...core.errors import PromptTooLong
from ...core.records import Boundary
from ...core.usage import Usage
from ...core.view import Item
from . import prefetch as ahead
from .apply import apply_summary, put_together
from .breaker import ANSWERS_A_TURN, EVENT, NEAR, BreakerLedger, explanation, failed, filled, read_ledger, turns_since, worked
from .plan import Pivot, SummaryPlan, plan
from .summary_call import SummaryFailed, SummaryMade, reserve, summarise, without_model

# A compaction that needs no call: what it did, or None where it can't.
QuickCompaction: TypeAlias = Callable[[Conversation, CompactHooks], Flow[Compacted | None]]

# A summary's median length in tokens, for a preview: 12,181 characters in 470 sessions of one agent.
EXPECTED = 3_000
# An unanswered message above this part of the threshold is cut into the summary instead of being kept as it is.
MOST_KEPT_PERCENT = 50
NOTHING = "there is nothing to summarise yet"
CHANGED = "the conversation was changed while its summary was made"


class CompactionPreview(msgspec.Struct, frozen=True):
    """What a compaction would do. The tokens after it are an estimate: how long the summary is, is not known yet."""

    summarised: tuple[str, ...]
    kept: tuple[str, ...]
    rounds: int
    tokens_before: int
    tokens_after: int
    files: tuple[str, ...]
    pins: int
    why: str = ""  # why it would do nothing


def if_needed(c: Conversation, quick: QuickCompaction) -> Flow[None]:
    """C1: compact when the count has passed its threshold. `quick` is tried first: a compaction without a call (layer 3)."""
    if not c.autocompact or c.settings.collapse:
        return
    count = c.count.judged
    if count < c.limits.autocompact:
        ahead.begin(c, count)
        return
    ledger = _ledger(c)
    if ledger.stopped or _paused(c, ledger, count) or _waits(c, ledger):
        return
    ledger = filled(ledger, _since(c), c.policy.compact)
    if ledger.stopped:
        _write(c, ledger)
    else:
        yield from _by_itself(c, ledger, quick)


def _by_itself(
    c: Conversation, ledger: BreakerLedger, quick: QuickCompaction, refused: PromptTooLong | None = None
) -> Flow[bool]:
    """The quick way first, then a summary; what came of it is judged and kept in the log."""
    before = CompactHooks(c, "auto")
    done = (yield from quick(c, before)) or (yield from _full(c, before, refused=refused))
    if before.refused:
        c.notify(f"Nothing was compacted, because {before.refused.rstrip('.')}. It is asked again after your next message.")
        _write(c, msgspec.structs.replace(ledger, refused=_last_said(c)))
    else:
        judged = worked(ledger, done.boundary, by_hand=False) if done.done else failed(ledger, c.policy.compact)
        _write(c, judged, done.why)
    return done.done


def will_help(c: Conversation) -> bool:
    """Whether a window that is full now will be compacted before the next call: then one more message may be taken (T7)."""
    return c.autocompact and not c.settings.collapse and not _ledger(c).stopped


def compact(c: Conversation, quick: QuickCompaction, *, instructions: str = "", pivot: Pivot | None = None) -> Flow[Compacted]:
    """By hand. The quick way does it where nothing special is asked for (N6)."""
    if not c.settings.compaction:
        return Compacted(why="compaction is switched off (setting lamina.compaction, LAMINA_DISABLE_COMPACT)")
    before = CompactHooks(c, "manual", instructions)
    by_notes = None if before.instructions or pivot is not None else (yield from quick(c, before))
    done = by_notes or (yield from _full(c, before, pivot=pivot))
    if done.done:
        _write(c, worked(BreakerLedger(), done.boundary, by_hand=True))
    return done


def too_long(c: Conversation, error: PromptTooLong, quick: QuickCompaction) -> Flow[bool]:
    """The conversation was refused as too long, whatever the count said: compact once; True where the call may be sent again."""
    ledger = _ledger(c)
    if not c.autocompact or ledger.stopped or _waits(c, ledger):
        return False
    return (yield from _by_itself(c, ledger, quick, error))


def preview(c: Conversation, *, pivot: Pivot | None = None) -> CompactionPreview:
    """B1: what `compact` would do. Notes may do it without a call; this shows the summary's way."""
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
    c: Conversation, before: CompactHooks, *, pivot: Pivot | None = None, refused: PromptTooLong | None = None
) -> Flow[Compacted]:
    wanted = CompactionRequest(before.trigger, c.clock(), c.count.tokens, pivot is not None)
    items = tuple(c.log.view.items)
    made = _plan(c, items, pivot)
    if made.empty and not before.refused:
        return Compacted(why=NOTHING, tokens_before=wanted.before)
    if not before.ask():
        return Compacted(why=before.refused, tokens_before=wanted.before)
    instructions = before.instructions
    how: How = "summary"
    made_ahead = None if instructions or pivot is not None else (yield from ahead.ready(c, items))
    if made_ahead is not None:
        # It stands for all there was then; of that the tail may be kept too.
        how, made = "ahead", SummaryPlan(0, min(made.end, len(made_ahead.items)), len(items))
        asked: SummaryMade | SummaryFailed = SummaryMade(made_ahead.text, made_ahead.usage)
    else:
        asked = yield from summarise(c, items, made, instructions=instructions, partial=wanted.partial, too_long=refused)
    if isinstance(asked, SummaryFailed) and asked.answered and c.count.judged >= c.limits.blocking:
        # The model answers, but with no summary, and nothing more can be said: rules are better than the end.
        asked = without_model(c, items, made, asked.usage)
    now = tuple(c.log.view.items)
    if not isinstance(asked, SummaryFailed) and not _goes_on(items, now):
        asked = SummaryFailed(CHANGED, asked.usage)
    if isinstance(asked, SummaryFailed):
        c.record_event("compaction_failed", {"trigger": before.trigger, "why": asked.why})
        return Compacted(why=asked.why, usage=asked.usage, tokens_before=wanted.before)
    made = SummaryPlan(made.start, made.end, len(now))
    return apply_summary(c, now, made, asked, "rules" if asked.mechanical else how, wanted)


def _goes_on(items: Sequence[Item], now: Sequence[Item]) -> bool:
    """Whether what was summarised still stands. An event loop may have said more while the model wrote: that stays as it is."""
    same = [item.uuid for item in now[: len(items)]] == [item.uuid for item in items]
    return same and not any(item.kind in FOLDED for item in now[len(items) :])


def _plan(c: Conversation, items: Sequence[Item], pivot: Pivot | None) -> SummaryPlan:
    policy, limits = c.policy.compact, c.limits
    # The tail leaves room for the summary and what stands before the messages.
    most = max(0, ceiling(c) - c.count.fixed - reserve(c) // 2)
    return plan(
        items,
        size=lambda blocks: size_of(c, tuple(blocks)),
        tail_min=min(limits.scaled(policy.tail_min), most),
        tail_max=min(limits.scaled(policy.tail_max), most),
        most_kept=limits.autocompact * MOST_KEPT_PERCENT // 100,
        open_calls=c.log.view.flat.open_calls,
        pivot=pivot,
    )


# The breakers' state lies in the log: the last event of its name.


def _ledger(c: Conversation) -> BreakerLedger:
    event = c.log.events.get(EVENT)
    return read_ledger(event.data if event is not None else None)


def _paused(c: Conversation, ledger: BreakerLedger, count: int) -> bool:
    """After an undo the person has the messages back; only the blocking limit takes them away again."""
    return ledger.boundary in c.log.revoked and count < c.limits.blocking - c.limits.scaled(NEAR)


def _waits(c: Conversation, ledger: BreakerLedger) -> bool:
    """A hook said no, and the person has said nothing since: it would say no again before every call."""
    return bool(ledger.refused) and ledger.refused == _last_said(c)


def _last_said(c: Conversation) -> str:
    """The person's last message in view; a name of no record where there is none."""
    return next((item.uuid for item in reversed(c.log.view.items) if is_said(item)), "none")


def _since(c: Conversation) -> int | None:
    newest = next((made for made in reversed(c.log.decisions.values()) if isinstance(made, Boundary)), None)
    if newest is None:
        return None
    return turns_since(c.log.view.items, newest.kept, answers_a_turn=c.limits.scaled(ANSWERS_A_TURN))


def _write(c: Conversation, ledger: BreakerLedger, why: str = "") -> None:
    """Kept in the log; when compaction by itself stops, the person is told."""
    c.record_event(EVENT, ledger.to_json())
    if sentence := explanation(ledger, c.policy.compact):
        c.notify(f"{sentence} The last reason: {why}." if why else sentence)
