"""Replaces the part of a transcript that is too large to load by a summary (C7, Z4), when a session is resumed. Pure.

Only the end of such a transcript is loaded (disk/transcripts/resume.py). The summary is made by rules from what was read of the part
before it: the first user message, and the records right before the cut. It is written as a boundary that keeps everything loaded, with
a checkpoint at the cut, so the next resume starts there. It cannot be undone, because what it stands for does not fit into memory.
"""

from __future__ import annotations

from ...conversation.compaction.compose import SummaryBudget, SummaryOrigin, WayBack, compose, used_in
from ...conversation.compaction.user_messages import said_in, words_of
from ...core.blocks import text
from ...core.log import BY_RESUME, Log, checkpoint_state, seeded
from ...core.policy import CompactPolicy
from ...core.receipts import Told, write_receipt
from ...core.records import Boundary, Checkpoint, Message, Preserved, Record, new_id
from ...disk.transcripts.resume import TranscriptHead
from .offline import mechanical

# A rough count is enough here: the next request counts the conversation again.
CHARACTERS_PER_TOKEN = 4
# A summary of the usual length; it must fit beside the loaded part in a small window too.
SUMMARY_TOKENS = 5_000
CUT = (
    "The transcript is too large to load: {size} MB of it, from the beginning of the conversation, are not loaded. What follows covers "
    "the first message and the last records before the loaded part."
)


def fold_head(log: Log, head: TranscriptHead, *, start: int, transcript: str, cwd: str, time: str) -> list[Record]:
    """Return the records that replace the head. `log` holds the loaded part, which begins at the offset `start`."""
    boundary, summary = new_id(), new_id()
    order = [item.uuid for item in log.view.items]
    receipt = write_receipt(boundary, order, {uuid: Told("kept") for uuid in order}).to_json()
    words = _words(head, WayBack(boundary, transcript), cwd)
    preserved = Preserved(summary, tuple(uuid for uuid in order if uuid in log.tree.nodes))
    tokens, receipt = head.cut // CHARACTERS_PER_TOKEN, {**receipt, "by": BY_RESUME}
    return [
        Boundary(boundary, log.tree.leaf, time, "auto", tokens, tuple(order), receipt, preserved=preserved),
        Message(summary, boundary, time, "user", (text(words),), summary=True, by=boundary),
        Checkpoint(new_id(), summary, time, boundary, start, {**head.state, **checkpoint_state(log)}),
    ]


def _words(head: TranscriptHead, way: WayBack, cwd: str) -> str:
    items = Log.load(lambda: head.near, lambda: seeded(head.state)).view.items
    said = said_in(items)
    if head.first is not None and all(item.uuid != head.first.uuid for item in items):
        said.insert(0, words_of(head.first.blocks))
    policy = CompactPolicy()

    def tokens(words: str) -> int:
        return len(words) // CHARACTERS_PER_TOKEN

    return compose(
        f"{CUT.format(size=megabytes(head.cut))}\n\n{mechanical(items, SUMMARY_TOKENS, tokens)}",
        said=said,
        files=used_in(items, cwd),
        way=way,
        budget=SummaryBudget(users=policy.users_tokens, files=policy.list_tokens),
        tokens=tokens,
        made=SummaryOrigin(mechanical=True),
    )


def megabytes(size: int) -> str:
    return f"{max(1, round(size / 1e6)):,}"
