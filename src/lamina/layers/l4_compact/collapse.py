"""Snip and collapse (C10): a run of messages gives its place to one line, and can be opened again. Entered as spans with their receipts,
undone like any span.

A snip is a person's or a model's word: this range, out. A collapse is the window's: from the oldest on, whole finished turns, until
enough room is made. Neither parts a call from its result, touches what is pinned, or takes what the person said last. `plan_snip` and
`plan_collapse` decide, and are pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from uuid import uuid4

import msgspec

from ...conversation.compaction.cuts import FOLDED, Size, is_said, legal_cuts
from ...conversation.compaction.restoration import PIN
from ...conversation.state import Conversation
from ...conversation.window.estimate import estimate
from ...conversation.window.features import measure_all
from ...core.blocks import Block, Text, Wire
from ...core.errors import InputError, UsageError
from ...core.fence import escape
from ...core.receipts import Fate, Told, write_receipt
from ...core.records import Span
from ...core.view import Item

# Of an id, for people and models to name it by.
SHORT = 8
# Enough of what was asked to know the turn by.
QUOTED = 120


def snip(c: Conversation, first: str, last: str) -> Span:
    """Take a range of messages out of the view; `undo` brings it back."""
    if not c.settings.snip:
        raise UsageError("Taking messages out is switched off (setting lamina.snip).")
    found = plan_snip(c.log.view.items, first, last, size=_size(c), pinned=_pinned(c))
    before = c.count.tokens
    span = _enter(c, "snip", "snipped", found)
    _tell(c, span, {"messages": len(span.ids), "tokens_before": before})
    return span


def collapse(c: Conversation) -> None:
    """Fold the oldest finished turns once the window is as full as the policy says, down to what it says."""
    if not c.settings.collapse:
        return
    full = c.limits.effective * c.policy.compact.collapse_percent // 100
    if c.count.judged < full:
        return
    free = c.count.judged - c.limits.effective * c.policy.compact.collapse_to_percent // 100
    keep = c.limits.scaled(c.policy.compact.collapse_keep)
    items = c.log.view.items
    before = c.count.tokens
    folded = plan_collapse(items, free=free, keep=keep, size=_size(c), pinned=_pinned(c))
    # Newest first: the places of the older ones stay what they are.
    spans = [_enter(c, "collapse", "folded", one) for one in reversed(folded)]
    if spans:
        _tell(c, spans[-1], {"turns": len(spans), "tokens_before": before})


def _enter(c: Conversation, kind: str, fate: Fate, found: Folded) -> Span:
    items = c.log.view.items
    uuid = str(uuid4())
    ids = tuple(item.uuid for item in items[found.start : found.end])
    gone = set(ids)
    fates = {item.uuid: Told(fate, uuid) if item.uuid in gone else Told("kept") for item in items}
    receipt = write_receipt(uuid, [item.uuid for item in items], fates)
    _, parent, time = c.head()
    text = render_fold(kind, found, len(ids), uuid[:SHORT])
    span = Span(uuid, parent, time, kind, ids, text, found.tokens, receipt.to_json())
    c.append([span], reason="collapse" if kind == "collapse" else "snip")
    return span


def _tell(c: Conversation, last: Span, data: Wire) -> None:
    """What was learnt of the tokens goes with the last of the decisions, as with a clearing (T10)."""
    c.record_event(last.kind, {**data, "tokens_after": c.count.tokens, "decision": last.uuid, "count": c.count.to_json()})


def _pinned(c: Conversation) -> set[str]:
    """Messages that are pinned, and the attachments in which a compaction carried pins on (B2)."""
    pins = c.log.view.pins
    carried = {item.uuid for item in c.log.view.items if item.kind.removeprefix(f"attachment:{PIN}") in pins}
    return carried | {pin.target for pin in pins.values() if pin.target is not None}


def _size(c: Conversation) -> Size:
    def size(blocks: Iterable[Block]) -> int:
        return estimate(measure_all(blocks, c.memo), c.count.calibration)

    return size


class Folded(msgspec.Struct, frozen=True):
    """items[start:end] fold into one text."""

    start: int
    end: int
    tokens: int
    words: str  # what the turn began with


def plan_snip(items: Sequence[Item], first: str, last: str, *, size: Size, pinned: Collection[str] = ()) -> Folded:
    """The range between two records, both included, widened until no pair is parted."""
    places = {item.uuid: index for index, item in enumerate(items)}
    for uuid in (first, last):
        if uuid not in places:
            raise InputError(uuid, "is not in view", "name two messages the model sees now")
    start, end = sorted((places[first], places[last]))
    legal = legal_cuts(items)
    start = next(at for at in range(start, -1, -1) if legal[at])
    end = next(at for at in range(end + 1, len(items) + 1) if legal[at])
    for item in items[start:end]:
        if item.uuid in pinned:
            raise InputError(item.uuid, "is pinned", "undo the pin first")
        if item.kind in FOLDED:
            raise InputError(item.uuid, "stands for other messages already", "undo that first, or choose a range without it")
    if end > _last_said(items):
        raise InputError(last, "the range reaches what was said last", "end it before that message")
    return _folded(items, start, end, size)


def plan_collapse(items: Sequence[Item], *, free: int, keep: int, size: Size, pinned: Collection[str] = ()) -> list[Folded]:
    """The oldest finished turns, one by one, until they free so many tokens; the newest `keep` tokens are not touched."""
    legal = legal_cuts(items)
    starts = [index for index, item in enumerate(items) if is_said(item) and legal[index]]
    end = _kept_from(items, keep, size)
    found: list[Folded] = []
    for start, stop in pairwise(starts):
        if free <= 0 or stop > end:
            break
        turn = items[start:stop]
        answered = any(item.role == "assistant" for item in turn)
        if not answered or any(item.uuid in pinned or item.kind in FOLDED for item in turn):
            continue
        found.append(_folded(items, start, stop, size))
        free -= found[-1].tokens
    return found


def render_fold(kind: str, folded: Folded, count: int, node: str) -> str:
    """What stands in its place. The words are somebody's: they cannot pose as ours."""
    words = f' that began with "{escape(folded.words)}"' if folded.words else ""
    what = "A finished turn" if kind == "collapse" else "A part of the conversation"
    how = "was folded away to make room" if kind == "collapse" else "was taken out"
    return f"[{what}{words} {how}: {count} messages, about {folded.tokens:,} tokens. Expand {node} shows it again.]"


def _folded(items: Sequence[Item], start: int, end: int, size: Size) -> Folded:
    said = next((item for item in items[start:end] if is_said(item)), None)
    words = " ".join(block.text for block in said.blocks if isinstance(block, Text)) if said is not None else ""
    short = " ".join(words.split())
    short = short if len(short) <= QUOTED else f"{short[: QUOTED - 1]}…"
    return Folded(start, end, size(block for item in items[start:end] for block in item.blocks), short)


def _last_said(items: Sequence[Item]) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if is_said(items[index])), len(items))


def _kept_from(items: Sequence[Item], keep: int, size: Size) -> int:
    """Where the newest `keep` tokens begin; never behind what was said last."""
    held = 0
    at = last = _last_said(items)
    for index in range(len(items) - 1, -1, -1):
        held += size(items[index].blocks)
        if held > keep:
            at = index + 1
            break
        at = index
    return min(at, last)
