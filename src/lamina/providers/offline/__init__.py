"""The offline provider answers with local functions instead of a model (O1).

A table maps each purpose to a pure function. The provider has the same interface as any other: it takes a request and returns a
Reply, which may contain tool calls, and it reads nothing but the request. Each layer supplies the function for its purpose, and the
session fills the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from threading import Event
from typing import Any, TypeAlias

from ...core.blocks import Wire, canonical, read_content
from ...core.errors import Aborted, BadRequest
from ...core.reply import Reply, read_response
from ...core.usage import Usage
from ...language.text import Text
from .. import Capabilities, OnEvent

# A local function takes the request and returns content blocks.
Local: TypeAlias = Callable[[Wire], list[Wire]]

# There is no tokenizer, so four bytes per token is the rule of thumb for the usage of a call.
BYTES_PER_TOKEN = 4


def _chat(request: Wire) -> list[Wire]:
    from .chat import answer  # imported on first use

    return answer(request)


DEFAULT_TABLE: Mapping[str, Local] = {"chat": _chat}


class OfflineProvider:
    name = "offline"
    model = "offline"
    capabilities = Capabilities(wire="messages")
    can_call = True

    def __init__(self, table: Mapping[str, Local] = DEFAULT_TABLE) -> None:
        self.table = dict(table)

    def render(self, request: Wire) -> Wire:
        return request

    def read(self, response: object) -> Reply:
        return read_response(response)

    def ask(self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None, abort: Event | None = None) -> Reply:
        if abort is not None and abort.is_set():
            raise Aborted
        local = self.table.get(purpose)
        if local is None:
            raise BadRequest(
                Text(
                    "The offline provider has no function for {purpose!r}. Configure another provider to use it.", purpose=purpose
                )
            )
        content = local(request)
        reply = self._reply(request, content)
        if on_event is not None:
            for event in _events(content):
                on_event(event)
        return reply

    async def ask_async(self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None) -> Reply:
        return self.ask(request, purpose=purpose, on_event=on_event)

    def _reply(self, request: Wire, content: list[Wire]) -> Reply:
        messages = canonical(request["messages"])
        blocks = read_content(content, where="offline")
        calls = any(block["type"] == "tool_use" for block in content)
        prompt = len(messages) + len(canonical([request.get("system"), request.get("tools")]))
        # The id is derived from the request: the same request gets the same id, a longer one a different id.
        return Reply(
            id=f"msg_offline_{blake2b(messages, digest_size=12).hexdigest()}",
            model=self.model,
            blocks=blocks,
            stop_reason="tool_use" if calls else "end_turn",
            usage=Usage(input_tokens=prompt // BYTES_PER_TOKEN + 1, output_tokens=len(canonical(content)) // BYTES_PER_TOKEN + 1),
        )


def _events(content: list[Wire]) -> list[dict[str, Any]]:
    """Return the answer as the events of a stream."""
    events: list[dict[str, Any]] = []
    for index, block in enumerate(content):
        # As in a real stream, a text starts empty, so that adding up the events gives it once.
        start = {**block, "text": ""} if block["type"] == "text" else block
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        if block["type"] == "text":
            events.append({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": block["text"]}})
        events.append({"type": "content_block_stop", "index": index})
    return events
