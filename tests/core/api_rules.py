"""The API's rules for a message list, implemented a second time, independently of the code under test."""

from __future__ import annotations

from typing import Any

MODEL_ONLY = ("thinking", "redacted_thinking", "tool_use")
PERSON_ONLY = ("tool_result", "image", "document")


def complaints(messages: list[dict[str, Any]]) -> list[str]:
    """Return everything that the Messages API would reject; empty if the list may be sent."""
    found: list[str] = []
    if messages and messages[0]["role"] != "user":
        found.append("the first message is not the user's")
    used: set[str] = set()
    for index, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if set(message) != {"role", "content"}:
            found.append(f"message {index} has other fields")
        if index and messages[index - 1]["role"] == role:
            found.append(f"messages {index - 1} and {index} have the same role")
        if not isinstance(content, list) or not content:
            found.append(f"message {index} is empty")
            continue
        found += [f"message {index}: {problem}" for block in content for problem in _block(block, role)]
        found += _pairs(messages, index, used)
        found += [f"message {index}: {problem}" for problem in _server_pairs(content, role, last=index == len(messages) - 1)]
        if role == "assistant" and content[-1]["type"] in ("thinking", "redacted_thinking"):
            found.append(f"message {index} ends in thinking")
    if messages and any(block["type"] == "tool_use" for block in messages[-1]["content"]):
        found.append("the last message asks for tools nobody answered")
    return found


def _block(block: dict[str, Any], role: str) -> list[str]:
    kind = block["type"]
    found = []
    if "cache_control" in block:
        found.append("a mark is part of the frozen block")
    if (kind in MODEL_ONLY and role != "assistant") or (kind in PERSON_ONLY and role != "user"):
        found.append(f"a {kind} that is not the {role}'s to send")
    if kind == "text" and not (isinstance(block["text"], str) and block["text"].strip()):
        found.append("empty text")
    if kind == "thinking" and not (isinstance(block.get("signature"), str) and block["signature"]):
        found.append("thinking without a signature")
    if kind == "tool_use" and not isinstance(block["input"], dict):
        found.append("a tool call whose input is no object")
    if kind == "tool_result":
        found += _result(block)
    return found


def _result(block: dict[str, Any]) -> list[str]:
    content = block["content"]
    found = []
    if block.get("is_error") and not content:
        found.append("an error without a word")
    if not isinstance(block.get("is_error", False), bool):
        found.append("is_error is neither true nor false")
    if isinstance(content, list):
        for part in content:
            if "cache_control" in part:
                found.append("a mark inside a result")
            if part["type"] == "text" and not part["text"]:
                found.append("an empty text inside a result")
    return found


def _pairs(messages: list[dict[str, Any]], index: int, used: set[str]) -> list[str]:
    message = messages[index]
    found = []
    if message["role"] == "assistant":
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        if len(set(calls)) != len(calls) or used & set(calls):
            found.append(f"message {index} repeats a tool call id")
        used.update(calls)
        answers = []
        if index + 1 < len(messages):
            answers = [block["tool_use_id"] for block in messages[index + 1]["content"] if block["type"] == "tool_result"]
        if index + 1 < len(messages) and sorted(calls) != sorted(answers):
            found.append(f"message {index} and {index + 1}: calls {calls} but results {answers}")
    else:
        kinds = [block["type"] == "tool_result" for block in message["content"]]
        if kinds != sorted(kinds, reverse=True):
            found.append(f"message {index}: results must come first")
        if any(kinds) and (index == 0 or messages[index - 1]["role"] != "assistant"):
            found.append(f"message {index}: results without calls")
    return found


def _server_pairs(content: list[dict[str, Any]], role: str, *, last: bool) -> list[str]:
    """Check tools that run at the provider: call and result are in one answer, in this order, once each.

    Only the last answer may end with an open call, if the provider paused.
    """
    open_calls: list[Any] = []
    done: list[Any] = []
    found = []
    for block in content:
        kind = block["type"]
        if kind.endswith("_tool_use"):
            open_calls.append(block.get("id"))
        elif kind.endswith("_tool_result"):
            done.append(block.get("tool_use_id"))
            if done[-1] not in open_calls:
                found.append("a server's result without its call before it")
    if role != "assistant" and (open_calls or done):
        found.append("a server's tool in what a person says")
    if len(set(map(str, open_calls))) != len(open_calls) or len(set(map(str, done))) != len(done):
        found.append("a server's call or result twice")
    if not last and any(call not in done for call in open_calls):
        found.append("a server's call without its result")
    return found
