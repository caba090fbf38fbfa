"""An answer in the words of the Chat Completions API: one JSON object, or the chunks of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..core.blocks import Wire
from ..core.cache import CacheUse
from .messages_wire import parts

_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "stop"}


def completion(*, name: str, model: str, created: int, blocks: tuple[Wire, ...], stop_reason: str | None, usage: Wire) -> Wire:
    text = "".join(block["text"] for block in blocks if block["type"] == "text") or None
    said: Wire = {"role": "assistant", "content": text, "refusal": None}
    if stop_reason == "refusal":
        said |= {"content": None, "refusal": text or "I can't help with that."}
    calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
    if calls:
        said["tool_calls"] = calls
    reason = _REASONS.get(stop_reason, stop_reason) if stop_reason is not None else None
    return {
        "id": name,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": reason}],
        "usage": usage,
    }


def usage(use: CacheUse, output: int) -> Wire:
    return {
        "prompt_tokens": use.total,
        "completion_tokens": output,
        "total_tokens": use.total + output,
        "prompt_tokens_details": {"cached_tokens": use.read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def chunks(whole: Wire, *, include_usage: bool) -> Iterator[bytes]:
    """The stream that adds up to the completion. With usage every chunk has the field, and the last one alone has it filled."""
    choice = whole["choices"][0]
    said = choice["message"]
    head = {name: whole[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    tail: Wire = {"usage": None} if include_usage else {}

    def chunk(delta: Mapping[str, Any], reason: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
        return _data({**head, "choices": choices, **tail})

    yield chunk({"role": "assistant", "content": "" if said["content"] is not None else None, "refusal": None})
    for field in ("content", "refusal"):
        for part in parts(said[field] or ""):
            yield chunk({field: part})
    for index, call in enumerate(said.get("tool_calls") or ()):
        function = call["function"]
        yield chunk({"tool_calls": [{**call, "index": index, "function": {"name": function["name"], "arguments": ""}}]})
        for part in parts(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, choice["finish_reason"])
    if include_usage:
        yield _data({**head, "choices": [], "usage": whole["usage"]})
    yield b"data: [DONE]\n\n"


def _data(value: Wire) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(value)


def _call(block: Wire) -> Wire:
    arguments = msgspec.json.encode(block["input"]).decode()
    return {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}}
