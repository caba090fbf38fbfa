"""Snip and collapse in a conversation (C10): decided by the room, entered as spans with their receipts, undone like any span."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from ...conversation.compaction.cuts import Size
from ...conversation.compaction.restoration import PIN
from ...conversation.state import Conversation
from ...conversation.window.estimate import estimate
from ...conversation.window.features import measure_all
from ...core.blocks import Block, Wire
from ...core.errors import UsageError
from ...core.receipts import Fate, Told, write_receipt
from ...core.records import Span
from . import fold

# Of an id, for people and models to name it by.
SHORT = 8


def snip(c: Conversation, first: str, last: str) -> Span:
    """Take a range of messages out of the view; `undo` brings it back."""
    if not c.settings.snip:
        raise UsageError("Taking messages out is switched off (setting lamina.snip).")
    found = fold.snip(c.log.view.items, first, last, size=_size(c), pinned=_pinned(c))
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
    folded = fold.collapse(items, free=free, keep=keep, size=_size(c), pinned=_pinned(c))
    # Newest first: the places of the older ones stay what they are.
    spans = [_enter(c, "collapse", "folded", one) for one in reversed(folded)]
    if spans:
        _tell(c, spans[-1], {"turns": len(spans), "tokens_before": before})


def _enter(c: Conversation, kind: str, fate: Fate, found: fold.Folded) -> Span:
    items = c.log.view.items
    uuid = str(uuid4())
    ids = tuple(item.uuid for item in items[found.start : found.end])
    gone = set(ids)
    fates = {item.uuid: Told(fate, uuid) if item.uuid in gone else Told("kept") for item in items}
    receipt = write_receipt(uuid, [item.uuid for item in items], fates)
    _, parent, time = c.head()
    text = fold.text(kind, found, len(ids), uuid[:SHORT])
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
