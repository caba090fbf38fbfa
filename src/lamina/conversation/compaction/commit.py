"""Entering a compaction: the summary's text is put together, the receipt is proved, and all of it is written at once (B1, C4, C5).

A summary of everything up to a place is a boundary, which other readers of such transcripts know; a summary of a part behind a kept
beginning is a span in the middle, so that what stands before it keeps its bytes and its place in the cache (C6).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias
from uuid import uuid4

import msgspec

from ...core.blocks import ToolUse, Wire, text
from ...core.receipts import Receipt, Told, open_receipt, write_receipt
from ...core.records import Attachment, Boundary, Message, Span
from ...core.usage import Usage
from ...core.view import Item
from ...layers.l4_compact.plan import Plan, fates
from ...layers.l4_compact.summary_call import Got, reserve
from .. import revision
from ..state import Conversation, seconds_between
from .compose import Budget, Made, Way, compose
from .cuts import is_said
from .fidelity import fidelity
from .files import used_in
from .probes import Fidelity
from .restoration import HOOK, Put, Skipped, put_back, said_by, size_of, tell_restored, tokens_of
from .user_messages import LEAST_CHARACTERS, escaped, said_in, shortened, words_of

# What is put back fills the window to this part of the threshold at most: a window that is full again at once helps nobody.
FULL_PERCENT = 75

How: TypeAlias = Literal["", "notes", "summary", "ahead", "rules"]


class Compacted(msgspec.Struct, frozen=True):
    """What came of it. `boundary` is the id to undo or expand it by; empty: nothing was changed, for the reason in `why`."""

    boundary: str = ""
    how: How = ""
    tokens_before: int = 0
    tokens_after: int = 0
    usage: Usage = Usage()  # of the calls it took
    seconds: float = 0.0
    receipt: Receipt | None = None
    left_out: int = 0  # rounds the summary does not cover (C7)
    files: tuple[str, ...] = ()  # put back
    not_back: tuple[Skipped, ...] = ()  # what should have been put back too, and why it was not
    fidelity: Fidelity | None = None  # facts of what left that the model can still answer (K4)
    why: str = ""

    @property
    def done(self) -> bool:
        return bool(self.boundary)


class Wanted(NamedTuple):
    """What was asked for, and when it began."""

    trigger: str
    partial: bool
    began: str
    before: int  # tokens


class Parts(NamedTuple):
    """The summary's text, what is put back behind it, and the tokens of the view they make."""

    text: str
    put: Put
    after: int


def ceiling(c: Conversation) -> int:
    return c.limits.autocompact * FULL_PERCENT // 100


def put_together(
    c: Conversation,
    items: Sequence[Item],
    made: Plan,
    got: Got,
    wanted: Wanted,
    *,
    by: str = "",
    parent: str | None = None,
    fresh: bool = True,
) -> Parts:
    """What a compaction would leave in view. Nothing is written; with `fresh` off nothing is asked of the host that might change it,
    so a preview may ask too."""

    def tokens(words: str) -> int:
        return tokens_of(c, words)

    part = items[made.start : made.end]
    kept = [*items[: made.start], *items[made.end :]]
    stays = c.count.fixed + size_of(c, [block for item in kept for block in item.blocks])
    room = max(0, ceiling(c) - stays - tokens(got.text))
    written = compose(
        got.text,
        said=said_in(part),
        files=used_in(part, str(c.cwd)),
        way=_way(c, by),
        budget=budget_of(c, room),
        tokens=tokens,
        made=Made(wanted.partial, got.mechanical, got.dropped, go_on=wanted.trigger == "auto"),
    )
    size = tokens(written)
    put = put_back(c, items, by=by, parent=parent, kept=kept, room=max(0, ceiling(c) - stays - size), fresh=fresh)
    return Parts(written, put, stays + size + size_of(c, [block for record in put.records for block in record.blocks]))


