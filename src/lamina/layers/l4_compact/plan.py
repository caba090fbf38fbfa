"""Decide what a compaction keeps and what it summarises (C4, C6, B1, B2). Pure: items and sizes in, a frozen value out.

The view is cut into three parts: `before`, the summarised part, and `after`. The first and the last are kept; `before` is empty
unless the user asks to summarise *from* a message on. Four rules decide where `after` begins:

- user messages that no answer has seen yet stay, unless they alone would fill the window;
- tool results that no answer has seen yet stay with their calls, under the same condition;
- an answer with open calls stays, since their results are still to come;
- the policy's tail stays, unless nothing would be left to summarise: the newest tokens, between its two limits, from the beginning of a
  turn if possible.

A cut never separates a call from its result. Items that replace other records (a summary, a snip) are never kept, since the
replaced records could not be found again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from ...conversation.compaction.cuts import FOLDED, Size, cut_before, is_said, legal_cuts
from ...core.blocks import ToolResult, ToolUse
from ...core.view import Item


class Pivot(msgspec.Struct, frozen=True):
    """The message chosen by the user: summarise `from` it on, or `up_to` it (everything before it)."""

    side: Literal["from", "up_to"]
    uuid: str


class SummaryPlan(msgspec.Struct, frozen=True):
    """items[start:end] are summarised, the rest stays."""

    start: int
    end: int
    count: int  # number of all items

    @property
    def empty(self) -> bool:
        return self.start >= self.end


def plan(
    items: Sequence[Item],
    *,
    size: Size,
    tail_min: int = 0,
    tail_max: int = 0,
    most_kept: int = 0,
    most_round: int = 0,
    open_calls: Collection[str] = (),
    pivot: Pivot | None = None,
) -> SummaryPlan:
    """Decide which part to summarise.

    Unanswered messages of more than `most_kept` tokens, and an unanswered round of more than `most_round`, are summarised instead
    of kept. 0 means no limit."""
    legal = legal_cuts(items)
    stays = _open_from(items, legal, open_calls)
    if stays == len(items):
        stays = _unseen_round_from(items, legal, most_round, size)
    stays = min(stays, _unanswered_from(items, legal, stays, most_kept, size))
    start, end = 0, stays
    if pivot is not None:
        at = cut_before(legal, next((index for index, item in enumerate(items) if item.uuid == pivot.uuid), len(items)))
        start, end = (at, stays) if pivot.side == "from" else (0, min(at, stays))
        if pivot.side == "up_to" and end < (floor := _folded_end(items)):
            end = next(index for index in range(floor, len(legal)) if legal[index])
    elif tail_max > 0:
        shorter = _tail_from(items, legal, stays, tail_min, tail_max, size)
        # A tail that holds the whole conversation would leave nothing to summarise, and a full window full.
        end = shorter if _is_worth_it(items[:shorter]) else stays
    return SummaryPlan(start, end, len(items)) if _is_worth_it(items[start:end]) else SummaryPlan(0, 0, len(items))


def _is_worth_it(items: Sequence[Item]) -> bool:
    """Return whether there is something to summarise. Only a summary, or restored context, would lose detail and gain nothing."""
    return any(item.role == "assistant" or is_said(item) for item in items)


def _open_from(items: Sequence[Item], legal: Sequence[bool], open_calls: Collection[str]) -> int:
    for index, item in enumerate(items if open_calls else ()):
        if any(isinstance(block, ToolUse) and block.id in open_calls for block in item.blocks):
            return cut_before(legal, index)
    return len(items)


def _unseen_round_from(items: Sequence[Item], legal: Sequence[bool], most: int, size: Size) -> int:
    """Return where the last answer begins if its tool results are still unanswered, so that the model sees them."""
    start = len(items)
    for index in range(len(items) - 1, -1, -1):
        if items[index].role == "assistant" or items[index].kind in FOLDED:
            break
        if any(isinstance(block, ToolResult) for block in items[index].blocks):
            start = index
    start = cut_before(legal, start)
    kept = size(block for item in items[start:] for block in item.blocks)
    return start if kept <= most or not most else len(items)


def _unanswered_from(items: Sequence[Item], legal: Sequence[bool], end: int, most: int, size: Size) -> int:
    """Return where the unanswered user messages begin, if only injected context follows them."""
    start = end
    for index in range(end - 1, -1, -1):
        item = items[index]
        if item.role == "assistant" or item.kind in FOLDED or any(isinstance(block, ToolResult) for block in item.blocks):
            break
        if is_said(item):
            start = index
    kept = size(block for item in items[start:end] for block in item.blocks)
    return start if legal[start] and (kept <= most or not most) else end


def _tail_from(items: Sequence[Item], legal: Sequence[bool], stays: int, least: int, most: int, size: Size) -> int:
    """Return where the tail begins.

    It is the shortest tail of at least `least` tokens that begins with a turn, else with any round, else the longest that
    fits."""
    floor = _folded_end(items)
    held = longest = size(block for item in items[stays:] for block in item.blocks)
    best = stays
    for at in range(stays - 1, floor - 1, -1):
        held += size(items[at].blocks)
        if held > most:
            break
        if not legal[at]:
            continue
        if longest < least:
            best, longest = at, held
        if held >= least and is_said(items[at]):
            return at
    return best


def _folded_end(items: Sequence[Item]) -> int:
    """Return the index after the last item that replaces others."""
    return next((index + 1 for index in range(len(items) - 1, -1, -1) if items[index].kind in FOLDED), 0)
