"""Decide which old answers to shorten: the inputs of their calls, such as the text of a written file, and their own text. Pure.

Results are cleared first. This step is for conversations that are large without large results: a model that writes one file after
another, or explains at length. Short values of an input stay, so a path or a command is still there. Of a long value the beginning
stays, with a marker that says how to see the rest. The last answers are never shortened, and neither is an answer that the user
pinned or restored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from ...core.blocks import Block, Text, ToolResult, ToolUse, read_block, text
from ...core.view import Item
from .registry import MCP

# Characters of an id that are shown and can be used to name it.
SHORT_ID = 8
# Characters of a long value or text that stay visible.
INPUT_HEAD, TEXT_HEAD = 200, 600
# A value up to this many times its head is not worth a marker.
WORTH_IT = 3
# Tools whose successful calls leave the text in a file.
WRITERS = ("Write", "Edit", "MultiEdit", "NotebookEdit")

GONE = "[{count:,} more characters were cleared from this {what} to save room. {where}Expand {node} shows them.]"
IN_FILE = "The file has them, unless it was changed since. "


class ShortenedAnswer(NamedTuple):
    """One record of an answer as it is shown from now on. `before` is the number of tokens in view before it."""

    record: str
    blocks: tuple[Block, ...]
    saved: int
    before: int


def plan_answers(
    items: Sequence[Item],
    *,
    node: str,
    tools: Collection[str],
    spared: Collection[str],
    keep_tokens: int,
    keep_last: int,
    save_at_least: int,
    measure: Callable[[Block], int],
) -> list[ShortenedAnswer]:
    """Return the oldest answers to shorten until long ones hold at most `keep_tokens`; nothing if that saves too little.

    `node` is the start of the decision's id, and `spared` are records that stay as they are."""
    failed = {block.tool_use_id for item in items for block in item.blocks if isinstance(block, ToolResult) and block.is_error}
    last = _last_answers(items, max(1, keep_last))
    found: list[ShortenedAnswer] = []
    total, tokens = 0, 0
    for item in items:
        before, tokens = tokens, tokens + sum(measure(block) for block in item.blocks)
        if item.role != "assistant" or item.uuid in spared:
            continue
        blocks = tuple(_short(block, node, tools, failed) for block in item.blocks)
        saved = tokens - before - sum(measure(block) for block in blocks) if blocks != item.blocks else 0
        if saved > 0:
            total += saved
            found.append(ShortenedAnswer(item.uuid, blocks, saved, before))
    chosen: list[ShortenedAnswer] = []
    for one in found:
        if total <= keep_tokens or one.record in last:
            break
        total -= one.saved
        chosen.append(one)
    return chosen if sum(one.saved for one in chosen) >= max(1, save_at_least) else []


def _last_answers(items: Sequence[Item], count: int) -> set[str]:
    """Return the records of the last `count` answers."""
    names: dict[str, None] = {}
    records: set[str] = set()
    for item in reversed(items):
        if item.role == "assistant":
            names[item.key or item.uuid] = None
            if len(names) > count:
                break
            records.add(item.uuid)
    return records


def _short(block: Block, node: str, tools: Collection[str], failed: Collection[str]) -> Block:
    match block:
        case Text() if len(block.text) > TEXT_HEAD * WORTH_IT:
            return text(
                _cut(block.text, TEXT_HEAD, GONE.format(count=len(block.text) - TEXT_HEAD, what="text", where="", node=node))
            )
        case ToolUse() if block.name in tools and not block.name.startswith(MCP):
            where = IN_FILE if block.name in WRITERS and block.id not in failed else ""
            given = _short_value(block.input, where, node)
            return block if given == block.input else read_block({**block.wire, "input": given})
        case _:
            return block


def _short_value(value: Any, where: str, node: str) -> Any:
    match value:
        case str() if len(value) > INPUT_HEAD * WORTH_IT:
            mark = GONE.format(count=len(value) - INPUT_HEAD, what="input", where=where, node=node)
            return _cut(value, INPUT_HEAD, mark)
        case dict():
            return {key: _short_value(one, where, node) for key, one in value.items()}
        case list():
            return [_short_value(one, where, node) for one in value]
        case _:
            return value


def _cut(value: str, head: int, mark: str) -> str:
    return f"{value[:head]}\n{mark}"
