"""The data path of a turn, in order, cheapest step first. This is the file to read to know what happens when.

    before_call   what background work brought → answer open calls → spill (l1) → clear (l2) → compact (l3, l4)
                  → bring memories → stop at the blocking limit → assemble → announce a break
    after_call    what background work brought → record the answer and count by what it reports → look for a break of the cache
                  → maybe update the notes (l3)
    end_turn      what background work brought → leave what a model still chooses → maybe review (l5) → maybe dream (l6)
                  → let the disk catch up

A step changes the conversation only by appending records (conversation/state.py). Steps that may call a model are flows
(core/effects.py). What a layer does in a turn is in its step.py; a layer that fails is recorded and passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .conversation import repair, triggers
from .conversation.exchange import announce_break, is_handed_in_again, record_answer, remember_prompt
from .conversation.isolate import isolate, take_job_results
from .conversation.state import Conversation
from .core.blocks import Block, Wire, text, tool_result
from .core.effects import Flow
from .core.errors import BadRequest, NothingToSend, PromptTooLong, ProviderError, WindowFull
from .core.message_list import MISSING_RESULT
from .core.records import Attachment, Message, Record
from .core.reply import Reply
from .layers.l1_results import step as results
from .layers.l1_results.step import HandedIn
from .layers.l2_micro import step as micro
from .layers.l5_extract.trigger import begin_extraction
from .layers.l6_dream.trigger import begin_dream
from .layers.recall.state import bring_memories, leave_selection
from .prompt.cache_marks import mark_messages

if TYPE_CHECKING:  # the dear layers are loaded when they are first needed (conversation/triggers.py)
    from .conversation.compaction.commit import Compacted
    from .layers.l4_compact.plan import Pivot


def add_user(c: Conversation, blocks: Sequence[Block]) -> Message:
    """A full window takes no more, unless a compaction makes room before the next call."""
    if triggers.blocking(c):
        from .layers.l4_compact import step as compact

        if not compact.will_help(c):
            check_window(c)
    return _say(c, blocks)


def add_results(c: Conversation, given: Sequence[Block | HandedIn], *, synthetic: bool = False) -> Message:
    """Results are taken at any fullness: the call was made, and its result is owed to the model."""
    decided: list[Record] = []
    blocks = [results.block_of(one) for one in given]
    with isolate(c, "l1_results"):
        decided, blocks = results.arriving(c, given)
    return _say(c, blocks, decided, synthetic=synthetic)


def _say(c: Conversation, blocks: Sequence[Block], decided: Sequence[Record] = (), *, synthetic: bool = False) -> Message:
    record = Message(*c.head(), "user", tuple(blocks), synthetic=synthetic)
    c.append([*decided, record])
    return record


def add_context(c: Conversation, kind: str, said: str) -> None:
    """Context that nobody said: behind what has not left yet, and a record before it is sent."""
    c.append([Attachment(*c.head(), kind, (text(said),))])


def before_call(c: Conversation) -> Flow[Wire]:
    take_job_results(c)
    answer_open_calls(c)
    with isolate(c, "l1_results"):
        results.settle(c)
    with isolate(c, "l2_micro"):
        micro.clear(c)
    with isolate(c, "l4_compact"):
        if triggers.collapse(c):
            from .layers.l4_compact import collapse as fold

            fold.collapse(c)
        if triggers.compaction(c):
            from .layers.l3_notes import step as notes
            from .layers.l4_compact import step as compact

            yield from compact.if_needed(c, notes.compact)
    bring_memories(c)
    check_window(c)
    request = assemble(c)
    announce_break(c, request)
    return micro.with_edits(c, request)


def recover(c: Conversation, error: ProviderError) -> Flow[bool]:
    """The server refused the request: whether another one is worth sending. Too long: compact. A block it objects to: leave it out."""
    match error:
        case PromptTooLong():
            from .layers.l3_notes import step as notes
            from .layers.l4_compact import step as compact

            helped = False
            with isolate(c, "l4_compact"):
                helped = yield from compact.too_long(c, error, notes.compact)
            return helped
        case BadRequest():
            return repair.leave_out(c, error)
        case _:
            return False


def compact_now(c: Conversation, instructions: str = "", pivot: Pivot | None = None) -> Flow[Compacted]:
    """By hand, between two turns or in the middle of one: results that came together are judged together before a fork shows them."""
    take_job_results(c)
    with isolate(c, "l1_results"):
        results.settle(c)
    from .layers.l3_notes import step as notes
    from .layers.l4_compact import step as compact

    return (yield from compact.compact(c, notes.compact, instructions=instructions, pivot=pivot))


def answer_open_calls(c: Conversation) -> None:
    """Every call has its result before the request leaves (C11). What is made up is a record, so it stays what was sent."""
    calls = c.log.view.flat.open_calls
    if calls:
        add_results(c, [tool_result(call, MISSING_RESULT, is_error=True) for call in calls], synthetic=True)


def check_window(c: Conversation) -> None:
    """T7: at the blocking limit nothing more is taken; what makes room still works."""
    if triggers.blocking(c):
        raise WindowFull(c.count.judged, c.limits.blocking)


def assemble(c: Conversation) -> Wire:
    """The request: a new list whose message dicts are shared with earlier requests, but for the copies that carry a mark."""
    messages = repair.applied(c, c.log.view.messages())
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
    """Return the records of the answer; none where it was handed in already."""
    if is_handed_in_again(c, reply):
        return ()
    take_job_results(c)
    records = record_answer(c, reply)
    with isolate(c, "l2_micro"):
        micro.confirmed(c, reply)
    with isolate(c, "l3_notes"):
        if triggers.notes(c):
            from .layers.l3_notes import step as notes

            notes.after_answer(c)
    return records


def end_turn(c: Conversation) -> None:
    take_job_results(c)
    leave_selection(c)
    begin_extraction(c)
    begin_dream(c)
    c.store.sync()
