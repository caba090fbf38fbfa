"""Decide what leaves when the prompt cache has expired: everything is written again anyway, so clearing costs nothing (P2). Pure.

These stay: the newest results, the Reads of the newest calls, results of the last answer (the model has not seen them yet), the
newest inputs of Edit and Write, and the thinking of the current turn and of the newest calls. A result that a later one repeats
leaves even if it is new (repeated.py). Of an input only long values leave; the path stays, and the file has the text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from ...core.blocks import Block, RedactedThinking, Thinking, ToolUse, read_block
from ...core.policy import ColdPolicy
from .old_answers import WRITERS, ShortenedAnswer
from .registry import Clearable, OldAnswer, Registry
from .repeated import PATHS, READ

# A value up to this length is not worth the marker that would replace it.
SHORT_VALUE = 160
CLEARED = "[{count:,} characters cleared to save room.{again}]"
IN_FILE = " The file had them after this call."
AGAIN = " Expand {node} shows them."


class ColdClearing(msgspec.Struct, frozen=True):
    """The results to clear, and the answers whose thinking or inputs to clear."""

    results: list[Clearable]
    thinking: list[OldAnswer]
    inputs: list[OldAnswer]


def plan_cold(registry: Registry, policy: ColdPolicy) -> ColdClearing:
    """Return what leaves before the next request, if the cache has expired. Only the newest rows are looked at one by one."""
    keep_from = max(0, len(registry) - policy.keep_results)
    reads_from = registry.answers - max(1, policy.keep_reads)
    old = min(keep_from, bisect_right(registry.newest_answers, reads_from))
    worthless = registry.repeated.superseded

    def leaves(at: int, row: Clearable) -> bool:
        if row.call.answer >= registry.answers or not registry.is_worth_clearing(row):
            return False
        kept = at >= keep_from or (row.call.tool == READ and row.call.answer > reads_from)
        return not kept or row.block.tool_use_id in worthless

    rows = [row for at, row in enumerate(registry.rows[old:], old) if leaves(at, row)]
    thinking = min(
        bisect_right(registry.thinking, registry.answers - policy.keep_thinking, key=lambda one: one.answer),
        bisect_left(registry.thinking, registry.said, key=lambda one: one.said),
    )
    inputs = max(0, len(registry.written) - policy.keep_inputs)
    return ColdClearing([*registry.oldest(old), *rows], registry.thinking[:thinking], registry.written[:inputs])


def plan_repeated(registry: Registry) -> list[Clearable]:
    """Return the results that later ones repeat, without those of the last answer."""
    worthless = registry.repeated.superseded
    if not worthless:
        return []
    rows = (row for row in registry.rows if row.block.tool_use_id in worthless and row.call.answer < registry.answers)
    return [row for row in rows if registry.is_worth_clearing(row)]


def shortened(
    planned: ColdClearing, *, node: str, tools: Collection[str], failed: Collection[str], measure: Callable[[Block], int]
) -> list[ShortenedAnswer]:
    """Return the planned answers without their thinking or long inputs, except those that would not get shorter.

    `node` is the start of the decision's id, or empty if the model cannot expand it. `failed` are the calls that failed, whose
    text is in no file."""
    thinking = {old.item.uuid for old in planned.thinking}
    inputs = {old.item.uuid for old in planned.inputs}
    again = AGAIN.format(node=node) if node else ""
    found: list[ShortenedAnswer] = []
    for item in {old.item.uuid: old.item for old in (*planned.thinking, *planned.inputs)}.values():
        blocks: tuple[Block, ...] = item.blocks
        if item.uuid in thinking:
            blocks = tuple(block for block in blocks if not isinstance(block, Thinking | RedactedThinking))
        if item.uuid in inputs:
            blocks = tuple(_without_text(block, tools, failed, again) for block in blocks)
        saved = sum(map(measure, item.blocks)) - sum(map(measure, blocks))
        if saved > 0:
            found.append(ShortenedAnswer(item.uuid, blocks, saved, 0))
    return found


def _without_text(block: Block, tools: Collection[str], failed: Collection[str], again: str) -> Block:
    if not isinstance(block, ToolUse) or block.name not in WRITERS or block.name not in tools:
        return block
    where = "" if block.id in failed else IN_FILE
    return read_block({**block.wire, "input": _cut(block.input, "", where, again)})


def _cut(value: Any, name: str, where: str, again: str) -> Any:
    match value:
        case str() if len(value) > SHORT_VALUE and name not in PATHS:
            # An edit leaves its new text in the file, not the old one.
            return CLEARED.format(count=len(value), again=("" if name == "old_string" else where) + again)
        case dict():
            return {key: _cut(one, key, where, again) for key, one in value.items()}
        case list():
            return [_cut(one, name, where, again) for one in value]
        case _:
            return value
