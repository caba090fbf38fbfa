"""Views for the tests of layer 2: calls and results in a row, each as large as the test says."""

from __future__ import annotations

from collections.abc import Sequence

from lamina.core.blocks import Block, read_block, text, tool_result
from lamina.core.policy import CLASSIC
from lamina.core.records import Attachment, Message
from lamina.core.view import View
from lamina.layers.l2_micro.registry import Clearable, Registry, Rules

# What a marker takes in these tests.
LEFT = 10
RULES = Rules(CLASSIC.micro.clearable, frozenset(), LEFT)


def size(block: Block) -> int:
    """A token is a character here, so that a test can say how large a result is."""
    match block.wire:
        case {"type": "tool_result", "content": str(content)}:
            return len(content)
        case {"type": "text", "text": str(words)}:
            return len(words)
        case _:
            return 0


def called(name: str, tool: str = "Read") -> Message:
    block = read_block({"type": "tool_use", "id": name, "name": tool, "input": {}})
    return Message(f"call-{name}", None, "", "assistant", (block,), message_id=f"m-{name}")


def came(name: str, tokens: int, *, synthetic: bool = False, is_error: bool = False) -> Message:
    return Message(f"result-{name}", None, "", "user", (tool_result(name, "x" * tokens, is_error=is_error),), synthetic=synthetic)


def said(name: str, words: str = "go on") -> Message:
    return Message(name, None, "", "user", (text(words),))


def remembered(name: str, words: str = "memory", kind: str = "relevant_memories") -> Attachment:
    return Attachment(name, None, "", kind, (text(words),))


def view_of(sizes: Sequence[int], *, tool: str = "Read") -> View:
    view = View()
    view.add(said("first"))
    for number, tokens in enumerate(sizes):
        view.add(called(str(number), tool))
        view.add(came(str(number), tokens))
    return view


def registry_of(sizes: Sequence[int], *, rules: Rules = RULES) -> Registry:
    registry = Registry()
    registry.follow(view_of(sizes), rules, size)
    return registry


def ids(rows: Sequence[Clearable]) -> list[str]:
    return [row.block.tool_use_id for row in rows]