def budget_of(c: Conversation, room: int) -> Budget:
    """The person's words come first, but never fill the room alone."""
    policy = c.policy.compact
    users = min(c.limits.scaled(policy.users_tokens), room // 2)
    return Budget(users=users, files=min(c.limits.scaled(policy.list_tokens), room // 4))


def _way(c: Conversation, node: str) -> Way:
    results = c.directory / "tool-results" if c.directory is not None else None
    spilled = str(results) if results is not None and results.is_dir() else ""
    return Way(node, str(c.store.path or ""), spilled)


def enter(c: Conversation, items: Sequence[Item], made: Plan, got: Got, how: How, wanted: Wanted) -> Compacted:
    decision, leaf, time = c.head()
    within = made.start > 0
    summary = decision if within else str(uuid4())
    parent = leaf if within else summary
    parts = put_together(c, items, made, got, wanted, by=decision, parent=parent)
    if parts.after > ceiling(c) and (short := _within_reserve(c, got)) != got:
        got, parts = short, put_together(c, items, made, short, wanted, by=decision, parent=parent)
    receipt = _receipt(items, made, got, parts, decision, summary)
    # By the same estimate on both sides: what was reported may measure with another rule.
    was = c.count.fixed + size_of(c, [block for item in items for block in item.blocks])
    if parts.after >= was:
        why = f"it would not get smaller ({was:,} tokens before, {parts.after:,} after)"
        c.record_event("compaction_failed", {"trigger": wanted.trigger, "why": why})
        return Compacted(why=why, usage=got.usage, tokens_before=wanted.before)
    last = parts.put.records[-1].uuid if parts.put.records else leaf if within else summary
    follow = [*parts.put.records, *_hooks(c, decision, last)]
    data = receipt.to_json() | {"by": how, "tools": _tools(items[made.start : made.end])}
    if within:
        ids = tuple(item.uuid for item in items[made.start : made.end])
        span = Span(decision, leaf, time, "partial", ids, parts.text, max(0, was - parts.after), data)
        listed = revision.listed_again(c)
        c.append([span, *follow], reason="compaction")
        c.store.append_lines(listed)
    else:
        kept = tuple(item.uuid for item in items[made.end :])
        words = Message(summary, decision, time, "user", (text(parts.text),), summary=True, by=decision)
        revision.compact(c, Boundary(decision, leaf, time, wanted.trigger, wanted.before, kept, data), [words, *follow])
    done = Compacted(decision, how, wanted.before, c.count.tokens, got.usage, seconds_between(wanted.began, c.clock()), receipt)
    done = msgspec.structs.replace(
        done, left_out=got.dropped, files=parts.put.files, not_back=parts.put.skipped, fidelity=fidelity(c, items)
    )
    _tell(c, done, parts, wanted.trigger)
    return done


def _within_reserve(c: Conversation, got: Got) -> Got:
    """A server that does not keep to the length it was given: a summary that fills the window could never be summarised away."""
    words = shortened(got.text, reserve(c), lambda text: tokens_of(c, text), least=LEAST_CHARACTERS)
    return msgspec.structs.replace(got, text=words)


def _receipt(items: Sequence[Item], made: Plan, got: Got, parts: Parts, decision: str, summary: str) -> Receipt:
    """B1: proved against the order the records have, before anything is entered."""
    elsewhere = dict(parts.put.elsewhere)
    for item in items[made.start : made.end]:
        carried = is_said(item) and escaped(words_of(item.blocks)) in parts.text
        if item.uuid in got.unseen and item.uuid not in elsewhere and not carried:
            elsewhere[item.uuid] = Told("left_out")
    order = [item.uuid for item in items]
    receipt = write_receipt(decision, order, fates(items, made, summary, elsewhere=elsewhere))
    open_receipt(receipt, order)
    return receipt


def _tools(items: Sequence[Item]) -> list[str]:
    """C5: the tools that were called before the boundary."""
    return sorted({block.name for item in items for block in item.blocks if isinstance(block, ToolUse)})


def _hooks(c: Conversation, decision: str, parent: str | None) -> list[Attachment]:
    """Session-start hooks run again: what they say stands last (C4)."""
    made: list[Attachment] = []
    if c.host.session_start is not None:
        for words in said_by(c, "session_start", partial(c.host.session_start, "compact")):
            made.append(Attachment(str(uuid4()), parent, c.clock(), HOOK, (text(words),), by=decision))
            parent = made[-1].uuid
    return made


def as_told(done: Compacted, trigger: str) -> Wire:
    """The event of a compaction, whichever way it was made (K5)."""
    told: Wire = {
        "by": done.how,
        "trigger": trigger,
        "boundary": done.boundary,
        "tokens_before": done.tokens_before,
        "tokens_after": done.tokens_after,
        "left_out": done.left_out,
        "seconds": round(done.seconds, 3),
    }
    return told | ({"fidelity": done.fidelity.to_json()} if done.fidelity is not None and done.fidelity.facts else {})


def _tell(c: Conversation, done: Compacted, parts: Parts, trigger: str) -> None:
    tell_restored(c, parts.put)
    told = as_told(done, trigger)
    if isinstance(c.log.decisions.get(done.boundary), Span):
        # No checkpoint follows a span: what was learnt of the tokens goes with the event, as with a clearing (T10).
        told |= {"decision": done.boundary, "count": c.count.to_json()}
    c.record_event("compaction", told)
    if done.left_out:
        c.notify(
            f"The summary does not cover {done.left_out} of the oldest rounds, which did not fit into the call that makes it. "
            f"Your own messages in them are carried over; undoing {done.boundary} brings all of it back."
        )
    if c.host.post_compact is not None:
        for words in said_by(c, "post_compact", partial(c.host.post_compact, trigger, parts.text)):
            uuid, parent, time = c.head()
            c.append([Attachment(uuid, parent, time, HOOK, (text(words),), by=done.boundary)])
