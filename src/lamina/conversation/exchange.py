"""A request as it leaves, and its answer as it enters the log.

The prompt is recorded as it is sent; a break of the prompt cache is announced before a request leaves (K3) and looked for when its
answer is there (K2). An answer is one record per block, counted by what it reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..core.blocks import Block, Wire
from ..core.prefix import Reason, compare
from ..core.records import Break, Message, Snapshot, new_id
from ..core.reply import Reply
from ..core.usage import Usage
from ..prompt.break_causes import CacheBreak, judge, readable_after
from .state import Conversation, seconds_between


def remember_prompt(c: Conversation) -> None:
    """The prompt snapshot: written when it changes, so that a resumed session sends the same bytes."""
    last, prompt = c.log.view.snapshot, c.prompt
    sent = (prompt.system, prompt.tools, prompt.options, prompt.model, prompt.max_tokens)
    if last is None or (last.system, last.tools, last.options, last.model, last.max_tokens) != sent:
        uuid, parent, time = c.head()
        c.append([Snapshot(uuid, parent, time, *sent)])


class ComingBreak(NamedTuple):
    reason: Reason
    block: int  # the first that differs, over tools, system and messages


def coming_break(c: Conversation) -> ComingBreak | None:
    """Why and where a request sent now would not start with the one before; None where it would."""
    prompt = c.prompt
    if c.last.sent is None:
        return None
    difference = compare(c.last.sent, c.last.chain, prompt.base, len(prompt.tools), c.log.view.flat.chain)
    if difference is None:
        if (mended := c.refused.first) is not None:
            return ComingBreak("repair", mended)
        if prompt.keys == c.last.keys:
            return None
        return ComingBreak("options" if prompt.model == c.last.model else "model", 0)
    if difference.where == "messages":
        return ComingBreak(c.last.announced[-1] if c.last.announced else "unexplained", difference.block)
    return ComingBreak(difference.where, difference.block)


def announce_break(c: Conversation, request: Wire) -> None:
    """K3: a request that does not start with the one before is preceded by a record that says why, and says so itself in a header
    that providers ignore: a proxy on the way, and the server of `lamina.testing`, can tell a decision from a fault."""
    c.last.break_reason = None
    if (found := coming_break(c)) is not None:
        from ..core.cache import BREAK_HEADER

        uuid, parent, time = c.head()
        c.append([Break(uuid, parent, time, found.reason, found.block, c.count.tokens)])
        c.last.breaks += 1
        c.last.break_reason = found.reason
        request["extra_headers"] = {**(request.get("extra_headers") or {}), BREAK_HEADER: found.reason}
    c.refused.first = None
    c.last.remember(c.prompt, c.log.view.flat.chain)


def expect_break(c: Conversation, reason: Reason) -> None:
    """The request under way makes the provider read less for this reason: what its answer shows is then no finding."""
    c.last.break_reason = reason


def _cleared_by_provider(reply: Reply) -> Reason | None:
    """M5: what the provider clears by itself changes what it can read; it says so in its answer."""
    managed = reply.notes.get("context_management")
    return "clearing" if isinstance(managed, Mapping) and managed.get("applied_edits") else None


def detect_break(c: Conversation, reply: Reply, usage: Usage, now: str) -> None:
    """K2: say so when the provider read less than the last call left for it."""
    idle = seconds_between(c.last.answered_at, now)
    found = judge(
        readable=c.last.readable,
        usage=usage,
        announced=c.last.break_reason or _cleared_by_provider(reply),
        idle=idle,
        ttl=c.prompt.ttl,
        diagnosis=reply.notes.get("diagnostics"),
    )
    c.last.readable, c.last.answered_at = readable_after(usage), now
    if found is not None:
        record_cache_miss(c, found, lost=found.lost)


def record_cache_miss(c: Conversation, found: CacheBreak, *, lost: int, **more: str) -> None:
    """Keep a miss of the provider's cache that no decision of ours explains, and record it."""
    c.last.findings.append(found)
    c.record_event("cache_break", {"lost": lost, "cause": found.cause, "detail": found.detail, **more})


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
