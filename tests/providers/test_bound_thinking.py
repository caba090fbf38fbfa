"""Thinking that is bound to a conversation which has changed: when the provider asks the server to drop it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lamina.core.errors import BadRequest
from lamina.core.reply import Reply
from lamina.providers import Capabilities
from lamina.providers.anthropic import BINDING_BETA, AnthropicProvider, dropping_bound
from lamina.testing import MessagesServer
from lamina.testing.request_validation import Limits

DROP = {"prefix_mismatch_behavior": "drop_block"}
HELLO = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (None, {"type": "adaptive", "block_binding": DROP}),
        ({"type": "adaptive"}, {"type": "adaptive", "block_binding": DROP}),
        ({"type": "enabled", "budget_tokens": 2_000}, {"type": "enabled", "budget_tokens": 2_000, "block_binding": DROP}),
        ({"type": "disabled"}, {"type": "disabled"}),
        ({"type": "adaptive", "block_binding": {"x": "y"}}, {"type": "adaptive", "block_binding": {"x": "y"}}),
    ],
)
def test_the_wish_is_added_to_what_was_asked_for(thinking: dict[str, Any] | None, expected: dict[str, Any]) -> None:
    request = {"model": "m", "messages": HELLO, "betas": ["one"], **({"thinking": thinking} if thinking else {})}
    rendered = dropping_bound(request)
    assert rendered["thinking"] == expected
    assert rendered["betas"] == (["one", BINDING_BETA] if rendered is not request else ["one"])
    assert "block_binding" not in (thinking or {}) or rendered is request


@pytest.mark.parametrize(
    ("model", "address", "asks"),
    [
        ("claude-sonnet-5-5", None, True),
        ("claude-opus-5-5", None, True),
        ("claude-haiku-5-5", None, True),
        ("claude-fable-5-1", None, True),
        ("claude-mythos-5-2", None, True),
        ("anthropic/claude-sonnet-5.5", None, True),
        ("claude-sonnet-5-5", "http://127.0.0.1:9", False),
        ("claude-sonnet-5", None, False),
        ("claude-opus-5", None, False),
        ("claude-sonnet-4-5", None, False),
        ("some-model", None, False),
    ],
)
def test_only_models_known_to_bind_are_asked_from_the_start(model: str, address: str | None, asks: bool) -> None:
    provider = AnthropicProvider(model, api_key="key", base_url=address)
    assert ("thinking" in provider.render({"model": model, "max_tokens": 9, "messages": HELLO})) is asks


def changed(server: MessagesServer) -> list[dict[str, Any]]:
    """A conversation whose first message differs from the one that its thinking is bound to."""
    server.reply(thinking="hm", text="hi")
    provider = AnthropicProvider("claude-sonnet-5", base_url=server.url, api_key="key")
    reply = provider.ask({"model": "claude-sonnet-5", "max_tokens": 9, "messages": HELLO})
    again = {"role": "user", "content": [{"type": "text", "text": "and?"}]}
    other = {"role": "user", "content": [{"type": "text", "text": "another beginning"}]}
    return [other, {"role": "assistant", "content": [block.wire for block in reply.blocks]}, again]


async def asked_twice(provider: AnthropicProvider, request: dict[str, Any]) -> list[Reply]:
    try:
        return [await provider.ask_async(request), await provider.ask_async(request)]
    finally:
        await provider.aclose()


@pytest.mark.prefix_free("the history is changed on purpose")
@pytest.mark.parametrize("in_a_loop", [False, True], ids=["sync", "async"])
def test_after_one_refusal_every_request_asks_for_it(in_a_loop: bool) -> None:
    with MessagesServer(limits=Limits(bind_thinking=True)) as server:
        request = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": changed(server)}
        provider = AnthropicProvider("claude-sonnet-5", base_url=server.url, api_key="key")
        replies = asyncio.run(asked_twice(provider, request)) if in_a_loop else [provider.ask(request) for _ in range(2)]
        assert [received.status for received in server.requests] == [200, 400, 200, 200]
        assert replies[1].notes["input_transformations"][0]["reason"] == "prefix_binding_mismatch"
        side = provider.ask({"model": "claude-sonnet-5", "max_tokens": 9, "messages": HELLO}, purpose="summary")
        assert side.complete
        assert server.requests[-1].body["thinking"]["block_binding"] == DROP


@pytest.mark.prefix_free("the history is changed on purpose")
def test_with_thinking_off_the_refusal_is_the_callers_to_see() -> None:
    with MessagesServer(limits=Limits(bind_thinking=True)) as server:
        request = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": changed(server), "thinking": {"type": "disabled"}}
        provider = AnthropicProvider("claude-sonnet-5", base_url=server.url, api_key="key")
        with pytest.raises(BadRequest, match="bound to a different conversation"):
            provider.ask(request)
        assert [received.status for received in server.requests] == [200, 400, 400]


def test_a_key_the_server_refuses_is_left_out_from_then_on() -> None:
    able = Capabilities("messages", cache_marks=True, cache_edits=True)
    with MessagesServer(limits=Limits(cache_edits=False)) as server:
        provider = AnthropicProvider("claude-sonnet-5", base_url=server.url, api_key="key", capabilities=able)
        request = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": HELLO, "cache_edits": {"delete": ["t1"]}}
        assert provider.ask(request).complete
        assert provider.ask(request).complete
        assert [received.status for received in server.requests] == [400, 200, 200]
        assert not provider.capabilities.cache_edits
