"""The data path of a turn, in order, cheapest step first. Read this file to know what happens when.

    before_call   take background results → answer open calls → spill (l1) → clear (l2) → compact (l3, l4)
                  → recall memories → stop at the blocking limit → assemble → announce a cache break
    after_call    take background results → record the answer and its token count → check for a cache break
                  → maybe update the notes (l3)
    end_turn      take background results → abandon a pending model selection → maybe review (l5) → maybe dream (l6)
                  → sync the transcript

A step changes the conversation only by appending records (conversation/state.py). Steps that may call a model are flows
(core/effects.py). Each layer's part in a turn is in its step.py; a layer that fails is recorded and skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .conversation import price, repair, triggers
from .conversation.cache_life import KEEP_ALIVE, settle_ttl
from .conversation.exchange import announce_break, is_handed_in_again, record_answer, remember_prompt
from .conversation.isolate import isolate, isolate_flow, take_job_results
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

if TYPE_CHECKING:  # expensive layers are loaded when they are first needed (conversation/triggers.py)
    from .conversation.compaction.commit import Compacted
    from .layers.l4_compact.plan import Pivot


def add_user(c: Conversation, blocks: Sequence[Block]) -> Message:
    """Add a user message. A full window accepts none, unless a compaction can make room before the next call."""
    if triggers.blocking(c):
        from .layers.l4_compact import step as compact

        if not isolate(c, "l4_compact", compact.will_help, False):
            check_window(c)
    return _say(c, blocks)


def add_results(
    c: Conversation, given: Sequence[Block | HandedIn], *, synthetic: bool = False, unlisted: bool = False
) -> Message:
    """Add tool results. They are accepted at any fullness: the call was made, and the model needs its result."""
    whole: tuple[list[Record], list[Block]] = [], [results.block_of(one) for one in given]
    decided, blocks = isolate(c, "l1_results", lambda _: results.arriving(c, given), whole)
    return _say(c, blocks, decided, synthetic=synthetic, unlisted=unlisted)


def _say(
    c: Conversation, blocks: Sequence[Block], decided: Sequence[Record] = (), *, synthetic: bool = False, unlisted: bool = False
) -> Message:
    record = Message(*c.head(), "user", tuple(blocks), synthetic=synthetic, unlisted=unlisted)
    c.append([*decided, record])
    return record


def add_context(c: Conversation, kind: str, said: str) -> None:
    """Add context that is not a message: after everything already sent, and recorded before it is sent."""
    c.append([Attachment(*c.head(), kind, (text(said),))])


def before_call(c: Conversation) -> Flow[Wire]:
    if c.policy.cache.keep_alive:
        c.background.abort(KEEP_ALIVE)
    take_job_results(c)
    answer_open_calls(c)
    isolate(c, "l1_results", results.settle)
    isolate(c, "l2_micro", micro.clear)
    yield from isolate_flow(c, "l4_compact", _make_room(c), None)
    if c.last.announced:
        isolate(c, "l2_micro", micro.clear_repeated)
    isolate(c, "recall", bring_memories)
    check_window(c)
    settle_ttl(c)
    request = assemble(c)
    announce_break(c, request)
    return isolate(c, "l2_micro", lambda _: micro.with_edits(c, request), request)


def _make_room(c: Conversation) -> Flow[None]:
    """Collapse old turns, and compact with notes or a summary, if the window, the price or the model asks for it."""
    if triggers.collapse(c):
        from .layers.l4_compact import collapse as fold

        fold.collapse(c)
    if c.requested is not None or triggers.compaction(c) or price.is_near(c):
        from .layers.l3_notes import step as notes
        from .layers.l4_compact import step as compact

        if c.requested is not None:
            yield from compact.for_model(c, notes.compact)
        yield from compact.if_needed(c, notes.compact)


def recover(c: Conversation, error: ProviderError) -> Flow[bool]:
    """Handle a request that the server refused, and return whether to send another: compacted if too long, or without a rejected block."""
    match error:
        case PromptTooLong():
            from .layers.l3_notes import step as notes
            from .layers.l4_compact import step as compact

            return (yield from isolate_flow(c, "l4_compact", compact.too_long(c, error, notes.compact), False))
        case BadRequest():
            return repair.leave_out(c, error)
        case _:
            return False


def compact_now(c: Conversation, instructions: str = "", pivot: Pivot | None = None) -> Flow[Compacted]:
    """Compact on request, between two turns or within one. Pending results are settled together before a fork sees them."""
    take_job_results(c)
    isolate(c, "l1_results", results.settle)
    from .layers.l3_notes import step as notes
    from .layers.l4_compact import step as compact

    return (yield from compact.compact(c, notes.compact, instructions=instructions, pivot=pivot))


def answer_open_calls(c: Conversation) -> None:
    """Give every open call a result before the request is sent. A synthetic result is a record, so later requests repeat it."""
    calls = c.log.view.flat.open_calls
    if calls:
        add_results(c, [tool_result(call, MISSING_RESULT, is_error=True) for call in calls], synthetic=True)


def check_window(c: Conversation) -> None:
    """Raise WindowFull at the blocking limit. Commands that make room still work."""
    if triggers.blocking(c):
        raise WindowFull(c.count.judged, c.limits.blocking)


def assemble(c: Conversation) -> Wire:
    """Build the request: a new list that shares its message dicts with earlier requests, except for copies that carry a mark."""
    messages = repair.applied(c, c.log.view.messages())
    if not messages or (messages[-1]["role"] == "assistant" and not _paused(c)):
        raise NothingToSend()
    remember_prompt(c)  # only when sent: a resumed session assumes that the provider has cached the remembered prompt
    if c.prompt.ttl is not None:
        mark_messages(messages, c.prompt.ttl, once=c.log.view.once, unseen=c.log.view.flat.unseen)
    return {**c.prompt.head, "messages": messages, **c.prompt.options}


def _paused(c: Conversation) -> bool:
    """Whether a server tool paused the turn. It continues when the answer is sent back unchanged."""
    return c.log.view.items[-1].stop_reason == "pause_turn"


def after_call(c: Conversation, reply: Reply) -> Sequence[Message]:
    """Record the answer. Returns its records, or nothing if the answer was already recorded."""
    if is_handed_in_again(c, reply):
        return ()
    take_job_results(c)
    records = record_answer(c, reply)
    isolate(c, "l2_micro", lambda _: micro.confirmed(c, reply))
    isolate(c, "l3_notes", _update_notes)
    isolate(c, KEEP_ALIVE, _keep_cache_alive)
    return records


def _update_notes(c: Conversation) -> None:
    if triggers.notes(c):
        from .layers.l3_notes import step as notes

        notes.after_answer(c)


def _keep_cache_alive(c: Conversation) -> None:
    if c.policy.cache.keep_alive:
        from .conversation.keep_alive import wait_for_pause

        wait_for_pause(c)


def end_turn(c: Conversation) -> None:
    take_job_results(c)
    isolate(c, "recall", leave_selection)
    isolate(c, "l5_extract", begin_extraction)
    isolate(c, "l6_dream", begin_dream)
    c.store.sync()
