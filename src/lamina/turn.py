"""The data path of a turn, in order, cheapest step first. This is the file to read to know what happens when.

    before_call   what background work brought → answer open calls → spill (l1) → clear (l2) → compact (l3, l4)
                  → bring memories → stop at the blocking limit → assemble → announce a break
    after_call    what background work brought → record the answer and count by what it reports → look for a break of the cache
                  → maybe update the notes (l3)
    end_turn      what background work brought → leave what a model still chooses → maybe review (l5) → maybe dream (l6)
                  → let the disk catch up

A step changes the conversation only by entering records (conversation.py). Steps that may call a model are flows
(core/effects.py). What a layer does is in steps/; a layer that fails steps aside, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .conversation import Conversation
from .core.blocks import Block, Wire, text, tool_result
from .core.effects import Flow
from .core.errors import BadRequest, NothingToSend, PromptTooLong, ProviderError, WindowFull
from .core.ids import new_id
from .core.message_list import MISSING_RESULT
from .core.records import Attachment, Message, Record
from .core.reply import Reply
from .layers.l0_window import answered, measure_all
from .prompt.marks import mark_messages
from .steps import mending, micro, near, results
from .steps.aside import stepping_aside
from .steps.breaks import announce_break, detect_break, remember_prompt
from .steps.dream_state import begin_dream
from .steps.extract_state import begin_extraction
from .steps.landing import land as land
from .steps.recall_state import bring_memories, leave_selection

if TYPE_CHECKING:  # the dear layers are loaded when they are first needed (steps/near.py)
    from .steps.compact import Compacted, Pivot


def add_user(c: Conversation, blocks: Sequence[Block]) -> Message:
    """A full window takes no more, unless a compaction makes room before the next call."""
    if near.blocking(c):
        from .steps import compact

        if not compact.will_help(c):
            check_window(c)
    return _say(c, blocks)


def add_results(c: Conversation, blocks: Sequence[Block], *, synthetic: bool = False) -> Message:
    """Results are taken at any fullness: the call was made, and its result is owed to the model."""
    decided: list[Record] = []
    with stepping_aside(c, "l1_results"):
        decided, blocks = results.arriving(c, blocks)
    return _say(c, blocks, decided, synthetic=synthetic)


def _say(c: Conversation, blocks: Sequence[Block], decided: Sequence[Record] = (), *, synthetic: bool = False) -> Message:
    record = Message(*c.head(), "user", tuple(blocks), synthetic=synthetic)
    c.enter([*decided, record])
    return record


def add_context(c: Conversation, kind: str, said: str) -> None:
    """Context that nobody said: behind what has not left yet, and a record before it is sent."""
    c.enter([Attachment(*c.head(), kind, (text(said),))])


def before_call(c: Conversation) -> Flow[Wire]:
    land(c)
    answer_open_calls(c)
    with stepping_aside(c, "l1_results"):
        results.settle(c)
    with stepping_aside(c, "l2_micro"):
        micro.clear(c)
    with stepping_aside(c, "l4_compact"):
        if near.collapse(c):
            from .steps import fold

            fold.collapse(c)
        if near.compaction(c):
            from .steps import compact

            yield from compact.if_needed(c)
    bring_memories(c)
    check_window(c)
    request = assemble(c)
    announce_break(c, request)
    return micro.with_edits(c, request)


def mend(c: Conversation, error: ProviderError) -> Flow[bool]:
    """The server refused the request: whether another one is worth sending. Too long: compact. A block it objects to: leave it out."""
    match error:
        case PromptTooLong():
            from .steps import compact

            helped = False
            with stepping_aside(c, "l4_compact"):
                helped = yield from compact.too_long(c, error)
            return helped
        case BadRequest():
            return mending.mend(c, error)
        case _:
            return False


def compact_now(c: Conversation, instructions: str = "", pivot: Pivot | None = None) -> Flow[Compacted]:
    """By hand, between two turns or in the middle of one: results that came together are judged together before a fork shows them."""
    land(c)
    with stepping_aside(c, "l1_results"):
        results.settle(c)
    from .steps import compact

    return (yield from compact.compact(c, instructions=instructions, pivot=pivot))


def answer_open_calls(c: Conversation) -> None:
    """Every call has its result before the request leaves (C11). What is made up is a record, so it stays what was sent."""
    calls = c.log.view.flat.open_calls
    if calls:
        add_results(c, [tool_result(call, MISSING_RESULT, is_error=True) for call in calls], synthetic=True)


def check_window(c: Conversation) -> None:
    """T7: at the blocking limit nothing more is taken; what makes room still works."""
    if near.blocking(c):
        raise WindowFull(c.count.judged, c.limits.blocking)


def assemble(c: Conversation) -> Wire:
    """The request: a new list whose message dicts are shared with earlier requests, but for the copies that carry a mark."""
    messages = mending.applied(c, c.log.view.messages())
    if not messages or (messages[-1]["role"] == "assistant" and not _paused(c)):
        raise NothingToSend()
    remember_prompt(c)  # what is not sent is not remembered: a resumed session takes it for what the provider's cache holds
    if c.prompt.ttl is not None:
        mark_messages(messages, c.prompt.ttl)
    return {**c.prompt.head, "messages": messages, **c.prompt.options}


def _paused(c: Conversation) -> bool:
    """A server tool's pause is continued by sending the answer back as it is."""
    return c.log.view.items[-1].stop_reason == "pause_turn"


def after_call(c: Conversation, reply: Reply) -> Sequence[Message]:
    """The records of the answer; none where it was handed in already, so that its usage counts once.

    Some servers give every answer the same id: only the same words to the same request are the same answer.
    """
    this = (reply.id, *(block.digest.hex() for block in reply.blocks))
    if reply.id and c.answer == this:
        return ()
    c.answer = this
    land(c)
    records = record_answer(c, reply, None if c.log.tree.has_answer(reply.id) else reply.id)
    with stepping_aside(c, "l2_micro"):
        micro.confirmed(c, reply)
    with stepping_aside(c, "l3_notes"):
        if near.notes(c):
            from .steps import notes

            notes.after_answer(c)
    return records


def record_answer(c: Conversation, reply: Reply, key: str | None) -> Sequence[Message]:
    """One record per block, as other readers of such transcripts expect. Records of one answer share `key`."""
    key = key or f"msg_{new_id().replace('-', '')}"
    parent, time = c.log.tree.leaf, c.clock()
    records: list[Message] = []
    parts: list[tuple[Block, ...]] = [(block,) for block in reply.blocks] or [()]
    for blocks in parts:
        records.append(Message(new_id(), parent, time, "assistant", blocks, key, reply.usage, reply.stop_reason, reply.model))
        parent = records[-1].uuid
    before = c.count
    c.enter(records)
    c.log.view.flat.prepare()
    if reply.usage is not None:
        c.spent += reply.usage
        c.count = answered(before, reply.usage, measure_all(reply.blocks, c.memo), final=reply.complete)
        detect_break(c, reply, reply.usage, time)
    return records


def end_turn(c: Conversation) -> None:
    land(c)
    leave_selection(c)
    begin_extraction(c)
    begin_dream(c)
    c.store.sync()
