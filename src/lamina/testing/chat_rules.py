"""Request checks of the Chat Completions API: the envelope, roles, and calls without their tool messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from .api_json import Problem

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def problems(body: Any, *, models: Collection[str] | None) -> Iterator[Problem]:
    if not isinstance(body, Mapping):
        yield _bad("The request body is not a JSON object", None)
        return
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield _bad("you must provide a model parameter", None)
    if models is not None and body["model"] not in models:
        yield Problem(404, f"The model `{body['model']}` does not exist", code="model_not_found", param="model")
    messages = body.get("messages")
    if not isinstance(messages, list):
        yield _bad("Missing required parameter: 'messages'.", "messages", "missing_required_parameter")
        return
    if not messages:
        yield _bad(
            "Invalid 'messages': expected an array with minimum length 1, but got an empty array.", "messages", "empty_array"
        )
    for at, message in enumerate(messages):
        yield from _message(message, at)
    if body.get("tools") is not None and not (
        isinstance(body["tools"], list) and all(isinstance(tool, dict) for tool in body["tools"])
    ):
        yield _bad("Invalid type for 'tools': expected an array of objects.", "tools", "invalid_type")
    yield from _pairing(messages)
    if body.get("stream_options") is not None and not isinstance(body["stream_options"], dict):
        yield _bad("Invalid type for 'stream_options': expected an object.", "stream_options", "invalid_type")
    if body.get("stream_options") is not None and not body.get("stream"):
        yield _bad("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")


def _message(message: Any, at: int) -> Iterator[Problem]:
    role = message.get("role") if isinstance(message, dict) else None
    if role not in _ROLES:
        yield _bad(
            f"Invalid value: '{role}'. Supported values are: {', '.join(_ROLES)}.", f"messages[{at}].role", "invalid_value"
        )
    calls = message.get("tool_calls")
    ids = [call.get("id") if isinstance(call, dict) else None for call in calls] if isinstance(calls, list) else [None]
    if calls is not None and not all(isinstance(name, str) for name in ids):
        yield _bad(f"Invalid type for 'messages[{at}].tool_calls'.", f"messages[{at}].tool_calls", "invalid_type")
    if calls is not None and not calls:
        yield _bad(f"Invalid 'messages[{at}].tool_calls': empty array.", f"messages[{at}].tool_calls", "empty_array")
    content = message.get("content")
    if content is None and not (role == "assistant" and (calls or message.get("refusal"))):
        yield _bad(f"Invalid value for 'content' of messages[{at}]: expected a string, got null.", f"messages.[{at}].content")
    if not isinstance(content, str | None) and not (
        isinstance(content, list) and all(isinstance(part, dict) for part in content)
    ):
        yield _bad(f"Invalid type for 'messages[{at}].content'.", f"messages.[{at}].content", "invalid_type")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield _bad(
            f"Missing parameter 'tool_call_id': messages with role 'tool' need it (messages[{at}]).",
            f"messages.[{at}].tool_call_id",
        )


def _pairing(messages: list[Any]) -> Iterator[Problem]:
    waiting: dict[str, None] = {}
    asked_at = 0
    for at, message in enumerate(messages):
        if message["role"] == "tool":
            name = message["tool_call_id"]
            if name not in waiting:
                yield _bad(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'; "
                    f"{name} does not match any.",
                    f"messages.[{at}].role",
                )
            waiting.pop(name, None)
            continue
        if waiting:
            yield _unanswered(waiting, asked_at)
        waiting = {call["id"]: None for call in message.get("tool_calls") or ()}
        asked_at = at
    if waiting:
        yield _unanswered(waiting, asked_at)


def _unanswered(waiting: Mapping[str, None], at: int) -> Problem:
    return _bad(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"No response for: {', '.join(waiting)}",
        f"messages.[{at}].role",
    )


def _bad(message: str, param: str | None, code: str | None = None) -> Problem:
    return Problem(400, message, code=code, param=param)


def too_long(tokens: int, window: int) -> Problem:
    return Problem(
        400,
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Send less of them.",
        code="context_length_exceeded",
        param="messages",
    )
