"""Commits a compaction in one write, for notes and summaries alike.

A text that replaces everything up to a point is a boundary, which other transcript readers understand. A checkpoint follows it,
so the next resume reads only what was kept. A text that replaces a part after a kept beginning is a span: the messages before it
keep their bytes and stay cached. The receipt names every record in view and is verified before anything is written. A crash
between any two lines leaves the old view or the new one; at worst, the session's title is far from the end of the file.
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
from ...core.records import Attachment, Boundary, Checkpoint, Message, Preserved, Record, Span
from ...core.usage import Usage
from ...core.view import Item
from ...language.text import Text
from ...language.wording import plural
from ..price import remember_summary
from ..repeated_lines import repeat_after_compaction
from ..state import Conversation, seconds_between
from ..triggers import FIRST_REMINDER, compaction_room
from .compose import SummaryBudget
from .probes import Fidelity, fidelity
from .restoration import HOOK, NotRestored, Restoration, said_by, size_of, tell_restored
from .user_messages import said_in

# Restored context may fill the window up to this share of the threshold, both without the base, so that the next compaction is not
# due at once.
FULL_PERCENT = 75

How: TypeAlias = Literal["", "notes", "summary", "ahead", "rules"]


class Compacted(msgspec.Struct, frozen=True):
    """The outcome of a compaction. `boundary` is its id for `undo` and `expand`; if empty, nothing changed, and `why` says why."""

    boundary: str = ""
    how: How = ""
    tokens_before: int = 0
    tokens_after: int = 0
    usage: Usage = Usage()  # of its model calls
    seconds: float = 0.0
    receipt: Receipt | None = None
    left_out: int = 0  # rounds that the summary does not cover
    files: tuple[str, ...] = ()  # files shown again after it
    not_back: tuple[NotRestored, ...] = ()  # files and texts that could not be shown again, and why
    fidelity: Fidelity | None = None  # how many removed facts the model can still answer
    why: str = ""
    instead: str = ""  # why rules made the summary and not the model

    @property
    def done(self) -> bool:
        """Whether anything changed. What a session returns did."""
        return bool(self.boundary)


class CompactionRequest(NamedTuple):
    """A requested compaction: its trigger, its start time and the size of the conversation."""

    trigger: str
    began: str
    before: int  # tokens
    partial: bool = False
    because: str = ""  # why it began before the window was full


class Replacement(msgspec.Struct, frozen=True):
    """The text that a layer chose to replace the records in `gone`."""

    decision: str  # id of the boundary or span
    summary: str  # id of the record that holds the text; for a span, the decision's id
    text: str
    how: How
    gone: tuple[str, ...]
    put: Restoration  # context shown again after it
    fates: dict[str, Told] = {}  # fates of the removed records that were not summarised
    usage: Usage = Usage()
    left_out: int = 0
    saved: int = 0  # tokens
    instead: str = ""  # why rules made the summary and not the model

    @property
    def within(self) -> bool:
        """Whether the replacement follows a kept beginning, as a span."""
        return self.summary == self.decision


def ceiling(c: Conversation) -> int:
    """Return how many tokens the window may hold after a compaction."""
    found = compaction_room(c)
    return found.base + (found.at - found.base) * FULL_PERCENT // 100


def budget_of(c: Conversation, room: int) -> SummaryBudget:
    """Split the room between user messages and the file list. User messages come first but get at most half."""
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
    """Write the compaction, then measure and report it. `items` is the view it was made from; `during` surrounds the write."""
    leaf, time = c.log.tree.leaf, c.clock()
    gone = set(new.gone)
    receipt = _receipt(items, new, gone)
    tools = {block.name for item in items if item.uuid in gone for block in item.blocks if isinstance(block, ToolUse)}
    data = receipt.to_json() | {"by": new.how, "tools": sorted(tools)} | ({"because": wanted.because} if wanted.because else {})
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
            preserved = Preserved(new.summary, tuple(uuid for uuid in kept if uuid in c.log.tree.nodes))
            boundary = Boundary(new.decision, leaf, time, wanted.trigger, wanted.before, kept, data, preserved=preserved)
            c.append([boundary, words, *follow], reason="compaction")
            remember_summary(c, _size_of_rest(c, kept))
            _checkpoint(c, boundary)
            repeat_after_compaction(c, boundary)
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
        instead=new.instead,
    )
    _report(c, done, new, wanted)
    return done


def _size_of_rest(c: Conversation, kept: Sequence[str]) -> int:
    """Return the tokens of the summary and of the context restored after it, without the first reminder, which is always there."""
    here = set(kept)
    rest = [item for item in c.log.view.items if item.uuid not in here and item.kind != FIRST_REMINDER]
    return size_of(c, [block for item in rest for block in item.blocks])


def _receipt(items: Sequence[Item], new: Replacement, gone: set[str]) -> Receipt:
    """Make the receipt and verify it against the order of the records, before anything is written."""
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
    """Return the session's title lines, to be repeated after a compaction. If they cannot be read, the compaction goes ahead."""
    from ...disk.transcripts.search import listed_lines, read_session_info

    if c.store.path is None or (shown := read_session_info(c.store.path)) is None:
        return []
    said = said_in(c.log.view.items)
    with suppress(DiskError, OSError):
        return listed_lines(c.store.path, title=shown.title, prompt=said[-1] if said else "", leaf=c.log.tree.leaf)
    return []


def _session_start(c: Conversation, decision: str, parent: str | None) -> Iterator[Record]:
    """Run the SessionStart hooks again and yield their output as the last records."""
    if c.host.session_start is not None:
        for words in said_by(c, "session_start", partial(c.host.session_start, "compact")):
            made = Attachment(str(uuid4()), parent, c.clock(), HOOK, (text(words),), by=decision)
            parent = made.uuid
            yield made


def _report(c: Conversation, done: Compacted, new: Replacement, wanted: CompactionRequest) -> None:
    tell_restored(c, new.put)
    told: Wire = {
        "by": done.how,
        "trigger": wanted.trigger,
        "boundary": done.boundary,
        "tokens_before": done.tokens_before,
        "tokens_after": done.tokens_after,
        "left_out": done.left_out,
        "seconds": round(done.seconds, 3),
    }
    if done.fidelity is not None and done.fidelity.facts:
        told["fidelity"] = done.fidelity.to_json()
    if new.within:
        # No checkpoint follows a span, so the event carries the calibrated count, as it does for a clearing.
        told |= {"decision": done.boundary, "count": c.count.to_json()}
    if wanted.because:
        told["because"] = wanted.because
    if done.instead:
        told["instead"] = done.instead
    c.record_event("compaction", told)
    if done.instead:
        c.notify(
            Text(
                "The model did not write the summary: {instead}. Lamina made it by rules instead: it lists requests, "
                "files, errors and open tasks, but no conclusions. Undo {boundary} to restore everything.",
                instead=done.instead,
                boundary=done.boundary,
            )
        )
    elif done.left_out:
        c.notify(
            f"The summary does not cover the oldest {plural(done.left_out, 'round', f'{done.left_out:,} rounds')}, "
            "because the model call had no room for more. "
            f"Your own messages are kept. Undo {done.boundary} to restore everything."
        )
    if c.host.post_compact is not None:
        for words in said_by(c, "post_compact", partial(c.host.post_compact, wanted.trigger, new.text)):
            uuid, parent, time = c.head()
            c.append([Attachment(uuid, parent, time, HOOK, (text(words),), by=done.boundary)])
