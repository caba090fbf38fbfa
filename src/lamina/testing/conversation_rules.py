"""What the Messages API refuses of a conversation as a whole: its tool rounds and the thinking of the last one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from .api_json import Problem, bad


def pairing(messages: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Every call is answered at the head of the next message, once; no result answers anything else.

    Messages of one role in a row count as one message, so the state below lives as long as such a row.
    """
    row = ""
    calls_at = 0
    open_calls: dict[str, None] = {}  # of the last assistant row
    answered: set[str] = set()  # at the head of this user row
    seen: set[str] = set()
    head = True
    for at, message in enumerate(messages):
        role = message["role"]
        if role == "system":
            continue
        if role != row:
            if role == "assistant":
                yield from _unanswered(calls_at, open_calls, answered)
                calls_at, open_calls = at, {}
            else:
                answered, head = set(), True
            row = role
        content = message.get("content")
        if not isinstance(content, list):
            head = False
            continue
        for index, block in enumerate(content):
            kind = block["type"]
            if kind == "tool_use":
                name = block["id"]
                if name in seen:
                    yield bad(f"messages.{at}.content.{index}: `tool_use` ids must be unique, and {name} was used before")
                seen.add(name)
                open_calls[name] = None
            elif kind == "tool_result":
                name = block["tool_use_id"]
                yield from _result(f"messages.{at}.content.{index}", name, open_calls, answered)
                if head:
                    answered.add(name)
            else:
                head = False
    yield from _unanswered(calls_at, open_calls, answered if row == "user" else set())


def _result(path: str, name: str, open_calls: Mapping[str, None], answered: Collection[str]) -> Iterator[Problem]:
    if name not in open_calls:
        yield bad(
            f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. "
            "A result belongs into the message right behind its `tool_use` block."
        )
    if name in answered:
        yield bad(f"{path}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {name}")


def _unanswered(at: int, open_calls: Mapping[str, None], answered: Collection[str]) -> Iterator[Problem]:
    if missing := [name for name in open_calls if name not in answered]:
        yield bad(
            f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. "
            "The next message must begin with a result for each."
        )


def active_thinking(body: Mapping[str, Any]) -> Iterator[Problem]:
    """Within a tool round the thinking that led to the call must still be there."""
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return
    messages = body["messages"]
    results = _row_start(messages, len(messages), "user")
    calls = _row_start(messages, results, "assistant")
    if calls == results or results == len(messages) or _first(messages[results]) != "tool_result":
        return
    kind = _first(messages[calls])
    if kind not in ("thinking", "redacted_thinking"):
        yield bad(
            f"messages.{calls}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. "
            "While `thinking` is enabled, the last `assistant` message of a tool round begins with its thinking."
        )


def _row_start(messages: Sequence[Mapping[str, Any]], end: int, role: str) -> int:
    """Where the messages of this role begin that stand right before `end`."""
    while end > 0 and messages[end - 1]["role"] == role:
        end -= 1
    return end


def _first(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return str(content[0]["type"]) if isinstance(content, list) and content else "text"
