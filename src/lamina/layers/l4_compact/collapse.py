"""Snip and collapse (C10): replace a run of messages by one line that can be expanded again.

A snip removes a range chosen by the user or the model. A collapse makes room in the window: it folds whole finished turns,
starting with the oldest. Neither separates a call from its result, removes a pinned message, or removes the last user message.
Both are logged as spans with receipts and can be undone like any span. `plan_snip` and `plan_collapse` decide, and are pure.
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
from ...language.wording import counted, shorten

# Characters of an id that are shown and can be used to name it.
SHORT = 8
# Characters of the user's message that identify a folded turn.
QUOTED = 120


def snip(c: Conversation, first: str, last: str) -> Span:
    """Remove a range of messages from the view; `undo` restores it."""
    if not c.settings.snip:
        raise UsageError("Snipping messages is turned off (setting lamina.snip).")
    folded = plan_snip(c.log.view.items, first, last, size=_size(c), pinned=_pinned(c))
    before = c.count.tokens
    span = _enter(c, "snip", "snipped", folded)
    _record(c, span, {"messages": len(span.ids), "tokens_before": before})
    return span


def collapse(c: Conversation) -> None:
    """Fold the oldest finished turns when the window reaches `collapse_percent`, until it is down to `collapse_to_percent`."""
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
    # Newest first, so that the positions of the older ones stay valid.
    spans = [_enter(c, "collapse", "folded", turn) for turn in reversed(folded)]
    if spans:
        _record(c, spans[-1], {"turns": len(spans), "tokens_before": before})


def _enter(c: Conversation, kind: str, fate: Fate, folded: Folded) -> Span:
    items = c.log.view.items
    uuid = str(uuid4())
    ids = tuple(item.uuid for item in items[folded.start : folded.end])
    gone = set(ids)
    fates = {item.uuid: Told(fate, uuid) if item.uuid in gone else Told("kept") for item in items}
    receipt = write_receipt(uuid, [item.uuid for item in items], fates)
    _, parent, time = c.head()
    text = render_fold(kind, folded, len(ids), uuid[:SHORT] if c.prompt.reach.expand else "")
    span = Span(uuid, parent, time, kind, ids, text, folded.tokens, receipt.to_json())
    c.append([span], reason="collapse" if kind == "collapse" else "snip")
    return span


def _record(c: Conversation, last: Span, data: Wire) -> None:
    """Log the event with the calibrated token count, attached to the last decision as in a clearing."""
    c.record_event(last.kind, {**data, "tokens_after": c.count.tokens, "decision": last.uuid, "count": c.count.to_json()})


def _pinned(c: Conversation) -> set[str]:
    """Return the ids of pinned messages, and of the attachments in which a compaction carried pins over."""
    pins = c.log.view.pins
    carried = {item.uuid for item in c.log.view.items if item.kind.removeprefix(f"attachment:{PIN}") in pins}
    return carried | {pin.target for pin in pins.values() if pin.target is not None}


def _size(c: Conversation) -> Size:
    def size(blocks: Iterable[Block]) -> int:
        return estimate(measure_all(blocks, c.memo), c.count.calibration)

    return size


class Folded(msgspec.Struct, frozen=True):
    """items[start:end], to be replaced by one line."""

    start: int
    end: int
    tokens: int
    words: str  # the beginning of the user's message


def plan_snip(items: Sequence[Item], first: str, last: str, *, size: Size, pinned: Collection[str] = ()) -> Folded:
    """Return the range between two records (inclusive), widened so that no call is separated from its result."""
    places = {item.uuid: index for index, item in enumerate(items)}
    for uuid in (first, last):
        if uuid not in places:
            raise InputError(uuid, "is not in view", "choose two messages that the model currently sees")
    start, end = sorted((places[first], places[last]))
    legal = legal_cuts(items)
    start = next(cut for cut in range(start, -1, -1) if legal[cut])
    end = next(cut for cut in range(end + 1, len(items) + 1) if legal[cut])
    for item in items[start:end]:
        if item.uuid in pinned:
            raise InputError(item.uuid, "is pinned", "undo the pin first")
        if item.kind in FOLDED:
            raise InputError(item.uuid, "already replaces other messages", "undo that first, or choose a range without it")
    if end > _last_said(items):
        raise InputError(last, "the range includes the last user message", "end it before that message")
    return _folded(items, start, end, size)


def plan_collapse(items: Sequence[Item], *, free: int, keep: int, size: Size, pinned: Collection[str] = ()) -> list[Folded]:
    """Return the oldest finished turns that together free `free` tokens. The newest `keep` tokens are never folded."""
    legal = legal_cuts(items)
    starts = [index for index, item in enumerate(items) if is_said(item) and legal[index]]
    end = _kept_from(items, keep, size)
    turns: list[Folded] = []
    for start, stop in pairwise(starts):
        if free <= 0 or stop > end:
            break
        turn = items[start:stop]
        answered = any(item.role == "assistant" for item in turn)
        if not answered or any(item.uuid in pinned or item.kind in FOLDED for item in turn):
            continue
        turns.append(_folded(items, start, stop, size))
        free -= turns[-1].tokens
    return turns


def render_fold(kind: str, folded: Folded, count: int, node: str) -> str:
    """Return the line that replaces a run of messages. The quoted words are escaped, so they cannot pass as ours. Without `node`, it
    does not say how to see them again."""
    words = f' that began with "{escape(folded.words)}"' if folded.words else ""
    what = "A finished turn" if kind == "collapse" else "A part of the conversation"
    how = "was folded to make room" if kind == "collapse" else "was removed"
    size = f"{counted(count, 'message')}, about {counted(folded.tokens, 'token')}"
    again = f" Expand {node} shows it again." if node else ""
    return f"[{what}{words} {how}: {size}.{again}]"


def _folded(items: Sequence[Item], start: int, end: int, size: Size) -> Folded:
    message = next((item for item in items[start:end] if is_said(item)), None)
    words = " ".join(block.text for block in message.blocks if isinstance(block, Text)) if message is not None else ""
    short = shorten(" ".join(words.split()), QUOTED)
    return Folded(start, end, size(block for item in items[start:end] for block in item.blocks), short)


def _last_said(items: Sequence[Item]) -> int:
    return next((index for index in range(len(items) - 1, -1, -1) if is_said(items[index])), len(items))


def _kept_from(items: Sequence[Item], keep: int, size: Size) -> int:
    """Return the index where the newest `keep` tokens begin, never after the last user message."""
    tokens = 0
    start = last = _last_said(items)
    for index in range(len(items) - 1, -1, -1):
        tokens += size(items[index].blocks)
        if tokens > keep:
            start = index + 1
            break
        start = index
    return min(start, last)
