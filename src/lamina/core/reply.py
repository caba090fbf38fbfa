"""A model's answer in one format, independent of the SDK or server it came from.

`complete` is the safety rule: an answer is complete only if it has a stop reason, and only the tool calls of a complete answer may be
executed. A partial answer is kept in the log as partial.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .blocks import Block, Text, ToolUse, read_content
from .errors import InputError
from .usage import Usage, read_usage


class Reply(msgspec.Struct, frozen=True):
    """A model's answer in Lamina's own form."""

    id: str  # the provider's message id, shared by all records of one answer
    model: str
    blocks: tuple[Block, ...]
    stop_reason: str | None  # end_turn | tool_use | max_tokens | stop_sequence | pause_turn | refusal | …; None = cut off
    usage: Usage | None = None
    request_id: str | None = None
    # The provider's unchanged reports about its cache and edits: diagnostics, context_management, stop_details.
    notes: dict[str, Any] = {}

    @property
    def complete(self) -> bool:
        """Whether the answer has a stop reason. Without one it was cut off."""
        return self.stop_reason is not None

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The calls that may be executed; empty if the answer was cut off or reached its output limit."""
        if self.stop_reason not in ("tool_use", "stop"):
            return ()
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))


NOTE_KEYS = (
    "diagnostics",
    "context_management",
    "cache_edits",
    "input_transformations",
    "stop_details",
    "container",
    "stop_sequence",
)


def plain(response: object) -> Mapping[str, Any]:
    """Return an SDK object as a plain mapping; a mapping is returned unchanged."""
    if isinstance(response, Mapping):
        return response
    dump = getattr(response, "model_dump", None) or getattr(response, "to_dict", None)
    if callable(dump):
        value = dump(mode="json", exclude_none=True) if hasattr(response, "model_dump") else dump()
        if isinstance(value, Mapping):
            return value
    raise InputError("response", f"must be the SDK's response object or a dict, not {type(response).__name__}")


def read_response(response: object) -> Reply:
    """Read a response of the Messages API: the SDK's object or its JSON."""
    raw = plain(response)
    if raw.get("type") == "error" or "content" not in raw:
        raise InputError("response", "this is not a message (it has no 'content')", "pass the response of messages.create()")
    request_id = getattr(response, "_request_id", None)
    return Reply(
        id=str(raw.get("id") or ""),
        model=str(raw.get("model") or ""),
        blocks=read_content(raw["content"], where="response.content"),
        stop_reason=raw.get("stop_reason"),
        usage=read_usage(raw.get("usage")),
        request_id=request_id if isinstance(request_id, str) else None,
        notes={key: raw[key] for key in NOTE_KEYS if raw.get(key) is not None},
    )
