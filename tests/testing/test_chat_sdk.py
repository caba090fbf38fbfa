"""The Chat Completions API as the official SDK sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import openai
import pytest

from lamina.testing import Clock, MessagesServer

pytest_plugins = ["lamina.testing.plugin"]

MODEL = "gpt-test"
TOOL: Any = {"type": "function", "function": {"name": "Read", "parameters": {"type": "object"}}}


def say(words: str) -> Any:
    return {"role": "user", "content": words}


def test_an_answer_has_words_a_reason_and_usage(messages_server: MessagesServer, chat_client: openai.OpenAI) -> None:
    messages_server.reply(text="Hello.")
    answer = chat_client.chat.completions.create(model=MODEL, messages=[say("hi")])
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello.", "stop")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id


def test_a_tool_round_goes_there_and_back_plain_and_streamed(messages_server: MessagesServer, chat_client: openai.OpenAI) -> None:
    for _ in range(2):
        messages_server.reply(text="Let me look.", tool_use=[("Read", {"path": "/a"}), ("Read", {"path": "/b"}, "call_mine")])
    messages: list[Any] = [say("read them")]
    answer = chat_client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL])
    calls = answer.choices[0].message.tool_calls
    assert calls is not None
    assert (answer.choices[0].finish_reason, calls[1].id) == ("tool_calls", "call_mine")
    streamed = assemble(chat_client, model=MODEL, messages=messages, tools=[TOOL])
    assert streamed["content"] == "Let me look."
    assert [call["arguments"] for call in streamed["calls"]] == ['{"path":"/a"}', '{"path":"/b"}']
    assert streamed["reason"] == "tool_calls"
    messages.append(answer.choices[0].message.model_dump(exclude_none=True))
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "empty"} for call in calls]
    assert chat_client.chat.completions.create(model=MODEL, messages=messages, tools=[TOOL]).choices


def assemble(client: openai.OpenAI, **settings: Any) -> dict[str, Any]:
    content, calls, reason = "", [], None
    for chunk in client.chat.completions.create(**settings, stream=True):
        delta = chunk.choices[0].delta
        content += delta.content or ""
        for call in delta.tool_calls or ():
            if call.id:
                calls.append({"id": call.id, "name": call.function.name, "arguments": ""})
            calls[call.index]["arguments"] += call.function.arguments
        reason = chunk.choices[0].finish_reason or reason
    return {"content": content, "calls": calls, "reason": reason}


def test_usage_is_streamed_only_when_asked_for_and_then_in_a_last_chunk(chat_client: openai.OpenAI) -> None:
    plain: Any = list(chat_client.chat.completions.create(model=MODEL, messages=[say("hi")], stream=True))
    counted: Any = list(
        chat_client.chat.completions.create(
            model=MODEL, messages=[say("hi")], stream=True, stream_options={"include_usage": True}
        )
    )
    assert all(chunk.usage is None for chunk in plain)
    assert [bool(chunk.usage) for chunk in counted] == [False] * (len(counted) - 1) + [True]
    assert counted[-1].choices == []


def test_the_prefix_is_cached_by_itself_in_steps_of_128_from_1024(
    messages_server: MessagesServer, chat_client: openai.OpenAI
) -> None:
    def ask(*messages: Any) -> tuple[int, int]:
        usage = chat_client.chat.completions.create(
            model=MODEL, messages=[{"role": "system", "content": "s" * 6_000}, *messages]
        ).usage
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        return usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens or 0

    size, cached = ask(say("hi"))
    assert cached == 0
    grown, cached = ask(say("hi"), {"role": "assistant", "content": "ho"}, say("more"))
    assert cached == size - size % 128
    clock = messages_server.clock
    assert isinstance(clock, Clock)
    clock.advance(301)
    assert ask(say("hi"), {"role": "assistant", "content": "ho"}, say("more"))[1] == 0
    assert grown > size


CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}],
}
REFUSED: list[tuple[str, Any, str, str | None]] = [
    ("no model", {"messages": [say("hi")]}, "you must provide a model", None),
    ("no messages", {"model": MODEL}, "Missing required parameter: 'messages'", "missing_required_parameter"),
    ("empty", {"model": MODEL, "messages": []}, "empty array", "empty_array"),
    (
        "unknown role",
        {"model": MODEL, "messages": [{"role": "robot", "content": "x"}]},
        "Invalid value: 'robot'",
        "invalid_value",
    ),
    ("no content", {"model": MODEL, "messages": [{"role": "user", "content": None}]}, "expected a string, got null", None),
    ("no calls", {"model": MODEL, "messages": [{**CALL, "tool_calls": []}]}, "empty array", "empty_array"),
    ("no answer", {"model": MODEL, "messages": [say("x"), CALL]}, "must be followed by tool messages", None),
    ("answer missing", {"model": MODEL, "messages": [say("x"), CALL, say("y")]}, "call_1", None),
    (
        "orphan",
        {"model": MODEL, "messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]},
        "must be a response to",
        None,
    ),
    ("nameless result", {"model": MODEL, "messages": [{"role": "tool", "content": "x"}]}, "tool_call_id", None),
    ("options", {"model": MODEL, "messages": [say("x")], "stream_options": {}}, "only allowed when 'stream' is enabled", None),
    ("no object", [], "not a JSON object", None),
]


@pytest.mark.parametrize(("sent", "words", "code"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_the_chat_api_refuses_is_refused(sent: Any, words: str, code: str | None, chat_client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        chat_client.post("/chat/completions", cast_to=object, body=sent)
    assert words in caught.value.message
    assert (caught.value.type, caught.value.code) == ("invalid_request_error", code)


def test_a_full_window_has_its_own_code(messages_server: MessagesServer, chat_client: openai.OpenAI) -> None:
    messages_server.window = 50
    with pytest.raises(openai.BadRequestError, match="maximum context length is 50 tokens") as caught:
        chat_client.chat.completions.create(model=MODEL, messages=[say("x" * 400)])
    assert caught.value.code == "context_length_exceeded"


def test_a_wrong_key_and_an_unknown_model_are_refused(make_messages_server: Callable[..., MessagesServer]) -> None:
    server = make_messages_server(key="right")
    with openai.OpenAI(api_key="wrong", base_url=server.openai_url, max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError) as caught:
            client.chat.completions.create(model=MODEL, messages=[say("hi")])
        assert caught.value.code == "invalid_api_key"
        server.key = None
        server.limits = type(server.limits)(models=frozenset({"gpt-other"}))
        with pytest.raises(openai.NotFoundError) as missing:
            client.chat.completions.create(model=MODEL, messages=[say("hi")])
        assert missing.value.code == "model_not_found"
        assert [model.id for model in client.models.list()] == ["gpt-other"]


def test_a_refusal_and_a_full_answer_say_so(messages_server: MessagesServer, chat_client: openai.OpenAI) -> None:
    messages_server.reply(text="I would rather not.", stop_reason="refusal")
    messages_server.reply(text="and so on", stop_reason="max_tokens")
    refused, full = (chat_client.chat.completions.create(model=MODEL, messages=[say("x")]).choices[0] for _ in range(2))
    assert (refused.message.content, refused.message.refusal, refused.finish_reason) == (None, "I would rather not.", "stop")
    assert full.finish_reason == "length"


def test_the_asynchronous_client_works_the_same(messages_server: MessagesServer) -> None:
    async def run() -> tuple[str | None, str]:
        async with openai.AsyncOpenAI(api_key="any", base_url=messages_server.openai_url, max_retries=0) as client:
            plain = await client.chat.completions.create(model=MODEL, messages=[say("hi")])
            streamed = ""
            async for chunk in await client.chat.completions.create(model=MODEL, messages=[say("hi")], stream=True):
                streamed += chunk.choices[0].delta.content or ""
            return plain.choices[0].message.content, streamed

    assert asyncio.run(run()) == ("You said: hi", "You said: hi")


def test_the_session_is_named_by_the_cache_key_or_the_user(messages_server: MessagesServer, chat_client: openai.OpenAI) -> None:
    chat_client.chat.completions.create(model=MODEL, messages=[say("hi")], prompt_cache_key="k")
    chat_client.chat.completions.create(model=MODEL, messages=[say("hi")], user="u")
    assert [received.session for received in messages_server.requests] == ["k", "u"]
