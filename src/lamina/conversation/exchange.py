"""Records each request's prompt and each answer, and tracks breaks of the prompt cache.

A break that we cause is recorded before the request is sent; one that we did not cause is detected from the answer's usage. An
answer is stored as one record per block, and its usage calibrates the token count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..core.blocks import Block, Wire
from ..core.prefix import Reason, compare
from ..core.records import Break, Message, Snapshot, new_id
from ..core.reply import Reply
from ..core.usage import Usage
from ..prompt.break_causes import CacheBreak, judge, readable_after
from .cache_life import note_answer, ttl_event
from .state import Conversation, seconds_between
from .window.estimate import estimate
from .window.features import measure_all


def remember_prompt(c: Conversation) -> None:
    """Record a prompt snapshot if the prompt changed, so that a resumed session sends the same bytes."""
    last, prompt = c.log.view.snapshot, c.prompt
    parts = (prompt.system, prompt.tools, prompt.options, prompt.model, prompt.max_tokens)
    if last is None or (last.system, last.tools, last.options, last.model, last.max_tokens) != parts:
        uuid, parent, time = c.head()
        c.append([Snapshot(uuid, parent, time, *parts)])


class ComingBreak(msgspec.Struct, frozen=True):
    reason: Reason
    block: int  # index of the first block that differs, counted over tools, system and messages


def coming_break(c: Conversation) -> ComingBreak | None:
    """Return the reason and position of the coming cache break, or None if the next request starts with the last one."""
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
    """Record the coming cache break, if any, with its reason, and name the reason in a request header.

    Another header names the first result that is shown once: the next request repeats everything before it. Providers ignore both.
    A proxy, or the server of `lamina.testing`, can use them to tell a deliberate change from a bug.
    """
    c.last.break_reason = None
    flat = c.log.view.flat
    if flat.unseen:
        from ..core.cache import ONCE_HEADER, once_value

        request["extra_headers"] = {**(request.get("extra_headers") or {}), ONCE_HEADER: once_value(flat.unseen)}
    if (coming := coming_break(c)) is not None:
        from ..core.cache import BREAK_HEADER

        uuid, parent, time = c.head()
        c.append([Break(uuid, parent, time, coming.reason, coming.block, c.count.tokens)])
        c.last.breaks += 1
        c.last.break_reason = coming.reason
        request["extra_headers"] = {**(request.get("extra_headers") or {}), BREAK_HEADER: coming.reason}
    c.refused.first = None
    c.last.remember(c.prompt, flat.chain, flat.stable_links)
    automatic = c.prompt.ttl is None and flat.unseen
    c.last.unstable = estimate(measure_all(flat.unstable_blocks(), c.memo), c.count.calibration) if automatic else 0


def expect_break(c: Conversation, reason: Reason) -> None:
    """Expect a break for this reason from the current request, so that its answer is not reported as a cache miss."""
    c.last.break_reason = reason


def detect_break(c: Conversation, reply: Reply, usage: Usage, now: str) -> None:
    """Record a cache miss if the provider read less than the last call had left in its cache."""
    # If the provider edited the context itself, that changes what it reads from the cache.
    managed = reply.notes.get("context_management")
    cleared: Reason | None = "clearing" if isinstance(managed, Mapping) and managed.get("applied_edits") else None
    miss = judge(
        readable=c.last.readable,
        usage=usage,
        announced=c.last.break_reason or cleared,
        idle=seconds_between(c.last.answered_at, now),
        ttl=c.last.ttl or c.prompt.ttl,
        diagnosis=reply.notes.get("diagnostics"),
    )
    c.last.readable, c.last.answered_at, c.last.ttl = readable_after(usage), now, c.prompt.ttl
    if c.last.unstable:
        # An automatic cache also holds a result that was shown once, and the next request reads only up to it.
        c.last.readable = min(c.last.readable, max(0, usage.prompt - c.last.unstable))
    if miss is not None:
        record_cache_miss(c, miss, lost=miss.lost)


def record_cache_miss(c: Conversation, miss: CacheBreak, *, lost: int, **more: str) -> None:
    """Keep and record a cache miss that no change of ours explains."""
    c.last.findings.append(miss)
    c.record_event("cache_break", {"lost": lost, "cause": miss.cause, "detail": miss.detail, **more})


def is_handed_in_again(c: Conversation, reply: Reply) -> bool:
    """Return whether this answer was recorded before. Its usage must count only once.

    Some servers give every answer the same id, so the blocks must match too.
    """
    this = (reply.id, *(block.digest.hex() for block in reply.blocks))
    if reply.id and c.last.answer == this:
        return True
    c.last.answer = this
    return False


def record_answer(c: Conversation, reply: Reply, key: str | None = None) -> Sequence[Message]:
    """Append one record per block, the format that other transcript readers expect. Records of one answer share `key`."""
    key = key or (reply.id if not c.log.tree.has_answer(reply.id) else "") or f"msg_{new_id().replace('-', '')}"
    parent, time = c.log.tree.leaf, c.clock()
    records: list[Message] = []
    parts: list[tuple[Block, ...]] = [(block,) for block in reply.blocks] or [()]
    for blocks in parts:
        answer_fields = (key, reply.usage, reply.stop_reason, reply.model)
        records.append(Message(new_id(), parent, time, "assistant", blocks, *answer_fields, request_id=reply.request_id))
        parent = records[-1].uuid
    before = c.count
    if records[0].from_model:
        note_answer(c, time, reply.usage)
    c.append([*records, *ttl_event(c, parent, time)])
    c.log.view.flat.prepare()
    if reply.usage is not None:
        c.count_answer(before, reply.usage, reply.blocks, final=reply.complete)
        detect_break(c, reply, reply.usage, time)
    return records
