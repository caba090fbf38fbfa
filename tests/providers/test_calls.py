"""Answers and faults of both providers, sync and async, through the official SDKs against a real server on loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import anthropic
import openai
import pytest

from lamina.core.blocks import ToolUse
from lamina.core.errors import (
    AuthFailed,
    BadRequest,
    ConnectionLost,
    Overloaded,
    PromptTooLong,
    ProviderError,
    RateLimited,
    ServerFault,
    StreamBroken,
)
from lamina.core.reply import Reply
from lamina.providers.anthropic import AnthropicProvider
from lamina.providers.openai import OpenAIProvider
from lamina.providers.retry import Waits
from lamina.testing import MessagesServer
from lamina.testing.script import make_answer

Wire = dict[str, Any]
REQUEST: Wire = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 500,
    "system": [{"type": "text", "text": "You are a test."}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Good morning"}]}],
}
TOOLS = [
    {
        "name": "Read",
        "description": "Reads a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
]


class Wired(NamedTuple):
    """One provider in one mode, and its retry delays."""

    server: MessagesServer
    make: Callable[..., AnthropicProvider | OpenAIProvider]
    mode: str
    slept: list[float]

    def ask(self, request: Wire = REQUEST, *, purpose: str = "chat", on_event: Any = None, **options: Any) -> Reply:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        waits = Waits(sleep=self.slept.append, sleep_async=sleep, random=lambda: 0.0)
        provider = self.make(waits=waits, **options)

        async def run() -> Reply:
            try:
                return await provider.ask_async(request, purpose=purpose, on_event=on_event)
            finally:
                await provider.aclose()

        if self.mode == "async":
            return asyncio.run(run())
        try:
            return provider.ask(request, purpose=purpose, on_event=on_event)
        finally:
            provider.close()


@pytest.fixture(params=["anthropic", "openai"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sync", "async"])
def wired(request: pytest.FixtureRequest, name: str) -> Iterator[Wired]:
    with MessagesServer(key="secret") as server:

        def make(**options: Any) -> AnthropicProvider | OpenAIProvider:
            given = {"api_key": "secret", **options}
            if name == "anthropic":
                return AnthropicProvider("claude-sonnet-5-5", **{"base_url": server.url, **given})
            return OpenAIProvider("claude-sonnet-5-5", **{"base_url": server.openai_url, **given})

        yield Wired(server, make, str(request.param), [])


def test_a_plain_answer_arrives_with_its_usage_and_ids(wired: Wired) -> None:
    wired.server.reply(text="Good morning to you.")
    reply = wired.ask()
    assert (reply.text, reply.stop_reason, reply.complete) == ("Good morning to you.", "end_turn", True)
    assert reply.id
    assert reply.request_id
    assert reply.usage is not None
    assert reply.usage.prompt > 0
    assert reply.usage.output_tokens > 0
    assert wired.slept == []


def test_a_listener_hears_the_same_kind_of_events_from_everyone(wired: Wired) -> None:
    wired.server.reply(text="one two three four five six seven")
    heard: list[Wire] = []
    reply = wired.ask(on_event=heard.append)
    said = [event["delta"]["text"] for event in heard if event["type"] == "content_block_delta"]
    assert "".join(said) == reply.text
    assert len(said) > 1
    assert [heard[0]["type"], heard[-1]["type"]] == ["message_start", "message_stop"]


def test_tool_calls_and_their_results_go_round(wired: Wired) -> None:
    wired.server.reply(text="I look.", tool_use=[("Read", {"path": "a"}), ("Read", {"path": "ü\n"})])
    first = wired.ask({**REQUEST, "tools": TOOLS})
    assert [call.input for call in first.tool_uses] == [{"path": "a"}, {"path": "ü\n"}]
    results: list[Wire] = [
        {"type": "tool_result", "tool_use_id": call.id, "content": f"file {call.input}"} for call in first.tool_uses
    ]
    results[1]["is_error"] = True
    messages = [
        *REQUEST["messages"],
        {"role": "assistant", "content": [block.wire for block in first.blocks]},
        {"role": "user", "content": [*results, {"type": "text", "text": "and now?"}]},
    ]
    second = wired.ask({**REQUEST, "tools": TOOLS, "messages": messages})
    assert second.text == "You said: and now?"


@pytest.mark.parametrize(("stop", "reason"), [("max_tokens", "max_tokens"), ("refusal", "refusal")])
def test_an_answer_that_stopped_early_says_why_and_runs_nothing(wired: Wired, stop: str, reason: str) -> None:
    wired.server.reply(text="I will", tool_use=("Read", {"path": "a"}), stop_reason=stop)
    reply = wired.ask({**REQUEST, "tools": TOOLS})
    assert (reply.stop_reason, reply.tool_uses, wired.slept) == (reason, (), [])


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, RateLimited), (529, Overloaded), (503, Overloaded), (500, ServerFault), (408, ConnectionLost)],
)
def test_a_fault_that_passes_is_waited_out(wired: Wired, status: int, kind: type[ProviderError]) -> None:
    wired.server.fail(status, times=2)
    reply = wired.ask()
    assert reply.text == "You said: Good morning"
    assert wired.slept == [0.25, 0.5]
    assert len(wired.server.requests) == 3
    wired.server.fail(status, times=5)
    with pytest.raises(kind) as caught:
        wired.ask()
    assert caught.value.status == status


def test_the_server_is_waited_for_as_long_as_it_asks(wired: Wired) -> None:
    wired.server.fail(429, retry_after=7, times=2)
    assert wired.ask().complete
    assert wired.slept == [7.0, 7.0]


def test_a_wait_beyond_the_budget_is_an_error_at_once_that_names_it(wired: Wired) -> None:
    wired.server.fail(429, retry_after=3_600)
    with pytest.raises(RateLimited) as caught:
        wired.ask()
    assert (caught.value.retry_after, wired.slept) == (3_600, [])


def test_tries_are_bounded_and_the_sdks_own_are_off(wired: Wired) -> None:
    wired.server.fail(500, times=20)
    with pytest.raises(ServerFault):
        wired.ask(max_retries=2)
    assert len(wired.server.requests) == 3
    with pytest.raises(ServerFault):
        wired.ask(max_retries=0)
    assert len(wired.server.requests) == 4
    with pytest.raises(ServerFault):
        wired.ask(purpose="extraction")
    assert len(wired.server.requests) == 6


def test_a_wrong_key_is_never_tried_again(wired: Wired) -> None:
    with pytest.raises(AuthFailed) as caught:
        wired.ask(api_key="wrong")
    assert caught.value.status == 401
    assert wired.slept == []


def test_a_bad_request_is_an_error_with_the_servers_words(wired: Wired) -> None:
    wired.server.fail(400, message="this is no request")
    with pytest.raises(BadRequest, match="this is no request"):
        wired.ask()
    assert wired.slept == []


def test_a_prompt_too_long_carries_both_counts(wired: Wired) -> None:
    wired.server.window = 100
    long = {"role": "user", "content": [{"type": "text", "text": "word " * 400}]}
    with pytest.raises(PromptTooLong) as caught:
        wired.ask({**REQUEST, "max_tokens": 10, "messages": [long]})
    assert caught.value.limit == 100
    assert caught.value.actual is not None
    assert caught.value.actual > 400
    assert wired.slept == []


def test_a_request_larger_than_the_server_takes_is_a_prompt_too_long_without_counts(wired: Wired) -> None:
    wired.server.body_limit = 5_000
    long = {"role": "user", "content": [{"type": "text", "text": "word " * 4_000}]}
    with pytest.raises(PromptTooLong) as caught:
        wired.ask({**REQUEST, "messages": [long]})
    assert (caught.value.status, caught.value.gap) == (413, None)


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_connection_lost_before_the_answer_is_tried_again(wired: Wired, how: Any) -> None:
    wired.server.cut(after=0, how=how)
    assert wired.ask().complete
    assert len(wired.server.requests) == 2
    assert wired.slept == [0.25]


def test_nobody_there_is_a_lost_connection(wired: Wired) -> None:
    with MessagesServer() as gone:
        nowhere = gone.url
    with pytest.raises(ConnectionLost):
        wired.ask(max_retries=1, base_url=nowhere)
    assert len(wired.slept) == 1


@pytest.mark.parametrize("how", ["reset", "close", "end"])
def test_half_an_answer_nobody_heard_is_dropped_and_counted_never(wired: Wired, how: Any) -> None:
    wired.server.cut("A long answer that stops.", after=4, how=how)
    wired.server.reply(text="whole", output_tokens=3)
    reply = wired.ask()
    assert reply.text == "whole"
    assert reply.usage is not None
    assert reply.usage.output_tokens == 3
    assert reply.usage.prompt < 100


@pytest.mark.parametrize("how", ["reset", "close", "end"])
def test_half_an_answer_somebody_heard_is_kept_as_half_and_not_asked_for_again(wired: Wired, how: Any) -> None:
    wired.server.cut("A long answer that stops.", after=4, how=how)
    heard: list[Wire] = []
    with pytest.raises(StreamBroken) as caught:
        wired.ask(on_event=heard.append)
    (block,) = caught.value.partial
    assert "A long answer that stops.".startswith(block["text"])
    assert block["text"]
    assert len(wired.server.requests) == 1


def test_a_caller_may_allow_another_try_after_a_part_was_heard(wired: Wired) -> None:
    wired.server.cut("A long answer that stops.", after=4)
    heard: list[str] = []
    reply = wired.ask(on_event=lambda event: heard.append(event["type"]), retry_partial=True)
    assert reply.text == "You said: Good morning"
    assert heard.count("message_start") == 2


def test_a_tool_call_cut_in_the_middle_is_never_executed(wired: Wired) -> None:
    wired.server.reply(tool_use=("Read", {"path": "x" * 200}))
    whole: list[Wire] = []
    wired.ask({**REQUEST, "tools": TOOLS}, on_event=whole.append)
    for after in range(2, len(whole) - 2, 3):
        wired.server.cut(make_answer(tool_use=("Read", {"path": "x" * 200})), after=after)
        with pytest.raises(StreamBroken) as caught:
            wired.ask({**REQUEST, "tools": TOOLS}, max_retries=0)
        assert [block["type"] for block in caught.value.partial] == ["tool_use"]


def test_an_answer_that_never_says_why_it_ended_is_a_broken_one(wired: Wired) -> None:
    wired.server.reply(text="hm", tool_use=("Read", {"path": "a"}), stop_reason=None)
    with pytest.raises(StreamBroken) as caught:
        wired.ask({**REQUEST, "tools": TOOLS}, max_retries=0)
    assert len(caught.value.partial) == 2


@pytest.mark.parametrize("what", ["sse", "gzip"])
def test_bytes_nobody_can_read_are_tried_again_and_then_a_broken_stream(wired: Wired, what: Any) -> None:
    wired.server.garble(what)
    assert wired.ask().complete
    wired.server.garble(what)
    with pytest.raises(StreamBroken):
        wired.ask(max_retries=0)


def test_an_error_in_the_stream_before_any_word_is_waited_out(wired: Wired) -> None:
    wired.server.interrupt(after=1)
    assert wired.ask(on_event=lambda event: None).complete
    assert wired.slept == [0.25]


def test_an_error_in_the_stream_behind_some_words_keeps_them(wired: Wired) -> None:
    wired.server.interrupt("Some words and then", after=4)
    with pytest.raises(StreamBroken, match="Overloaded") as caught:
        wired.ask(on_event=lambda event: None)
    assert caught.value.partial[0]["type"] == "text"


def test_a_server_that_never_answers_is_given_up_on(wired: Wired) -> None:
    never = threading.Event()
    wired.server.reply(text="late", delay=never)
    try:
        with pytest.raises(ConnectionLost):
            wired.ask(timeout=0.2, max_retries=0)
    finally:
        never.set()


def test_a_listener_that_fails_is_not_taken_for_a_fault_of_the_call(wired: Wired) -> None:
    def listen(event: Wire) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        wired.ask(on_event=listen)
    assert len(wired.server.requests) == 1


def test_a_lone_surrogate_is_replaced_on_the_way_out(wired: Wired) -> None:
    assert wired.ask({**REQUEST, "system": [{"type": "text", "text": "a\ud800b"}]}).complete
    assert "a\ufffdb" in str(wired.server.requests[-1].body)


def test_a_client_of_ones_own_is_used_and_left_open(wired: Wired, name: str) -> None:
    module: Any = anthropic if name == "anthropic" else openai
    url = wired.server.url if name == "anthropic" else wired.server.openai_url
    sync = getattr(module, {"anthropic": "Anthropic", "openai": "OpenAI"}[name])
    asynchronous = getattr(module, {"anthropic": "AsyncAnthropic", "openai": "AsyncOpenAI"}[name])
    headers = {"x-mine": "yes"}
    with sync(api_key="secret", base_url=url, default_headers=headers) as client:
        wired.server.fail(500)
        assert wired.ask(client=client, base_url=None, api_key=None).complete
        assert not client.is_closed()

    async def run() -> None:
        async with asynchronous(api_key="secret", base_url=url, default_headers=headers) as client:
            provider = wired.make(client=client, base_url=None, api_key=None)
            assert (await provider.ask_async(REQUEST)).complete
            await provider.aclose()
            assert not client.is_closed()

    asyncio.run(run())
    assert [received.headers.get("x-mine") for received in wired.server.requests] == ["yes"] * 3
    assert wired.slept == [0.25]


def test_one_provider_serves_one_event_loop_after_another(wired: Wired) -> None:
    provider = wired.make()

    async def run() -> Reply:
        try:
            return await provider.ask_async(REQUEST)
        finally:
            await provider.aclose()

    assert [asyncio.run(run()).complete for _ in range(2)] == [True, True]


def test_a_call_that_is_cancelled_ends_at_once(wired: Wired) -> None:
    never = threading.Event()
    wired.server.reply(text="late", delay=never)
    provider = wired.make()

    async def run() -> None:
        task = asyncio.create_task(provider.ask_async(REQUEST))
        while not wired.server.requests:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.aclose()

    try:
        asyncio.run(run())
    finally:
        never.set()


def test_a_users_own_call_with_the_rendered_request_is_read_back(wired: Wired, name: str) -> None:
    wired.server.reply(text="I look.", tool_use=("Read", {"path": "a"}))
    provider = wired.make()
    kwargs = provider.render({**REQUEST, "tools": TOOLS})
    if name == "anthropic":
        with anthropic.Anthropic(api_key="secret", base_url=wired.server.url) as client:
            reply = provider.read(client.messages.create(**kwargs))
    else:
        with openai.OpenAI(api_key="secret", base_url=wired.server.openai_url) as other:
            reply = provider.read(other.chat.completions.create(**kwargs))
    assert [type(block).__name__ for block in reply.blocks] == ["Text", "ToolUse"]
    assert isinstance(reply.blocks[1], ToolUse)
    assert reply.stop_reason == "tool_use"
    assert reply.request_id
