"""Behaviour of Chat Completions servers only: rejected parameters, automatic caching, missing usage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lamina.core.errors import BadRequest
from lamina.providers.openai import OpenAIProvider
from lamina.providers.retry import Waits
from lamina.testing import MessagesServer

Wire = dict[str, Any]
REQUEST: Wire = {
    "model": "some-model",
    "max_tokens": 200,
    "system": [{"type": "text", "text": "You are careful. " * 400}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Good morning"}]}],
}


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as server:
        yield server


@pytest.fixture
def provider(server: MessagesServer) -> Iterator[OpenAIProvider]:
    def no_sleep(seconds: float) -> None:
        raise AssertionError(f"slept {seconds} s")

    provider = OpenAIProvider("some-model", base_url=server.openai_url, waits=Waits(sleep=no_sleep))
    yield provider
    provider.close()


def test_a_server_that_knows_no_stream_options_is_asked_without_from_then_on(
    server: MessagesServer, provider: OpenAIProvider
) -> None:
    server.fail(400, message="Unrecognized request argument supplied: stream_options")
    first, second = provider.ask(REQUEST), provider.ask(REQUEST)
    assert [received.body.get("stream_options") for received in server.requests] == [{"include_usage": True}, None, None]
    assert (first.usage, second.usage) == (None, None)
    assert first.complete


def test_a_server_that_wants_the_other_name_for_the_limit_gets_it(server: MessagesServer, provider: OpenAIProvider) -> None:
    server.fail(400, message="Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.")
    assert provider.ask(REQUEST).complete
    assert [key for received in server.requests for key in received.body if key.startswith("max_")] == [
        "max_tokens",
        "max_completion_tokens",
    ]


def test_a_rejection_that_stays_is_an_error_and_no_endless_loop(server: MessagesServer, provider: OpenAIProvider) -> None:
    server.fail(400, message="stream_options and max_completion_tokens are both wrong", times=9)
    with pytest.raises(BadRequest):
        provider.ask(REQUEST)
    assert len(server.requests) == 3


def test_a_growing_conversation_is_read_from_the_servers_cache(server: MessagesServer, provider: OpenAIProvider) -> None:
    first = provider.ask(REQUEST)
    answer = {"role": "assistant", "content": [block.wire for block in first.blocks]}
    more = {"role": "user", "content": [{"type": "text", "text": "Tell me more"}]}
    second = provider.ask({**REQUEST, "messages": [*REQUEST["messages"], answer, more]})
    assert second.usage is not None
    assert first.usage is not None
    assert second.usage.cache_read > 1_000
    assert second.usage.input_tokens < first.usage.prompt


def test_pictures_in_results_and_unknown_blocks_are_taken_by_the_server(server: MessagesServer, provider: OpenAIProvider) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    tools = [{"name": "Look", "input_schema": {"type": "object"}}]
    server.reply(tool_use=("Look", {}))
    request: Wire = {**REQUEST, "tools": tools}
    reply = provider.ask(request)
    result = {"type": "tool_result", "tool_use_id": reply.tool_uses[0].id, "content": [{"type": "text", "text": "here"}, picture]}
    answer = {"role": "assistant", "content": [block.wire for block in reply.blocks]}
    user = {"role": "user", "content": [result, {"type": "something_new", "x": 1}, {"type": "text", "text": "what is it?"}]}
    assert provider.ask({**request, "messages": [*request["messages"], answer, user]}).text == "You said: what is it?"
