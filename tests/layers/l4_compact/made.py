"""Items as a view has them, made by hand: words, answers, calls and results, each with an id that says what it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lamina.core.blocks import Block, read_block, text, tool_result
from lamina.core.reply import Reply
from lamina.core.view import Item


def said(name: str, words: str = "", **more: Any) -> Item:
    return Item(name, "user", (text(words or f"words of {name}"),), "said", **more)


def answer(name: str, words: str = "", calls: Iterable[tuple[str, dict[str, Any]]] = (), tool: str = "Read") -> Item:
    blocks: list[Block] = [text(words or f"answer {name}")]
    blocks += [read_block({"type": "tool_use", "id": call, "name": tool, "input": given}) for call, given in calls]
    return Item(name, "assistant", tuple(blocks), "said", key=f"m-{name}")


def result(name: str, call: str, words: str = "found", *, is_error: bool = False) -> Item:
    return Item(name, "user", (tool_result(call, words, is_error=is_error),), "said")


def summary(name: str, words: str) -> Item:
    return Item(name, "user", (text(words),), "summary")


def attachment(name: str, kind: str, words: str) -> Item:
    return Item(name, "user", (text(words),), f"attachment:{kind}")


def size(blocks: Iterable[Block]) -> int:
    """A token for every character of words, so that a test can count."""
    return sum(len(getattr(block, "text", "")) for block in blocks)


def tokens(words: str) -> int:
    return -(-len(words) // 4)


def reply(words: str = "", *blocks: dict[str, Any], stop: str | None = "end_turn") -> Reply:
    made: list[Block] = [text(words)] if words else []
    return Reply("m", "a-model", (*made, *(read_block(block) for block in blocks)), stop)
