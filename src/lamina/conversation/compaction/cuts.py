"""Finds where a view may be cut: between two items, never between a call and its result or inside an answer.

Pure. A cut `i` separates items[:i] from items[i:]. All code that removes or keeps a run of items uses these cuts, so the
remaining request is always well-formed and needs no synthetic results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from ...core.blocks import Block, Text, ToolResult, ToolUse
from ...core.view import Item

# A function that returns the tokens of blocks: the window's estimate, passed in.
Size: TypeAlias = Callable[[Iterable[Block]], int]

# Items that replace a run of other records. A boundary cannot keep them.
FOLDED = ("snip", "collapse", "summary", "partial")


class Round(NamedTuple):
    """One model call: its answer and all input up to the next one. The first round may have no answer."""

    start: int
    end: int


def legal_cuts(items: Sequence[Item]) -> list[bool]:
    """Return for every i from 0 to len(items) whether a cut there keeps each answer and each pair of call and result together."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, item in enumerate(items):
        for name in _tied(item):
            first.setdefault(name, index)
            last[name] = index
    change = [0] * (len(items) + 2)
    for name, start in first.items():
        # Cuts after `start`, up to the one before the last tied item, are illegal.
        change[start + 1] += 1
        change[last[name] + 1] -= 1
    legal: list[bool] = []
    depth = 0
    for index in range(len(items) + 1):
        depth += change[index]
        legal.append(depth == 0)
    return legal


def _tied(item: Item) -> list[str]:
    """Return the keys of the groups that this item must stay together with."""
    names = [f"key:{item.key}"] if item.role == "assistant" and item.key is not None else []
    for block in item.blocks:
        if isinstance(block, ToolUse):
            names.append(f"call:{block.id}")
        elif isinstance(block, ToolResult):
            names.append(f"call:{block.tool_use_id}")
    return names


def cut_before(legal: Sequence[bool], index: int) -> int:
    """Return the last legal cut at or before `index`."""
    return next(cut for cut in range(min(index, len(legal) - 1), -1, -1) if legal[cut])


def rounds(items: Sequence[Item]) -> list[Round]:
    """Group the items by model call, in order. Cuts between rounds are legal."""
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
    """Return whether the user wrote this item: not a tool result, and not inserted by a program."""
    return (
        item.kind == "said"
        and item.role == "user"
        and not item.synthetic
        and not any(isinstance(block, ToolResult) for block in item.blocks)
        and any(not isinstance(block, Text) or block.text.strip() for block in item.blocks)
    )
