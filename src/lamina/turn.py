"""The data path of a turn, in order, cheapest step first. This is the file to read to know what happens when.

    before_call   answer open calls → stop at the blocking limit → assemble → announce a break
    after_call    record the answer → count by what it reports → look for a break of the cache
    end_turn      let the disk catch up

A step changes the conversation only by entering records (conversation.py). Steps that may call a model are flows
(core/effects.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import uuid4

from .conversation import Conversation
from .core.blocks import Block, Wire, text, tool_result
from .core.effects import Flow
from .core.errors import NothingToSend, WindowFull
from .core.flatten import MISSING_RESULT
from .core.prefix import Reason, Sent, compare
from .core.records import Attachment, Break, Event, Message, Snapshot
from .core.reply import Reply
from .core.usage import Usage
from .layers.l0_window import answered, measure_all, state_of
from .prompt.breaks import judge, readable_after
from .prompt.marks import mark_messages


def add_user(c: Conversation, blocks: Sequence[Block]) -> Message:
    check_window(c)
    return _say(c, blocks)


def add_results(c: Conversation, blocks: Sequence[Block], *, synthetic: bool = False) -> Message:
    """Results are taken at any fullness: the call was made, and its result is owed to the model."""
    return _say(c, blocks, synthetic=synthetic)


def _say(c: Conversation, blocks: Sequence[Block], *, synthetic: bool = False) -> Message:
    uuid, parent, time = c.head()
    record = Message(uuid, parent, time, "user", tuple(blocks), synthetic=synthetic)
    c.enter([record])
    return record


def add_context(c: Conversation, kind: str, said: str) -> None:
    """Context that nobody said: behind what has not left yet, and a record before it is sent."""
    uuid, parent, time = c.head()
    c.enter([Attachment(uuid, parent, time, kind, (text(said),))])


def before_call(c: Conversation) -> Flow[Wire]:
    yield from ()  # a flow: layers that ask a model yield here
    answer_open_calls(c)
    check_window(c)
    request = assemble(c)
    announce_break(c)
    return request


def answer_open_calls(c: Conversation) -> None:
    """Every call has its result before the request leaves (C11). What is made up is a record, so it stays what was sent."""
    calls = c.log.view.flat.open_calls
    if calls:
        add_results(c, [tool_result(call, MISSING_RESULT, is_error=True) for call in calls], synthetic=True)


def check_window(c: Conversation) -> None:
    """T7: at the blocking limit nothing more is taken; what makes room still works."""
    count = c.count.judged
    if state_of(count, c.limits, autocompact_on=c.autocompact).at_blocking:
        raise WindowFull(count, c.limits.blocking)


def assemble(c: Conversation) -> Wire:
    """The request: a new list whose message dicts are shared with earlier requests, but for the copies that carry a mark."""
    remember_prompt(c)
    messages = c.log.view.messages()
    if not messages or (messages[-1]["role"] == "assistant" and not _paused(c)):
        raise NothingToSend()
    if c.prompt.ttl is not None:
        mark_messages(messages, c.prompt.ttl)
    return {**c.prompt.head, "messages": messages, **c.prompt.options}


def _paused(c: Conversation) -> bool:
    """A server tool's pause is continued by sending the answer back as it is."""
    return c.log.view.items[-1].stop_reason == "pause_turn"


def remember_prompt(c: Conversation) -> None:
    """The prompt snapshot: written when it changes, so that a resumed session sends the same bytes."""
    last, prompt = c.log.view.snapshot, c.prompt
    sent = (prompt.system, prompt.tools, prompt.options, prompt.model, prompt.max_tokens)
    if last is None or (last.system, last.tools, last.options, last.model, last.max_tokens) != sent:
        uuid, parent, time = c.head()
        c.enter([Snapshot(uuid, parent, time, *sent)])


def announce_break(c: Conversation) -> None:
    """K3: a request that does not start with the one before is preceded by a record that says why."""
    flat, prompt = c.log.view.flat, c.prompt
    c.break_reason = None
    if c.sent is not None:
        difference = compare(c.sent, c.sent_chain, prompt.base, len(prompt.tools), flat.chain)
        if difference is not None or prompt.keys != c.sent_keys:
            reason: Reason = "options" if prompt.model == c.sent_model else "model"
            if difference is not None and difference.where == "messages":
                reason = c.announced[-1] if c.announced else "unexplained"
            elif difference is not None:
                reason = "tools" if difference.where == "tools" else "system"
            uuid, parent, time = c.head()
            c.enter([Break(uuid, parent, time, reason, difference.block if difference else 0, c.count.tokens)])
            c.breaks += 1
            c.break_reason = reason
    c.announced.clear()
    c.answer = None
    c.sent = Sent(prompt.base, len(flat.chain), flat.chain[-1] if flat.chain else b"", len(prompt.tools))
    c.sent_chain = flat.chain
    c.sent_keys = prompt.keys
    c.sent_model = prompt.model


def after_call(c: Conversation, reply: Reply) -> Sequence[Message]:
    """The records of the answer; none where it was handed in already, so that its usage counts once.

    Some servers give every answer the same id: only the same words to the same request are the same answer.
    """
    this = (reply.id, *(block.digest.hex() for block in reply.blocks))
    if reply.id and c.answer == this:
        return ()
    c.answer = this
    return record_answer(c, reply, None if c.log.tree.has_answer(reply.id) else reply.id)


def record_answer(c: Conversation, reply: Reply, key: str | None) -> Sequence[Message]:
    """One record per block, as other readers of such transcripts expect. Records of one answer share `key`."""
    key = key or f"msg_{uuid4().hex}"
    parent, time = c.log.tree.leaf, c.clock()
    records: list[Message] = []
    parts: list[tuple[Block, ...]] = [(block,) for block in reply.blocks] or [()]
    for blocks in parts:
        uuid = str(uuid4())
        records.append(Message(uuid, parent, time, "assistant", blocks, key, reply.usage, reply.stop_reason, reply.model))
        parent = uuid
    before = c.count
    c.enter(records)
    c.log.view.flat.prepare()
    if reply.usage is not None:
        c.spent += reply.usage
        c.count = answered(before, reply.usage, measure_all(reply.blocks, c.memo), final=reply.complete)
        detect_break(c, reply, reply.usage, time)
    return records


def detect_break(c: Conversation, reply: Reply, usage: Usage, now: str) -> None:
    """K2: say so when the provider read less than the last call left for it."""
    idle = seconds_between(c.answered_at, now)
    found = judge(
        readable=c.readable,
        usage=usage,
        announced=c.break_reason,
        idle=idle,
        ttl=c.prompt.ttl,
        diagnosis=reply.notes.get("diagnostics"),
    )
    c.readable, c.answered_at = readable_after(usage), now
    if found is not None:
        c.findings.append(found)
        uuid, parent, time = c.head()
        c.enter([Event(uuid, parent, time, "cache_break", {"lost": found.lost, "cause": found.cause, "detail": found.detail})])


def seconds_between(before: str, now: str) -> float:
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(before)).total_seconds()
    except ValueError:
        return 0.0


def end_turn(c: Conversation) -> None:
    c.store.sync()
