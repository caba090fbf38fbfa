"""The tool loop: call the model, run the tools its answer calls, and repeat until an answer calls none.

It serves the main conversation and forks alike; they differ in the `Conversable` they pass. It is a flow: every decision is here, and
the driver performs the effects. `rounds` limits it. If it ends early, the conversation still contains everything up to that point.
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

# A turn that needs more rounds than this has gone astray; the user is asked whether to continue.
ROUNDS = 200

# Prefix of the result of a call that was denied.
DENIED = "Not allowed: "

NO_JSON = "The input of this call is not a JSON object, so it was not run. Send the call again with valid JSON."
NOT_RUN = "Not run, because another call of the same answer was invalid. Send it again."

# Stop reasons of an answer that reached a length limit and is incomplete.
FULL = ("max_tokens", "model_context_window_exceeded")

# `stopped`: by a hook.
Ended: TypeAlias = Literal["answered", "rounds", "cut off", "refused", "stopped"]


class Conversable(Protocol):
    """A conversation that the loop can continue: the main one, which is logged, or a fork's."""

    def request(self) -> Flow[Wire]: ...

    def answered(self, reply: Reply) -> Reply:
        """Keep the answer, and return it as it was kept. Its calls are the ones to run."""
        ...

    def run(self, calls: tuple[ToolUse, ...]) -> Flow[str | None]:
        """Run the calls of one answer, or refuse them, and keep one result for each. Returns why the turn must end here, if it must."""
        ...

    def results(self, results: Sequence[ToolResult]) -> None:
        """Keep the results of calls that were not run."""
        ...

    def recover(self, error: ProviderError) -> Flow[bool]:
        """Handle a request that the server refused. Returns whether to send the next one: shorter, or without the rejected part."""
        ...


class Outcome(msgspec.Struct, frozen=True):
    ended: Ended
    reply: Reply
    rounds: int
    why: str = ""  # for `stopped`


def run(
    conversation: Conversable,
    *,
    purpose: str = "chat",
    rounds: int = ROUNDS,
    on_event: OnEvent | None = None,
    enough: Callable[[], bool] | None = None,
) -> Flow[Outcome]:
    """Continue the conversation until the model calls no more tools, `rounds` are used up, or `enough` returns True."""
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
            if (why := (yield from conversation.run(reply.tool_uses))) is not None:
                return Outcome("stopped", reply, number, why)
        elif reply.stop_reason != "pause_turn":
            return Outcome(ending(reply), reply, number)
        if number >= rounds or (enough is not None and enough()):
            return Outcome("rounds", reply, number)


def unreadable(reply: Reply) -> list[ToolResult]:
    """Return error results if a call's input is not a JSON object. None of the answer's calls is run, and the model may try again."""
    if not reply.notes.get("unparsed_input"):
        return []
    calls = [block for block in reply.blocks if isinstance(block, ToolUse)]
    return [tool_result(call.id, NO_JSON if UNPARSED in call.input else NOT_RUN, is_error=True) for call in calls]


def with_unique_ids(reply: Reply, is_taken: Callable[[str], bool]) -> Reply:
    """Give a new id to calls whose id is empty or taken. Some servers number the calls of each answer from the start, and the API accepts
    an id only once per conversation."""
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
    """Return an incomplete answer. It has no stop reason, so its calls are never run. Unreadable blocks are left out: they must not hide
    why the answer broke off."""
    kept: list[Block] = []
    for block in blocks:
        with suppress(InputError):
            kept.append(read_block(block, where="partial answer"))
    return Reply("", model, tuple(kept), None)


def ending(reply: Reply) -> Ended:
    if reply.stop_reason == "refusal":
        return "refused"
    return "cut off" if reply.stop_reason is None or reply.stop_reason in FULL else "answered"
