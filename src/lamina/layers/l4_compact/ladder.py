"""When the summary call itself is too long (C7): the oldest rounds go until it fits, then a summary without a model. Pure.

The prefix is not shared any more once something is dropped, so pictures and documents go too: they become words (C2).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...conversation.compaction.user_messages import DOCUMENT, IMAGE
from ...core.blocks import Block, Document, Image, ToolResult, Wire, text, tool_result
from ...core.message_list import Flat
from ...core.view import Item

# What a server counts and what we estimate differ; a gap is covered with this much to spare, in percent.
SPARE_PERCENT = 10


def to_drop(sizes: Sequence[int], *, gap: int | None, percent: int) -> int:
    """How many of the oldest rounds go, given their tokens: enough to cover the gap, or a share of them where no gap is known. At least
    one. As many as there are: nothing would be left to send."""
    if gap is None:
        return min(len(sizes), max(1, -(-len(sizes) * percent // 100)))
    wanted = gap * (100 + SPARE_PERCENT) // 100 + 1
    freed = 0
    for number, size in enumerate(sizes, start=1):
        freed += size
        if freed >= wanted:
            return number
    return len(sizes)


def shown(items: Sequence[Item]) -> list[Wire]:
    """These items as a message list of their own, without pictures."""
    flat = Flat()
    for item in items:
        flat.add(item.role, [in_words(block) for block in item.blocks], key=item.key, synthetic=item.synthetic)
    return flat.messages()


def in_words(block: Block) -> Block:
    match block:
        case Image():
            return text(IMAGE)
        case Document():
            return text(DOCUMENT)
        case ToolResult(content=list() as parts) if any(part.get("type") in ("image", "document") for part in parts):
            return tool_result(block.tool_use_id, [_part(part) for part in parts], is_error=block.is_error)
        case _:
            return block


def _part(part: Wire) -> Wire:
    words = {"image": IMAGE, "document": DOCUMENT}.get(str(part.get("type")))
    return {"type": "text", "text": words} if words is not None else part
