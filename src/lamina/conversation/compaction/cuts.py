"""Where a view may be cut: between two items such that no call is parted from its result and no answer from itself.

Pure. A cut `i` parts items[:i] from items[i:]. Everything that removes or keeps a run of items asks here first, so a request made of
what is left is always well-formed without a made-up result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from ...core.blocks import Block, Text, ToolResult, ToolUse
from ...core.view import Item

# How many tokens blocks take; the window's own estimate, handed in.
Size: TypeAlias = Callable[[Iterable[Block]], int]

# Items that stand for a run of records of another place in the log. They are no records a boundary could keep.
FOLDED = ("snip", "collapse", "summary", "partial")


class Round(NamedTuple):
    """One call of the model: its answer and all that was put in up to the next one. The first may have no answer."""

    start: int
    end: int


def legal_cuts(items: Sequence[Item]) -> list[bool]:
    """For every i from 0 to len(items): whether a cut there leaves every answer and every pair of call and result whole."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, item in enumerate(items):
        for name in _tied(item):
            first.setdefault(name, index)
            last[name] = index
    change = [0] * (len(items) + 2)
    for name, start in first.items():
        # Cuts behind `start` up to and including the one before the last item of the tie are closed.
        change[start + 1] += 1
        change[last[name] + 1] -= 1
    legal: list[bool] = []
    depth = 0
    for index in range(len(items) + 1):
        depth += change[index]
        legal.append(depth == 0)
    return legal


def _tied(item: Item) -> list[str]:
    """What this item must stay together with, by name."""
    names = [f"key:{item.key}"] if item.role == "assistant" and item.key is not None else []
    for block in item.blocks:
        if isinstance(block, ToolUse):
            names.append(f"call:{block.id}")
        elif isinstance(block, ToolResult):
            names.append(f"call:{block.tool_use_id}")
    return names


def cut_before(legal: Sequence[bool], index: int) -> int:
    """The last place at or before `index` where a cut may be made."""
    return next(at for at in range(min(index, len(legal) - 1), -1, -1) if legal[at])


def rounds(items: Sequence[Item]) -> list[Round]:
    """The items grouped by call of the model, in order; cuts between rounds are legal ones."""
    legal = legal_cuts(items)
    starts = [0] if items else []
    before: Item | None = None
    for index, item in enumerate(items):
        answers = item.role == "assistant" and (before is None or before.role != "assistant" or before.key != item.key)
        if answers and index and legal[index]:
            starts.append(index)
        before = item
    return [Round(start, end) for start, end in pairwise([*starts, len(items)])] if items else []


def is_said(item: Item) -> bool:
    """Whether the person said it: words of theirs, no result and nothing a program put in."""
    return (
        item.kind == "said"
        and item.role == "user"
        and not item.synthetic
        and not any(isinstance(block, ToolResult) for block in item.blocks)
        and any(not isinstance(block, Text) or block.text.strip() for block in item.blocks)
    )
