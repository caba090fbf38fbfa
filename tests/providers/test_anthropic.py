"""Features of the Messages API only: signed thinking, cache marks with lifetimes, server-side edits, diagnostics."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from lamina.core.blocks import Thinking
from lamina.core.errors import BadRequest
from lamina.core.reply import Reply
from lamina.providers import Capabilities
from lamina.providers.anthropic import AnthropicProvider
from lamina.testing import MessagesServer

Wire = dict[str, Any]
TEXT = "You are a careful assistant. " * 300
REQUEST: Wire = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 2_000,
    "system": [{"type": "text", "text": TEXT}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Good morning"}]}],
}
EVERYTHING = Capabilities(
    "messages", cache_marks=True, context_management=True, diagnostics=True, cache_edits=True, thinking=True
)


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as server:
        yield server


@pytest.fixture
def provider(server: MessagesServer) -> Iterator[AnthropicProvider]:
    provider = AnthropicProvider("claude-sonnet-5-5", base_url=server.url, capabilities=EVERYTHING, max_retries=0)
    yield provider
    provider.close()


def grown(request: Wire, reply: Reply, *blocks: Wire) -> Wire:
    answer = {"role": "assistant", "content": [block.wire for block in reply.blocks]}
    return {**request, "messages": [*request["messages"], answer, {"role": "user", "content": list(blocks)}]}


def text(value: str, **more: Any) -> Wire:
    return {"type": "text", "text": value, **more}


def test_thinking_comes_with_its_signature_and_goes_back_byte_for_byte(
    server: MessagesServer, provider: AnthropicProvider
) -> None:
    request = {**REQUEST, "thinking": {"type": "adaptive"}}
    server.reply(thinking="Let me think about this for a while.", text="Good morning.")
    reply = provider.ask(request)
    thinking = reply.blocks[0]
    assert isinstance(thinking, Thinking)
    assert thinking.signature
    again = provider.ask(grown(request, reply, text("and now?")))
    assert again.text == "You said: and now?"


def test_thinking_that_was_changed_is_refused_by_the_server(server: MessagesServer, provider: AnthropicProvider) -> None:
    request = {**REQUEST, "thinking": {"type": "adaptive"}}
    server.reply(thinking="Let me think.", text="Good morning.")
    changed = grown(request, provider.ask(request), text("and now?"))
    changed["messages"][1]["content"][0] = {**changed["messages"][1]["content"][0], "thinking": "Something else."}
    server.announce_break("a thinking block is changed on purpose")
    with pytest.raises(BadRequest, match="signature"):
        provider.ask(changed)


@pytest.mark.spec("K1")
def test_cache_marks_and_their_lifetimes_reach_the_server_and_are_billed_apart(
    server: MessagesServer, provider: AnthropicProvider
) -> None:
    hour = [text(TEXT, cache_control={"type": "ephemeral", "ttl": "1h"})]
    first = {
        **REQUEST,
        "system": hour,
        "messages": [{"role": "user", "content": [text("Morning " * 900, cache_control={"type": "ephemeral"})]}],
    }
    reply = provider.ask(first)
    assert reply.usage is not None
    assert reply.usage.cache_write_1h > 1_000
    assert reply.usage.cache_write - reply.usage.cache_write_1h > 1_000
    again = provider.ask(grown(first, reply, text("again")))
    assert again.usage is not None
    assert again.usage.cache_read == reply.usage.cache_write


def test_the_servers_own_clearing_is_asked_for_and_reported(server: MessagesServer, provider: AnthropicProvider) -> None:
    tools = [{"name": "Read", "input_schema": {"type": "object"}}]
    edit = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 3_000},
        "keep": {"type": "tool_uses", "value": 1},
    }
    request: Wire = {**REQUEST, "tools": tools, "context_management": {"edits": [edit]}}
    for _ in range(3):
        server.reply(tool_use=("Read", {}))
        reply = provider.ask(request)
        (call,) = reply.tool_uses
        request = grown(request, reply, {"type": "tool_result", "tool_use_id": call.id, "content": "word " * 1_000})
    reply = provider.ask(request)
    (applied,) = reply.notes["context_management"]["applied_edits"]
    assert applied["cleared_tool_uses"] == 2
    assert applied["cleared_input_tokens"] > 2_000
    assert server.requests[-1].betas == ("context-management-2025-06-27",)


def test_the_server_says_why_the_cache_was_missed(server: MessagesServer, provider: AnthropicProvider) -> None:
    marked = {**REQUEST, "system": [text(TEXT, cache_control={"type": "ephemeral"})]}
    first = provider.ask({**marked, "diagnostics": {"previous_message_id": None}})
    changed = {**marked, "system": [text("Other. " + TEXT, cache_control={"type": "ephemeral"})]}
    server.announce_break("the system prompt is changed on purpose")
    second = provider.ask({**changed, "diagnostics": {"previous_message_id": first.id}})
    assert second.notes["diagnostics"]["cache_miss_reason"]["type"] == "system_changed"


def test_sampling_options_reach_a_server_although_the_sdk_has_no_parameter_for_them(
    server: MessagesServer, provider: AnthropicProvider
) -> None:
    provider.ask({**REQUEST, "temperature": 0.5})
    assert server.requests[0].body["temperature"] == 0.5


def test_a_sync_client_alone_serves_async_calls_in_a_thread(server: MessagesServer) -> None:
    with anthropic.Anthropic(api_key="x", base_url=server.url) as client:
        provider = AnthropicProvider("claude-sonnet-5-5", client=client)
        assert asyncio.run(provider.ask_async(REQUEST)).text == "You said: Good morning"
