"""Every fault a network or an overloaded provider can produce, as the official SDKs meet it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

import anthropic
import httpx2
import openai
import pytest

from lamina.testing import MessagesServer

pytest_plugins = ["lamina.testing.plugin"]

MODEL = "claude-sonnet-5"
HI: Any = [{"role": "user", "content": "hi"}]
ASK: Any = {"model": MODEL, "max_tokens": 100, "messages": HI}
# What a lost connection looks like: before the answer the SDK wraps it, within a stream it lets its HTTP library's error through.
LOST = (anthropic.APIConnectionError, httpx2.RequestError)
CHAT: Any = {"model": "gpt-test", "messages": HI}


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (429, "rate_limit_error", anthropic.RateLimitError),
        (500, "api_error", anthropic.InternalServerError),
        (529, "overloaded_error", anthropic.OverloadedError),
        (403, "permission_error", anthropic.PermissionDeniedError),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_status_has_the_kind_and_class_the_sdk_knows(
    status: int,
    kind: str,
    error: type[anthropic.APIStatusError],
    streamed: bool,
    messages_server: MessagesServer,
    client: anthropic.Anthropic,
) -> None:
    messages_server.fail(status)
    with pytest.raises(error) as caught:
        client.messages.create(**ASK, stream=streamed)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == kind
    assert "retry-after" not in caught.value.response.headers
    assert messages_server.requests[-1].status == status


def test_the_server_can_say_how_long_to_wait(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.fail(429, retry_after=2.5, message="slow down", kind="rate_limit_error")
    with pytest.raises(anthropic.RateLimitError, match="slow down") as caught:
        client.messages.create(**ASK)
    assert caught.value.response.headers["retry-after"] == "2.5"


def test_the_sdk_s_own_retry_gets_through_and_both_requests_are_the_same(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.fail(529, retry_after=0.01)
    messages_server.reply(text="second try")
    answer = client.with_options(max_retries=1).messages.create(**ASK)
    assert answer.content[0].to_dict()["text"] == "second try"
    assert [received.status for received in messages_server.requests] == [529, 200]
    assert messages_server.requests[0].body == messages_server.requests[1].body


def test_a_request_that_failed_wrote_nothing_into_the_cache(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    mark: Any = [{"type": "text", "text": "s" * 8_000, "cache_control": {"type": "ephemeral"}}]
    messages_server.fail(500)
    messages_server.cut()
    for _ in range(2):
        with pytest.raises(anthropic.APIError):
            client.messages.create(**ASK, system=mark)
    assert client.messages.create(**ASK, system=mark).usage.cache_creation_input_tokens == 2_000
    assert client.messages.create(**ASK, system=mark).usage.cache_read_input_tokens == 2_000


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_connection_lost_before_the_answer_is_a_connection_error(
    how: Literal["reset", "close"], streamed: bool, messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.cut(after=0, how=how)
    with pytest.raises(anthropic.APIConnectionError):
        client.messages.create(**ASK, stream=streamed)
    assert client.messages.create(**ASK).stop_reason == "end_turn"


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_plain_answer_cut_in_the_middle_is_an_error(
    how: Literal["reset", "close"], messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.cut(after=1, how=how)
    with pytest.raises(LOST):
        client.messages.create(**ASK)


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_stream_cut_in_the_middle_gives_what_came_and_then_an_error(
    how: Literal["reset", "close"], messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.cut("one two three", after=4, how=how)
    seen: list[str] = []
    with pytest.raises(LOST):
        read(client, seen)
    # A reset may overtake what was sent before it.
    assert seen == ["message_start", "content_block_start", "content_block_delta"][: len(seen)]


def read(client: anthropic.Anthropic, seen: list[str]) -> None:
    for event in client.messages.create(**ASK, stream=True):
        seen.append(event.type)


def test_half_a_stream_ends_without_a_stop(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.cut("one two three", after=4, how="end")
    seen = [event.type for event in client.messages.create(**ASK, stream=True)]
    assert seen == ["message_start", "content_block_start", "content_block_delta"]


def test_an_answer_may_never_say_why_it_ended(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    for _ in range(2):
        messages_server.reply(text="so", tool_use=("Read", {"file_path": "/etc/passwd"}), stop_reason=None)
    assert client.messages.create(**ASK).stop_reason is None
    with client.messages.stream(**ASK) as stream:
        kinds = [event.type for event in stream]
        snapshot = stream.current_message_snapshot
    assert kinds[-1] == "content_block_stop"
    assert "message_delta" not in kinds
    assert snapshot.stop_reason is None


def test_an_error_in_the_middle_of_a_stream_is_raised_by_the_sdk(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.interrupt("one two three", after=4)
    with pytest.raises(anthropic.APIStatusError, match="overloaded_error"), client.messages.stream(**ASK) as stream:
        stream.get_final_message()


@pytest.mark.parametrize(("what", "streamed"), [("json", False), ("json", True), ("utf8", True), ("gzip", False), ("gzip", True)])
def test_garbled_bytes_are_an_error(
    what: Literal["json", "utf8", "gzip"], streamed: bool, messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.garble(what)
    # The SDK lets errors of decoding through as they are: ValueError covers JSON and UTF-8.
    with pytest.raises((*LOST, anthropic.APIError, ValueError)):
        ask_and_read(client, streamed)


def ask_and_read(client: anthropic.Anthropic, streamed: bool) -> None:
    answer: Any = client.messages.create(**ASK, stream=streamed)
    list(answer)


def test_a_stream_that_is_no_stream_gives_no_message(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.garble("sse")
    assert list(client.messages.create(**ASK, stream=True)) == []


def test_a_slow_answer_waits_for_its_event(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    gate = threading.Event()
    arrived = threading.Event()

    def note(received: Any) -> bool:
        arrived.set()
        return True

    messages_server.reply(text="at last", delay=gate, when=note)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(client.messages.create(**ASK)))
    asking.start()
    assert arrived.wait(120)
    assert answers == []
    gate.set()
    asking.join(120)
    assert answers[0].content[0].text == "at last"


def test_two_requests_at_once_both_write_because_neither_has_begun_to_answer(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    gate = threading.Event()
    messages_server.reply(text="ok", delay=gate, times=2)
    mark: Any = [{"type": "text", "text": "s" * 8_000, "cache_control": {"type": "ephemeral"}}]
    usages: list[Any] = []
    asking = [threading.Thread(target=lambda: usages.append(client.messages.create(**ASK, system=mark).usage)) for _ in range(2)]
    for thread in asking:
        thread.start()
    while len(messages_server.requests) < 2:
        asking[0].join(0.01)
    gate.set()
    for thread in asking:
        thread.join(120)
    assert [usage.cache_creation_input_tokens for usage in usages] == [2_000, 2_000]


def test_a_client_may_give_up_on_a_slow_answer(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    gate = threading.Event()
    messages_server.reply(text="too late", delay=gate)
    with pytest.raises(anthropic.APITimeoutError):
        client.with_options(timeout=0.05).messages.create(**ASK)
    gate.set()
    assert client.messages.create(**ASK).content


def test_closing_the_server_wakes_an_answer_that_waits(client: anthropic.Anthropic) -> None:
    with MessagesServer() as server:
        server.reply(text="never", delay=threading.Event())
        elsewhere = client.with_options(base_url=server.url)
        outcome: list[type[Exception]] = []

        def ask() -> None:
            try:
                elsewhere.messages.create(**ASK)
            except anthropic.APIConnectionError as error:
                outcome.append(type(error))

        asking = threading.Thread(target=ask)
        asking.start()
        while not server.requests:
            asking.join(0.01)
    asking.join(120)
    assert not asking.is_alive()


def test_faults_reach_the_asynchronous_client_too(messages_server: MessagesServer) -> None:
    messages_server.fail(529)
    messages_server.cut(after=0)
    messages_server.interrupt(after=3)

    async def run() -> list[str]:
        seen = []
        async with anthropic.AsyncAnthropic(api_key="any", base_url=messages_server.url, max_retries=0) as client:
            for _ in range(3):
                try:
                    async with client.messages.stream(**ASK) as stream:
                        await stream.get_final_message()
                except anthropic.APIError as error:
                    seen.append(type(error).__name__)
        return seen

    assert asyncio.run(run()) == ["OverloadedError", "APIConnectionError", "APIStatusError"]


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (429, "rate_limit_exceeded", openai.RateLimitError),
        (500, None, openai.InternalServerError),
        (503, None, openai.InternalServerError),
    ],
)
def test_the_chat_api_fails_in_its_own_words(
    status: int, code: str | None, error: type[openai.APIStatusError], messages_server: MessagesServer, chat_client: openai.OpenAI
) -> None:
    messages_server.fail(status, retry_after=1)
    with pytest.raises(error) as caught:
        chat_client.chat.completions.create(**CHAT)
    assert caught.value.code == code
    assert caught.value.response.headers["retry-after"] == "1"


def test_the_chat_api_can_be_cut_garbled_and_interrupted(messages_server: MessagesServer, chat_client: openai.OpenAI) -> None:
    messages_server.cut(after=0)
    with pytest.raises(openai.APIConnectionError):
        chat_client.chat.completions.create(**CHAT)
    messages_server.cut("one two three", after=3, how="close")
    with pytest.raises(openai.APIConnectionError):
        list(chat_client.chat.completions.create(**CHAT, stream=True))
    messages_server.interrupt("one two three", after=3, kind="server_error", message="The engine stopped")
    with pytest.raises(openai.APIError, match="The engine stopped"):
        list(chat_client.chat.completions.create(**CHAT, stream=True))
    messages_server.garble("json")
    with pytest.raises(ValueError, match=r"(?i)expecting|unterminated|delimiter"):
        list(chat_client.chat.completions.create(**CHAT, stream=True))
    messages_server.reply(text="so", stop_reason=None)
    chunks = list(chat_client.chat.completions.create(**CHAT, stream=True))
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * len(chunks)
