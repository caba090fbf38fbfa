"""The server's responses in the JSON of either API: an error, a whole answer, or the stream events that make up one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ..core.blocks import Wire
from ..core.cache import CacheUse

_MESSAGES_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_CHAT_KINDS = {400: "invalid_request_error", 401: "invalid_request_error", 404: "invalid_request_error", 429: "requests"}
_CHAT_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
_SENTENCES = {
    401: "The API key is not valid.",
    403: "This API key does not have permission.",
    404: "Not found.",
    413: "The request exceeds the maximum size.",
    429: "Too many requests: wait and try again.",
    500: "Internal server error",
    503: "The server is overloaded: try again later.",
    529: "Overloaded",
}


class Problem(NamedTuple):
    status: int
    message: str
    kind: str = ""  # the error's type, if it is not the usual one for the status
    code: str | None = None  # Chat Completions only
    param: str | None = None  # Chat Completions only


def bad(message: str) -> Problem:
    return Problem(400, message)


def messages_error(problem: Problem, request_id: str) -> Wire:
    kind = problem.kind or _MESSAGES_KINDS.get(problem.status, "api_error" if problem.status >= 500 else "invalid_request_error")
    message = problem.message or _SENTENCES.get(problem.status, f"Status {problem.status}")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}


def chat_error(problem: Problem) -> Wire:
    kind = problem.kind or _CHAT_KINDS.get(problem.status, "server_error" if problem.status >= 500 else "invalid_request_error")
    message = problem.message or _SENTENCES.get(problem.status, f"Status {problem.status}")
    code = problem.code or _CHAT_CODES.get(problem.status)
    return {"error": {"message": message, "type": kind, "param": problem.param, "code": code}}


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
    """Yield the stream events that make up the message."""
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
            return  # other blocks arrive whole in their start event


def parts(text: str) -> Iterator[str]:
    size = max(1, -(-len(text) // MAX_DELTAS))
    for start in range(0, len(text), size):
        yield text[start : start + size]


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


def chat_usage(use: CacheUse, output: int) -> Wire:
    return {
        "prompt_tokens": use.total,
        "completion_tokens": output,
        "total_tokens": use.total + output,
        "prompt_tokens_details": {"cached_tokens": use.read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def chunks(whole: Wire, *, include_usage: bool) -> Iterator[bytes]:
    """Yield the stream chunks that make up the completion. With usage, every chunk has the field; only the last has a value."""
    choice = whole["choices"][0]
    said = choice["message"]
    head = {name: whole[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    tail: Wire = {"usage": None} if include_usage else {}

    def chunk(delta: Mapping[str, Any], reason: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
        return data({**head, "choices": choices, **tail})

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
        yield data({**head, "choices": [], "usage": whole["usage"]})
    yield b"data: [DONE]\n\n"


def data(value: Wire) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(value)


def _call(block: Wire) -> Wire:
    arguments = msgspec.json.encode(block["input"]).decode()
    return {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}}
