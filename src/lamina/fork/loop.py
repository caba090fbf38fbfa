"""The one tool loop: ask, run the tools the answer calls for, ask again, until an answer calls for none.

It is driven for the main conversation and for forks alike; they differ in the `Conversable` they hand in. It is a flow: every decision
is here, every effect is the driver's. Bounded by `rounds`; whatever ends it early, what was said so far is in the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol, TypeAlias
from uuid import uuid4

import msgspec

from ..core.blocks import Block, ToolResult, ToolUse, Wire, read_block, tool_result
from ..core.effects import Ask, Flow
from ..core.errors import BadRequest, InputError, PromptTooLong, ProviderError, StreamBroken
from ..core.reply import Reply
from ..providers import OnEvent
from ..providers.stream import UNPARSED

# A turn that needs more rounds than this has lost its way; the person is asked whether to go on.
ROUNDS = 200

# How the result of a call begins that was not allowed.
DENIED = "Not allowed: "

NO_JSON = "The input of this call is no JSON object, so it was not run; send the call again with valid JSON."
NOT_RUN = "Not run, because another call of the same answer could not be read; send it again."

# Stop reasons of an answer that ran into a limit; there was more to say.
FULL = ("max_tokens", "model_context_window_exceeded")

Ended: TypeAlias = Literal["answered", "rounds", "cut off", "refused"]


class Conversable(Protocol):
    """A conversation a loop can carry on: the main one, which is logged, or a fork's."""

    def request(self) -> Flow[Wire]: ...

    def answered(self, reply: Reply) -> Reply:
        """Keep it; returned is the answer as it was kept, whose calls are the ones to run."""
        ...

    def run(self, calls: tuple[ToolUse, ...]) -> Flow[None]:
        """Run the calls of one answer, or refuse them, and keep one result for each."""
        ...

    def results(self, results: Sequence[ToolResult]) -> None:
        """Keep the results of calls that were not run."""
        ...

    def recover(self, error: ProviderError) -> Flow[bool]:
        """The server refused the request; whether the next one is worth sending: shorter, or without what it objects to."""
        ...


class Outcome(msgspec.Struct, frozen=True):
    ended: Ended
    reply: Reply
    rounds: int


def run(
    conversation: Conversable,
    *,
    purpose: str = "chat",
    rounds: int = ROUNDS,
    on_event: OnEvent | None = None,
    enough: Callable[[], bool] | None = None,
) -> Flow[Outcome]:
    """Carry the conversation on until the model has nothing more to ask of the tools, `rounds` are used up, or there is `enough`."""
    number, mended = 0, False
    while True:
        number += 1
        request = yield from conversation.request()
        try:
            reply: Reply = yield Ask(request, purpose, on_event)
        except StreamBroken as error:
            if (heard := partial(error.partial)).blocks:
                conversation.answered(heard)
            raise
        except (BadRequest, PromptTooLong) as error:
            if mended or not (yield from conversation.recover(error)):
                raise
            mended, number = True, number - 1
            continue
        mended = False
        reply = conversation.answered(reply)
        if broken := unreadable(reply):
            conversation.results(broken)
        elif reply.tool_uses:
            yield from conversation.run(reply.tool_uses)
        elif reply.stop_reason != "pause_turn":
            return Outcome(ending(reply), reply, number)
        if number >= rounds or (enough is not None and enough()):
            return Outcome("rounds", reply, number)


def unreadable(reply: Reply) -> list[ToolResult]:
    """A call whose input is no JSON object is not run, nor are the calls beside it; the model is told and may try again."""
    if not reply.notes.get("unparsed_input"):
        return []
    calls = [block for block in reply.blocks if isinstance(block, ToolUse)]
    return [tool_result(call.id, NO_JSON if UNPARSED in call.input else NOT_RUN, is_error=True) for call in calls]


def with_unique_ids(reply: Reply, is_taken: Callable[[str], bool]) -> Reply:
    """Give calls another id where theirs is empty or taken: some servers number the calls of each answer anew, and the API takes an id
    once in a conversation."""
    seen: set[str] = {""}
    blocks: list[Block] = []
    for block in reply.blocks:
        if isinstance(block, ToolUse):
            if block.id in seen or is_taken(block.id):
                block = read_block({**block.wire, "id": f"call_{uuid4().hex}"})
            seen.add(str(block.wire["id"]))
        blocks.append(block)
    return msgspec.structs.replace(reply, blocks=tuple(blocks))


def partial(blocks: Sequence[dict[str, Any]], model: str = "") -> Reply:
    """Half an answer as what it is: no stop reason, so none of its calls is ever executed. What can't be read of it is left out:
    it must not hide why the answer broke off."""
    kept: list[Block] = []
    for block in blocks:
        with suppress(InputError):
            kept.append(read_block(block, where="partial answer"))
    return Reply("", model, tuple(kept), None)


def ending(reply: Reply) -> Ended:
    if reply.stop_reason == "refusal":
        return "refused"
    return "cut off" if reply.stop_reason is None or reply.stop_reason in FULL else "answered"
