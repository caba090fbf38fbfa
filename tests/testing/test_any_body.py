"""The server answers any request: one that it cannot understand is refused and never causes a server error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.testing.request_handler import respond
from lamina.testing.server_state import ServerState
from lamina.testing.transport import Incoming

MARK = {"type": "ephemeral", "ttl": "5m"}
MESSAGES = {
    "model": "claude-haiku-4-5",
    "max_tokens": 5_000,
    "system": [{"type": "text", "text": "s", "cache_control": MARK}],
    "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "auto"},
    "thinking": {"type": "enabled", "budget_tokens": 2_000, "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
    "metadata": {"user_id": "u"},
    "diagnostics": {"previous_message_id": None},
    "context_management": {
        "edits": [
            {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}},
            {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 0}, "exclude_tools": ["Write"]},
        ]
    },
    "cache_edits": {"delete": ["t1"]},
    "output_config": {"effort": "low"},
    "cache_control": MARK,
    "stream": True,
    "messages": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "document", "source": {}, "citations": {"enabled": True}}],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x", "cache_control": MARK}]}
            ],
        },
        {"role": "user", "content": "more"},
    ],
}
CHAT = {
    "model": "gpt-test",
    "stream": True,
    "stream_options": {"include_usage": True},
    "tools": [{"type": "function", "function": {"name": "Read"}}],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ],
}
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 5_000),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.just([{}]),
    st.just([None]),
    st.just("x"),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def answer(route: str, body: Any) -> int:
    betas = "context-management-2025-06-27,lamina-cache-edits-1,thinking-binding-controls-2026-08-01"
    return respond(
        ServerState(), Incoming("POST", route, {"x-api-key": "any", "anthropic-beta": betas}, json.dumps(body).encode())
    ).status


def test_the_bodies_that_are_changed_below_are_taken_as_they_are() -> None:
    whole = {key: value for key, value in MESSAGES.items() if key != "thinking"}
    assert answer("/v1/messages", whole) == 200
    assert answer("/v1/chat/completions", CHAT) == 200


@pytest.mark.parametrize("route", ["/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions"])
@settings(max_examples=400)
@given(data=st.data())
def test_any_value_in_any_place_gets_an_answer(route: str, data: st.DataObject) -> None:
    body: Any = CHAT if "chat" in route else MESSAGES
    for _ in range(data.draw(st.integers(1, 2))):
        body = replaced(body, data.draw(st.sampled_from(places(body))), data.draw(VALUES))
    assert answer(route, body) in (200, 400)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'"text"', b"5", b"null", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    for route in ("/v1/messages", "/v1/chat/completions"):
        assert respond(ServerState(), Incoming("POST", route, {"x-api-key": "any"}, body)).status == 400
