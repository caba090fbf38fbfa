"""Cache marks: two fixed ones behind tools and system, two rolling ones behind the previous and the new end.

A provider looks for an earlier entry at each mark and up to twenty blocks before it. The mark at the end of the previous
request hits exactly what that request wrote, however many blocks came since. The mark at the new end writes the entry that
the next request will hit. Marks go on copies: the shared blocks never change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.blocks import Wire

# These blocks accept no mark, so the block before them gets it.
UNMARKABLE = ("thinking", "redacted_thinking")


class BlockPosition(NamedTuple):
    """The position of a request's last block: message index and block index."""

    message: int
    block: int


def end_before_last_answer(messages: Sequence[Wire]) -> BlockPosition | None:
    """Return where the request ended that produced the last answer. It is read from the messages, so a resumed session marks
    the same blocks."""
    for index in range(len(messages) - 1, 0, -1):
        if messages[index]["role"] == "assistant":
            return BlockPosition(index - 1, len(messages[index - 1]["content"]) - 1)
    return None


def mark(ttl: str) -> Wire:
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def marked_last(blocks: Sequence[Wire], ttl: str) -> list[Wire]:
    """Return tools or system blocks with a mark on the last one."""
    if not blocks:
        return []
    return [*blocks[:-1], {**blocks[-1], "cache_control": mark(ttl)}]


def mark_messages(messages: list[Wire], ttl: str) -> None:
    """Put the two rolling marks on this request's list; message dicts that get a mark are copied."""
    previous = end_before_last_answer(messages)
    if previous is not None:
        mark_at(messages, previous, ttl)
    mark_at(messages, BlockPosition(len(messages) - 1, len(messages[-1]["content"]) - 1), ttl)


def mark_at(messages: list[Wire], end: BlockPosition, ttl: str) -> None:
    """Put one mark on this request's list, on the nearest earlier block if the given one accepts none."""
    content = messages[end.message]["content"]
    at = min(end.block, len(content) - 1)
    while at >= 0 and content[at]["type"] in UNMARKABLE:
        at -= 1
    if at < 0:
        return
    content = content.copy()
    content[at] = {**content[at], "cache_control": mark(ttl)}
    messages[end.message] = {**messages[end.message], "content": content}
