"""Cache marks: two fixed ones behind tools and system, two rolling ones behind the previous and the new end.

A provider looks for an earlier entry at each mark and up to twenty blocks before it. The mark at the end of the previous
request hits exactly what that request wrote, however many blocks came since. The mark at the new end writes the entry that
the next request will hit. Marks go on copies: the shared blocks never change.

A result that is shown once changes in the next request. The mark of its request is therefore on the block before it, so that
nothing is written to the cache that no later request repeats.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ..core.blocks import Wire

# These blocks accept no mark, so the block before them gets it.
UNMARKABLE = ("thinking", "redacted_thinking")


class BlockPosition(msgspec.Struct, frozen=True):
    """The position of a request's last block: message index and block index."""

    message: int
    block: int


def end_before_last_answer(messages: Sequence[Wire], once: Collection[str] = ()) -> BlockPosition | None:
    """Return where the cached part of the request ended that produced the last answer. It is read from the messages, so a resumed
    session marks the same blocks. `once` contains the calls whose results are shown once."""
    for index in range(len(messages) - 1, 0, -1):
        if messages[index]["role"] == "assistant":
            return _end_of(messages, index - 1, once)
    return None


def stable_end(messages: Sequence[Wire], unseen: Collection[str] = ()) -> BlockPosition:
    """Return the last block that the next request repeats. `unseen` contains the calls whose results it will show as previews."""
    first, left = len(messages) - 1, set(unseen)
    for index in range(first, -1, -1) if left else ():
        if found := left.intersection(block.get("tool_use_id") for block in messages[index]["content"]):
            first, left = index, left - found
        if not left:
            break
    return _end_of(messages, first, unseen)


def _end_of(messages: Sequence[Wire], index: int, once: Collection[str]) -> BlockPosition:
    """Return the last block of a message, or the one before its first result that is shown once."""
    content = messages[index]["content"]
    end = (
        next((at for at, block in enumerate(content) if block.get("tool_use_id") in once), len(content)) if once else len(content)
    )
    # Results begin a message, so the block before the first one is the end of the answer that made the call.
    return (
        BlockPosition(index, end - 1) if end or not index else BlockPosition(index - 1, len(messages[index - 1]["content"]) - 1)
    )


def mark(ttl: str) -> Wire:
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def marked_last(blocks: Sequence[Wire], ttl: str) -> list[Wire]:
    """Return tools or system blocks with a mark on the last one."""
    if not blocks:
        return []
    return [*blocks[:-1], {**blocks[-1], "cache_control": mark(ttl)}]


def mark_messages(messages: list[Wire], ttl: str, *, once: Collection[str] = (), unseen: Collection[str] = ()) -> None:
    """Put the two rolling marks on this request's list; message dicts that get a mark are copied."""
    previous = end_before_last_answer(messages, once)
    if previous is not None:
        mark_at(messages, previous, ttl)
    mark_at(messages, stable_end(messages, unseen), ttl)


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
