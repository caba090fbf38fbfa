"""What a compaction keeps and what its summary stands for (C4, C6, B1, B2). Pure: items and sizes in, a frozen value out.

Theory. The view is cut in three: `before` (kept in front: only where a person asks to summarise *from* a message on), the part that
is summarised, and `after` (kept behind). Three rules say where `after` begins:

- what the person said last and no answer has seen stays as it is, unless it alone would fill the window;
- an answer whose calls are still open stays with them: their results are still to come;
- the policy's tail: the newest tokens verbatim, between its two numbers, from the beginning of a turn if one lies there.

A cut never parts a call from its result. What stands for records elsewhere (a summary, a snip) is never kept: no later reader would
find it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from ...conversation.compaction.cuts import FOLDED, Size, cut_before, is_said, legal_cuts
from ...core.blocks import ToolResult, ToolUse
from ...core.view import Item


class Pivot(msgspec.Struct, frozen=True):
    """C6: `from` this message on, or everything before it (`up_to`)."""

    side: Literal["from", "up_to"]
    uuid: str


class SummaryPlan(msgspec.Struct, frozen=True):
    """items[start:end] are summarised, the rest stays."""

    start: int
    end: int
    count: int  # of all items

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
    open_calls: Collection[str] = (),
    pivot: Pivot | None = None,
) -> SummaryPlan:
    """`most_kept`: an unanswered message above this many tokens is not kept but cut into the summary."""
    legal = legal_cuts(items)
    stays = _open_from(items, legal, open_calls)
    stays = min(stays, _unanswered_from(items, legal, stays, most_kept, size))
    start, end = 0, stays
    if pivot is not None:
        at = cut_before(legal, next((index for index, item in enumerate(items) if item.uuid == pivot.uuid), len(items)))
        start, end = (at, stays) if pivot.side == "from" else (0, min(at, stays))
        if pivot.side == "up_to" and end < (floor := _folded_end(items)):
            end = next(index for index in range(floor, len(legal)) if legal[index])
    elif tail_max > 0:
        end = _tail_from(items, legal, stays, tail_min, tail_max, size)
    # A summary of a summary alone, or of what is put back anyway, would only lose.
    worth_it = any(item.role == "assistant" or is_said(item) for item in items[start:end])
    return SummaryPlan(start, end, len(items)) if worth_it else SummaryPlan(0, 0, len(items))


def _open_from(items: Sequence[Item], legal: Sequence[bool], open_calls: Collection[str]) -> int:
    for index, item in enumerate(items if open_calls else ()):
        if any(isinstance(block, ToolUse) and block.id in open_calls for block in item.blocks):
            return cut_before(legal, index)
    return len(items)


def _unanswered_from(items: Sequence[Item], legal: Sequence[bool], end: int, most: int, size: Size) -> int:
    """Where the words begin that the person said last, if nothing but injected context stands behind them."""
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
    """The shortest tail of at least `least` tokens that begins with a turn, else with any round; else the longest that fits."""
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
    """Behind the last item that stands for others."""
    return next((index + 1 for index in range(len(items) - 1, -1, -1) if items[index].kind in FOLDED), 0)
