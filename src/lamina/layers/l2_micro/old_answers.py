"""Decide which old answers to shorten: the inputs of their calls, such as the text of a written file, and their own text. Pure.

Results are cleared first. This step is for conversations that are large without large results: a model that writes one file after
another, or explains at length. Short values of an input stay, so a path or a command is still there. Of a long value the beginning
stays, with a marker that says how to see the rest. The last answers are never shortened, and neither is an answer that the user
pinned or restored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from ...core.blocks import Block, Text, ToolResult, ToolUse, read_block, text
from ...core.view import Item

# The usual name prefix of tools from MCP servers.
MCP = "mcp__"
# Characters of an id that are shown and can be used to name it.
SHORT_ID = 8
# Characters of a long value or text that stay visible.
INPUT_HEAD, TEXT_HEAD = 200, 600
# A value up to this many times its head is not worth a marker.
WORTH_IT = 3
# Tools whose successful calls leave the text in a file.
WRITERS = ("Write", "Edit", "MultiEdit", "NotebookEdit")

GONE = "[{count:,} more characters were cleared from this {what} to save room.{where}{again}]"
IN_FILE = " The file has them, unless it was changed since."
AGAIN = " Expand {node} shows them."


class LongAnswer(msgspec.Struct, frozen=True):
    """A record of an answer that could be shortened. `before` is the number of tokens in view before it."""

    item: Item
    before: int


class ShortenedAnswer(msgspec.Struct, frozen=True):
    """A record of an answer as it is shown from now on."""

    record: str
    blocks: tuple[Block, ...]
    saved: int
    before: int


def is_clearable(tool: str, tools: Collection[str]) -> bool:
    """Return whether results and inputs of a tool may be cleared. Those of MCP tools never are, whatever the policy allows."""
    return tool in tools and not tool.startswith(MCP)


def is_long(block: Block, tools: Collection[str]) -> bool:
    match block:
        case Text():
            return len(block.text) > TEXT_HEAD * WORTH_IT
        case ToolUse():
            return is_clearable(block.name, tools) and _has_long(block.input)
        case _:
            return False


def _has_long(value: Any) -> bool:
    match value:
        case str():
            return len(value) > INPUT_HEAD * WORTH_IT
        case dict():
            return any(map(_has_long, value.values()))
        case list():
            return any(map(_has_long, value))
        case _:
            return False


def plan_answers(
    items: Sequence[Item],
    long_answers: Sequence[LongAnswer],
    *,
    node: str,
    tools: Collection[str],
    keep_tokens: int,
    keep_last: int,
    save_at_least: int,
    measure: Callable[[Block], int],
) -> list[ShortenedAnswer]:
    """Return the oldest long answers to shorten until the rest holds at most `keep_tokens`; nothing if that saves too little.

    `long_answers` are those among the items. `node` is the start of the decision's id, or empty if the model cannot expand it."""
    sizes = [sum(measure(block) for block in answer.item.blocks if is_long(block, tools)) for answer in long_answers]
    total = sum(sizes)
    if total < keep_tokens + save_at_least:
        return []
    last = _last_answers(items, max(1, keep_last))
    failed = failed_calls(items)
    chosen: list[ShortenedAnswer] = []
    for answer, size in zip(long_answers, sizes, strict=True):
        if total <= keep_tokens or answer.item.uuid in last:
            break
        total -= size
        blocks = tuple(_short(block, node, tools, failed) for block in answer.item.blocks)
        saved = sum(map(measure, answer.item.blocks)) - sum(map(measure, blocks))
        chosen.append(ShortenedAnswer(answer.item.uuid, blocks, saved, answer.before))
    return chosen if sum(answer.saved for answer in chosen) >= max(1, save_at_least) else []


def failed_calls(items: Sequence[Item]) -> set[str]:
    return {block.tool_use_id for item in items for block in item.blocks if isinstance(block, ToolResult) and block.is_error}


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
        case Text() if is_long(block, tools):
            return text(_cut(block.text, TEXT_HEAD, "text", "", node))
        case ToolUse() if is_long(block, tools):
            where = IN_FILE if block.name in WRITERS and block.id not in failed else ""
            return read_block({**block.wire, "input": _short_value(block.input, where, node)})
        case _:
            return block


def _short_value(value: Any, where: str, node: str) -> Any:
    match value:
        case str() if _has_long(value):
            return _cut(value, INPUT_HEAD, "input", where, node)
        case dict():
            return {key: _short_value(part, where, node) for key, part in value.items()}
        case list():
            return [_short_value(part, where, node) for part in value]
        case _:
            return value


def _cut(value: str, head: int, what: str, where: str, node: str) -> str:
    again = AGAIN.format(node=node) if node else ""
    return f"{value[:head]}\n" + GONE.format(count=len(value) - head, what=what, where=where, again=again)
