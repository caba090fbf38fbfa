"""Aborting a call: it ends at the next event or before the next try, and no request follows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from lamina.core.effects import Ask
from lamina.core.errors import Aborted
from lamina.fork.model_call import ask_until
from lamina.providers import Provider
from lamina.providers.anthropic import AnthropicProvider
from lamina.providers.offline import OfflineProvider
from lamina.providers.openai import OpenAIProvider
from lamina.testing import MessagesServer

PATIENCE = 120
REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
}


@pytest.fixture(params=["anthropic", "openai"])
def provider(request: pytest.FixtureRequest, messages_server: MessagesServer) -> Iterator[Provider]:
    made: AnthropicProvider | OpenAIProvider = (
        AnthropicProvider("claude-sonnet-5-5", base_url=messages_server.url, api_key="any")
        if request.param == "anthropic"
        else OpenAIProvider("claude-sonnet-5-5", base_url=messages_server.openai_url, api_key="any")
    )
    yield made
    made.close()


def test_a_stream_ends_with_the_event_after_the_abort(provider: Provider, messages_server: MessagesServer) -> None:
    abort = threading.Event()
    heard: list[str] = []

    def hear(event: dict[str, Any]) -> None:
        heard.append(event["type"])
        if event["type"] == "content_block_delta":
            abort.set()

    messages_server.reply(text="one two three four five six seven eight nine ten " * 20)
    with pytest.raises(Aborted):
        provider.ask(REQUEST, on_event=hear, abort=abort)
    assert heard.count("content_block_delta") == 1
    assert "message_stop" not in heard
    assert len(messages_server.requests) == 1


def test_a_server_that_asks_for_patience_is_not_waited_for(provider: Provider, messages_server: MessagesServer) -> None:
    abort = threading.Event()
    messages_server.fail(529, retry_after=100, times=5)
    watcher = threading.Thread(target=set_when_asked, args=(messages_server, abort))
    watcher.start()
    with pytest.raises(Aborted):
        provider.ask(REQUEST, abort=abort)
    watcher.join(PATIENCE)
    assert len(messages_server.requests) == 1


def test_a_call_that_was_left_is_not_sent_again(provider: Provider, messages_server: MessagesServer) -> None:
    """The server fails only after the call was aborted, so there is no retry."""
    abort, release = threading.Event(), threading.Event()
    messages_server.fail(529, delay=release)
    watcher = threading.Thread(target=set_when_asked, args=(messages_server, abort))
    watcher.start()
    with pytest.raises(Aborted):
        ask_until(abort, provider, Ask(REQUEST, "chat"))
    release.set()
    for thread in threading.enumerate():
        if thread.name == "lamina-ask":
            thread.join(PATIENCE)
    watcher.join(PATIENCE)
    assert len(messages_server.requests) == 1


def test_nothing_is_sent_when_the_abort_came_first(provider: Provider, messages_server: MessagesServer) -> None:
    abort = threading.Event()
    abort.set()
    for asked in (provider, OfflineProvider()):
        with pytest.raises(Aborted):
            asked.ask(REQUEST, abort=abort)
    assert messages_server.requests == []


def set_when_asked(server: MessagesServer, abort: threading.Event) -> None:
    """Wait until the server has a request; a failing test waits the whole time."""
    for _ in range(PATIENCE * 100):
        if server.requests or abort.wait(0.01):
            break
    abort.set()
