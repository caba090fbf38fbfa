"""Memory selection by a model, in the background (Q4, Q7).

    begin         start a side call that nothing waits for
    _take         hold the model's choice for the turn it was made for
    append_held   append the held choice after the newest tool results, or drop it if the turn has ended

This module is loaded only if a model is to choose. The job gets frozen values and its own view of the memories; the
conversation's thread appends the result. If the model takes longer than the policy allows, counted from when the call can start,
it is given up and the ranker chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event as Flag
from typing import NamedTuple

from ...conversation import forks
from ...conversation.state import Conversation
from ...core.blocks import Wire
from ...core.effects import Ask
from ...core.errors import Aborted, AuthFailed, BadRequest, LaminaError
from ...core.reply import Reply
from ...fork.background import JobResult
from ...fork.fork import ForkOutcome
from ...fork.model_call import Deadline, own_headers
from ...memory.recall.library import MemoryLibrary
from ...memory.recall.plan import RecallQuestion, SeenMemories
from ...memory.recall.selection import RecallChoice, SelectorReply, choose_by_model
from .state import EVENT, SELECT, TOO_LATE, RecallState, memory_scopes_of, selector_model
from .step import enter, record_recall, seen_in


class ModelSelection(NamedTuple):
    """The result of a selection job."""

    message: str
    choice: RecallChoice
    reply: Reply | None
    refused: str = ""  # a model that the server does not have and that was not chosen explicitly


def begin(c: Conversation, state: RecallState, asked: RecallQuestion, seen: SeenMemories) -> bool:
    """Start the selection job. Return whether it was started."""
    place, settings, project, policy = memory_scopes_of(c, state), c.settings, state.project, c.policy.surfacing
    model, ask_side = selector_model(c, state) or c.prompt.model, c.ask_side
    own = model in (settings.small_model, c.prompt.model)
    turn = c.host.tool_runner.context.abort if c.host.tool_runner is not None else None

    def job(abort: Flag) -> ModelSelection | None:
        if place is None:
            return None
        asking = _Asking(ask_side, Deadline(policy.wait_seconds, abort, turn))
        with MemoryLibrary.open(place, settings=settings, project=project) as memory:
            choice = choose_by_model(memory, asked, seen, policy, model=model, ask=asking)
        return ModelSelection(asked.message, choice, asking.reply, model if asking.refused and not own else "")

    return c.background.start(SELECT, job, partial(_take, c))


class _Asking:
    """One side call. A failure becomes the reason for falling back to the ranker; an abort by the user ends the job."""

    def __init__(self, ask_side: Callable[[Ask, Flag], Reply], until: Deadline) -> None:
        self._ask_side = ask_side
        self._until = until
        self.reply: Reply | None = None
        self.refused = False

    def __call__(self, request: Wire) -> SelectorReply:
        try:
            self.reply = self._ask_side(Ask({**request, "extra_headers": own_headers(SELECT)}, SELECT), self._until)
        except Aborted:
            if self._until.stopped:
                raise
            return SelectorReply(failed="the model call timed out")
        except (LaminaError, OSError) as error:
            self.refused = isinstance(error, BadRequest | AuthFailed)
            return SelectorReply(failed=str(error) or type(error).__name__)
        return SelectorReply(self.reply.text)


def _take(c: Conversation, one: JobResult) -> None:
    """Take the result of a job: record its token usage, and hold the choice for the turn it was made for."""
    state, chosen = c.layer_state(RecallState), one.value
    if one.error is not None:
        if not isinstance(one.error, Aborted):
            c.record_event(EVENT, {"files": [], "by": "model", "skipped": str(one.error) or type(one.error).__name__})
        return
    if not isinstance(chosen, ModelSelection):
        return
    if chosen.refused:
        state.refused.add(chosen.refused)
    if chosen.reply is not None:
        usage = chosen.reply.usage
        if usage is not None:
            forks.ended(c, SELECT, ForkOutcome(chosen.reply, usage, 1, 0, (chosen.reply.text,)), one.seconds)
    if state.message == chosen.message:
        state.held = chosen
    else:
        record_recall(c, chosen.message, RecallChoice(by=chosen.choice.by), skipped=TOO_LATE)


def append_held(c: Conversation, state: RecallState, asked: RecallQuestion | None) -> None:
    """Append the held choice after the newest tool results, if the conversation is still about the same message."""
    held = state.held
    if held is None or (asked is not None and asked.message == held.message):
        return
    state.held = None
    there = any(item.uuid == held.message for item in reversed(c.log.view.items))
    if asked is not None or not there:
        record_recall(c, held.message, RecallChoice(by=held.choice.by), skipped=TOO_LATE)
        return
    seen = seen_in(c, state)
    left = tuple(each for each in held.choice.brought if each.path not in seen.surfaced | seen.read)
    enter(c, held.message, held.choice._replace(brought=left))
