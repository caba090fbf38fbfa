"""An answer in the words of the Messages API: one JSON object, or the events of a stream in their documented order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..core.blocks import Wire

# Enough deltas to break a client that expects one, few enough that a long answer stays cheap.
MAX_DELTAS = 12


def message(
    *, name: str, model: str, blocks: tuple[Wire, ...], stop: Mapping[str, Any], usage: Wire, extra: Mapping[str, Any]
) -> Wire:
    return {
        "id": name,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(blocks),
        "stop_reason": stop["stop_reason"],
        "stop_sequence": stop["stop_sequence"],
        **({"stop_details": stop["stop_details"]} if stop["stop_details"] else {}),
        "usage": usage,
        **extra,
    }


def events(whole: Wire) -> Iterator[bytes]:
    """The stream that adds up to the message."""
    usage = whole["usage"]
    start = {**whole, "content": [], "stop_reason": None, "stop_sequence": None, "usage": {**usage, "output_tokens": 1}}
    start.pop("stop_details", None)
    edits = start.pop("context_management", None)
    yield event("message_start", {"message": start})
    for index, block in enumerate(whole["content"]):
        yield event("content_block_start", {"index": index, "content_block": _empty(block)})
        if index == 0:
            yield event("ping", {})
        for delta in _deltas(block):
            yield event("content_block_delta", {"index": index, "delta": delta})
        yield event("content_block_stop", {"index": index})
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"]}
    if "stop_details" in whole:
        end["stop_details"] = whole["stop_details"]
    total = {
        name: usage[name] for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    }
    yield event("message_delta", {"delta": end, "usage": total, **({"context_management": edits} if edits is not None else {})})
    yield event("message_stop", {})


def event(kind: str, data: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **data}))


def _empty(block: Wire) -> Wire:
    match block["type"]:
        case "text":
            return {**block, "text": ""}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "tool_use":
            return {**block, "input": {}}
        case _:
            return block


def _deltas(block: Wire) -> Iterator[Wire]:
    match block["type"]:
        case "text":
            for part in parts(block["text"]):
                yield {"type": "text_delta", "text": part}
        case "thinking":
            for part in parts(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": part}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for part in parts(msgspec.json.encode(block["input"]).decode()):
                yield {"type": "input_json_delta", "partial_json": part}
        case _:
            return  # everything else comes whole with its start


def parts(text: str) -> Iterator[str]:
    size = max(1, -(-len(text) // MAX_DELTAS))
    for start in range(0, len(text), size):
        yield text[start : start + size]
