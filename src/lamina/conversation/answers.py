"""An answer of the model as it enters the log: one record per block, counted by what it reports."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.blocks import Block
from ..core.records import Message, new_id
from ..core.reply import Reply
from .cache_breaks import detect_break
from .state import Conversation


def is_handed_in_again(c: Conversation, reply: Reply) -> bool:
    """Whether this answer was handed in already; its usage counts once.

    Some servers give every answer the same id: only the same words to the same request are the same answer.
    """
    this = (reply.id, *(block.digest.hex() for block in reply.blocks))
    if reply.id and c.last.answer == this:
        return True
    c.last.answer = this
    return False


def record_answer(c: Conversation, reply: Reply, key: str | None = None) -> Sequence[Message]:
    """Append one record per block, as other readers of such transcripts expect. Records of one answer share `key`."""
    key = key or (reply.id if not c.log.tree.has_answer(reply.id) else "") or f"msg_{new_id().replace('-', '')}"
    parent, time = c.log.tree.leaf, c.clock()
    records: list[Message] = []
    parts: list[tuple[Block, ...]] = [(block,) for block in reply.blocks] or [()]
    for blocks in parts:
        records.append(Message(new_id(), parent, time, "assistant", blocks, key, reply.usage, reply.stop_reason, reply.model))
        parent = records[-1].uuid
    before = c.count
    c.append(records)
    c.log.view.flat.prepare()
    if reply.usage is not None:
        c.count_answer(before, reply.usage, reply.blocks, final=reply.complete)
        detect_break(c, reply, reply.usage, time)
    return records
