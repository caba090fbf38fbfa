"""The commit of a compaction: one write, for notes and summaries alike (B1, C4, C5).

A text that stands for everything up to a place is a boundary, which other readers of such transcripts know, and is followed by a
checkpoint, so that the next resume reads only what is kept. A text for a part behind a kept beginning is a span in the middle: what
stands before it keeps its bytes and its place in the cache (C6). The receipt names every record in view and is proved before anything
is written. A crash between any two lines leaves the old view or the new one, at worst with a title far from the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Literal, NamedTuple, TypeAlias
from uuid import uuid4

import msgspec

from ...core.blocks import ToolUse, Wire, text
from ...core.errors import DiskError
from ...core.log import checkpoint_state
from ...core.receipts import Receipt, Told, open_receipt, write_receipt
from ...core.records import Attachment, Boundary, Checkpoint, Message, Record, Span
from ...core.usage import Usage
from ...core.view import Item
from ..state import Conversation, seconds_between
from .compose import SummaryBudget
from .probes import Fidelity, fidelity
from .restoration import HOOK, NotRestored, Restoration, said_by, tell_restored
from .user_messages import said_in

# What is put back fills the window to this part of the threshold at most: a window that is full again at once helps nobody.
FULL_PERCENT = 75

How: TypeAlias = Literal["", "notes", "summary", "ahead", "rules"]


class Compacted(msgspec.Struct, frozen=True):
    """The outcome. `boundary` is the id to undo or expand it by; empty: nothing was changed, for the reason in `why`."""

    boundary: str = ""
    how: How = ""
    tokens_before: int = 0
    tokens_after: int = 0
    usage: Usage = Usage()  # of the calls it took
    seconds: float = 0.0
    receipt: Receipt | None = None
    left_out: int = 0  # rounds the summary does not cover (C7)
    files: tuple[str, ...] = ()  # put back
    not_back: tuple[NotRestored, ...] = ()  # what should have been put back too, and why it was not
    fidelity: Fidelity | None = None  # facts of what left that the model can still answer (K4)
    why: str = ""

    @property
    def done(self) -> bool:
        return bool(self.boundary)


class CompactionRequest(NamedTuple):
    """What was asked for, and when it began."""

    trigger: str
    began: str
    before: int  # tokens
    partial: bool = False


class Replacement(msgspec.Struct, frozen=True):
    """The text that takes the place of the records that are `gone`, as a layer decided it."""

    decision: str  # id of the boundary or span
    summary: str  # id of the record that holds the text; the decision's own for a span
    text: str
    how: How
    gone: tuple[str, ...]
    put: Restoration  # what is put back behind it
    fates: dict[str, Told] = {}  # of those of the gone whose fate is another than being summarised
    usage: Usage = Usage()
    left_out: int = 0
    saved: int = 0  # tokens

    @property
    def within(self) -> bool:
        """Whether a beginning is kept in front of it."""
        return self.summary == self.decision


def ceiling(c: Conversation) -> int:
    """Return how full the window may be behind a compaction."""
    return c.limits.autocompact * FULL_PERCENT // 100


def budget_of(c: Conversation, room: int) -> SummaryBudget:
    """The user's words come first, but never fill the room alone."""
    policy = c.policy.compact
    users = min(c.limits.scaled(policy.users_tokens), room // 2)
    return SummaryBudget(users=users, files=min(c.limits.scaled(policy.list_tokens), room // 4))


def commit(
    c: Conversation,
    items: Sequence[Item],
    new: Replacement,
    wanted: CompactionRequest,
    *,
    during: AbstractContextManager[None] | None = None,
) -> Compacted:
    """Write the compaction, then measure and report it. `items` is the view it was made of; `during` surrounds the write."""
    leaf, time = c.log.tree.leaf, c.clock()
    gone = set(new.gone)
    receipt = _receipt(items, new, gone)
    tools = {block.name for item in items if item.uuid in gone for block in item.blocks if isinstance(block, ToolUse)}
    data = receipt.to_json() | {"by": new.how, "tools": sorted(tools)}
    last = new.put.records[-1].uuid if new.put.records else leaf if new.within else new.summary
    follow = [*new.put.records, *_session_start(c, new.decision, last)]
    listed = _listed_again(c)
    with during or nullcontext():
        if new.within:
            span = Span(new.decision, leaf, time, "partial", new.gone, new.text, new.saved, data)
            c.append([span, *follow], reason="compaction")
        else:
            kept = tuple(item.uuid for item in items if item.uuid not in gone)
            words = Message(new.summary, new.decision, time, "user", (text(new.text),), summary=True, by=new.decision)
            boundary = Boundary(new.decision, leaf, time, wanted.trigger, wanted.before, kept, data)
            c.append([boundary, words, *follow], reason="compaction")
            _checkpoint(c, boundary)
        c.store.append_lines(listed)
    done = Compacted(
        new.decision,
        new.how,
        wanted.before,
        c.count.tokens,
        new.usage,
        seconds_between(wanted.began, c.clock()),
        receipt,
        new.left_out,
        new.put.files,
        new.put.skipped,
        fidelity(c, items),
    )
    _report(c, done, new, wanted.trigger)
    return done


def _receipt(items: Sequence[Item], new: Replacement, gone: set[str]) -> Receipt:
    """Prove the receipt against the order the records have, before anything is written."""
    other = {**new.put.elsewhere, **new.fates}
    order = [item.uuid for item in items]
    fates = {one: other.get(one, Told("summarised", new.summary)) if one in gone else Told("kept") for one in order}
    receipt = write_receipt(new.decision, order, fates)
    open_receipt(receipt, order)
    return receipt


def _checkpoint(c: Conversation, boundary: Boundary) -> None:
    uuid, parent, time = c.head()
    start = c.store.offset_of(boundary.kept or (boundary.uuid,))
    kept = {name: value() for name, value in c.checkpointed.items()}
    state = checkpoint_state(c.log, count=c.count.to_json(), **kept)
    c.append([Checkpoint(uuid, parent, time, boundary.uuid, start, state)])


def _listed_again(c: Conversation) -> list[bytes]:
    """What a list of sessions shows, to be written again behind a compaction (C4). It is no reason for one to fail."""
    from ...disk.transcripts.session_list import listed_lines, read_session_info

    if c.store.path is None or (shown := read_session_info(c.store.path)) is None:
        return []
    said = said_in(c.log.view.items)
    with suppress(DiskError, OSError):
        return listed_lines(c.store.path, title=shown.title, prompt=said[-1] if said else "", leaf=c.log.tree.leaf)
    return []


def _session_start(c: Conversation, decision: str, parent: str | None) -> Iterator[Record]:
    """Run the session-start hooks again: what they say stands last (C4)."""
    if c.host.session_start is not None:
        for words in said_by(c, "session_start", partial(c.host.session_start, "compact")):
            made = Attachment(str(uuid4()), parent, c.clock(), HOOK, (text(words),), by=decision)
            parent = made.uuid
            yield made


def _report(c: Conversation, done: Compacted, new: Replacement, trigger: str) -> None:
    tell_restored(c, new.put)
    told: Wire = {
        "by": done.how,
        "trigger": trigger,
        "boundary": done.boundary,
        "tokens_before": done.tokens_before,
        "tokens_after": done.tokens_after,
        "left_out": done.left_out,
        "seconds": round(done.seconds, 3),
    }
    if done.fidelity is not None and done.fidelity.facts:
        told["fidelity"] = done.fidelity.to_json()
    if new.within:
        # No checkpoint follows a span: what was learnt of the tokens goes with the event, as with a clearing (T10).
        told |= {"decision": done.boundary, "count": c.count.to_json()}
    c.record_event("compaction", told)
    if done.left_out:
        c.notify(
            f"The summary does not cover {done.left_out} of the oldest rounds, which did not fit into the call that makes it. "
            f"Your own messages in them are carried over; undoing {done.boundary} brings all of it back."
        )
    if c.host.post_compact is not None:
        for words in said_by(c, "post_compact", partial(c.host.post_compact, trigger, new.text)):
            uuid, parent, time = c.head()
            c.append([Attachment(uuid, parent, time, HOOK, (text(words),), by=done.boundary)])
