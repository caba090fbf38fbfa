"""The Messages API as the official SDK sees it: answers, streams, tool rounds, thinking, scripts."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any

import anthropic
import pytest

from lamina.core.cache import FORK_HEADER
from lamina.testing import Answer, MessagesServer, Received

pytest_plugins = ["lamina.testing.plugin"]

MODEL = "claude-sonnet-5"
TOOL: Any = {"name": "Read", "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}}}
THINKING: Any = {"type": "enabled", "budget_tokens": 2_000}


def say(words: str) -> Any:
    return {"role": "user", "content": words}


def test_an_unscripted_server_echoes_the_last_words(client: anthropic.Anthropic) -> None:
    answers = [client.messages.create(model=MODEL, max_tokens=100, messages=[say("hello there")]) for _ in range(2)]
    assert [answer.content[0].to_dict() for answer in answers] == [{"type": "text", "text": "You said: hello there"}] * 2
    assert answers[0].id != answers[1].id
    assert answers[0].stop_reason == "end_turn"
    assert (answers[0].usage.input_tokens, answers[0].usage.output_tokens) == (3, 6)


def test_scripted_answers_come_in_order_and_then_the_function(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.reply(text="one")
    messages_server.reply({"type": "text", "text": "two"}, {"type": "text", "text": "three"}, output_tokens=7)
    messages_server.answer_with(lambda received: f"{len(received.messages)} messages")
    said = [client.messages.create(model=MODEL, max_tokens=100, messages=[say("go")]) for _ in range(3)]
    assert [[block.to_dict()["text"] for block in answer.content] for answer in said] == [
        ["one"],
        ["two", "three"],
        ["1 messages"],
    ]
    assert said[1].usage.output_tokens == 7


def test_an_answer_can_wait_for_the_request_it_is_meant_for(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.reply(text="for the summary", when=lambda received: "summarise" in str(received.body))
    first = client.messages.create(model=MODEL, max_tokens=100, messages=[say("hello")])
    second = client.messages.create(model=MODEL, max_tokens=100, messages=[say("please summarise")])
    assert [answer.content[0].to_dict()["text"] for answer in (first, second)] == ["You said: hello", "for the summary"]
    assert len(messages_server.script) == 0


def test_a_fork_takes_only_what_was_queued_for_its_kind(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    def ask(words: str = "", fork: str = "") -> str:
        said = [say("go"), say(words)] if fork else [say("go")]
        answer = client.messages.create(model=MODEL, max_tokens=100, messages=said, extra_headers={FORK_HEADER: fork})
        return str(answer.content[0].to_dict()["text"])

    messages_server.reply(text="for the conversation", times=2)
    messages_server.reply(text="for notes", fork="notes", when=lambda received: "please" in str(received.body))
    messages_server.reply(text="for a summary", fork="summary")
    assert ask() == "for the conversation"
    assert ask("notes", "notes-1f") == "You said: notes"
    assert ask("please", "notes-20") == "for notes"
    assert ask("x", "summary") == "for a summary"
    assert ask("x", "summary-of-notes-1f") == "You said: x"
    assert ask() == "for the conversation"
    assert len(messages_server.script) == 0


def test_a_function_may_return_any_step(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.answer_with(lambda received: Answer(blocks=({"type": "text", "text": "cut"},), stop_reason="max_tokens"))
    assert client.messages.create(model=MODEL, max_tokens=1, messages=[say("go")]).stop_reason == "max_tokens"


def test_a_tool_round_goes_there_and_back(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.reply(
        text="Let me look.", tool_use=[("Read", {"file_path": "/a"}), ("Read", {"file_path": "/b"}, "toolu_mine")]
    )
    messages_server.reply(text="Both are empty.")
    messages: list[Any] = [say("what is in the files?")]
    answer = client.messages.create(model=MODEL, max_tokens=100, tools=[TOOL], messages=messages)
    calls = [block for block in answer.content if block.type == "tool_use"]
    assert answer.stop_reason == "tool_use"
    assert calls[1].id == "toolu_mine"
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": ""} for call in calls]
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    last = client.messages.create(model=MODEL, max_tokens=100, tools=[TOOL], messages=messages)
    assert last.content[0].to_dict()["text"] == "Both are empty."


def test_a_stream_adds_up_to_the_same_message(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    for _ in range(2):
        messages_server.reply(
            thinking="Let me think about it. " * 5, text="A long answer. " * 20, tool_use=("Read", {"file_path": "/a"})
        )
    settings: Any = {"model": MODEL, "max_tokens": 5_000, "tools": [TOOL], "thinking": THINKING, "messages": [say("hi")]}
    plain = client.messages.create(**settings)
    with client.messages.stream(**settings) as stream:
        streamed = stream.get_final_message()
    expected = json.loads(plain.to_json(exclude_none=True))
    found = json.loads(streamed.to_json(exclude_none=True))
    for message in (expected, found):
        message.pop("id")
        message["content"][2].pop("id")
        message["content"][1].pop("parsed_output", None)
    assert found == expected


def test_the_events_of_a_stream_come_in_their_documented_order(messages_server: MessagesServer) -> None:
    messages_server.reply(thinking="Hm.", text="Hi.", tool_use=("Read", {}))
    lines = raw_stream(messages_server, {"model": MODEL, "max_tokens": 10, "stream": True, "messages": [say("hi")]})
    kinds = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    deltas = [
        json.loads(line[6:])["delta"]["type"] for line in lines if '"content_block_delta"' in line and line.startswith("data")
    ]
    assert [kind for kind in kinds if kind != "content_block_delta"] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_stop",
        "content_block_start",
        "content_block_stop",
        "content_block_start",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert list(dict.fromkeys(deltas)) == ["thinking_delta", "signature_delta", "text_delta", "input_json_delta"]


def raw_stream(server: MessagesServer, body: dict[str, Any]) -> list[str]:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]), timeout=120)
    connection.request(
        "POST", "/v1/messages?beta=true", json.dumps(body), {"x-api-key": "any", "content-type": "application/json"}
    )
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = response.read().decode().split("\n")
    connection.close()
    return lines


def test_thinking_comes_back_signed_and_is_taken_as_it_was(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.reply({"type": "redacted_thinking"}, thinking="I should look.", tool_use=("Read", {}))
    settings: Any = {"model": MODEL, "max_tokens": 5_000, "tools": [TOOL], "thinking": THINKING}
    answer = client.messages.create(messages=[say("hi")], **settings)
    call = next(block for block in answer.content if block.type == "tool_use")
    back: list[Any] = [
        say("hi"),
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "ok"}]},
    ]
    assert client.messages.create(messages=back, **settings).content


def test_counting_costs_nothing_and_counts_the_same(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    counted = client.messages.count_tokens(model=MODEL, system="Be kind.", messages=[say("hello")])
    answered = client.messages.create(model=MODEL, max_tokens=10, system="Be kind.", messages=[say("hello")])
    assert counted.input_tokens == answered.usage.input_tokens
    assert [received.wire for received in messages_server.requests] == ["count", "messages"]


def test_the_models_are_listed(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    assert MODEL in [model.id for model in client.models.list()]


def test_a_request_for_no_tokens_warms_the_cache_and_says_nothing(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    mark: Any = [{"type": "text", "text": "s" * 8_000, "cache_control": {"type": "ephemeral"}}]
    warm = client.messages.create(model=MODEL, max_tokens=0, system=mark, messages=[say("x")])
    real = client.messages.create(model=MODEL, max_tokens=10, system=mark, messages=[say("x")])
    assert (warm.content, warm.usage.cache_creation_input_tokens, real.usage.cache_read_input_tokens) == ([], 2_000, 2_000)


def test_a_refusal_and_a_full_answer_say_so(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.reply(text="I would rather not.", stop_reason="refusal")
    messages_server.reply(text="and so on and", stop_reason="max_tokens")
    messages_server.reply(text="up to here", stop_reason="stop_sequence", stop_sequence="STOP")
    with client.messages.stream(model=MODEL, max_tokens=10, messages=[say("a")]) as stream:
        refused = stream.get_final_message()
    full, stopped = (client.messages.create(model=MODEL, max_tokens=10, messages=[say("a")]) for _ in range(2))
    assert (refused.stop_reason, full.stop_reason, stopped.stop_sequence) == ("refusal", "max_tokens", "STOP")
    assert refused.stop_details is not None
    assert refused.stop_details.type == "refusal"


def test_every_request_is_kept_with_what_it_cost(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    client.messages.create(model=MODEL, max_tokens=10, messages=[say("hi")], extra_headers={"x-lamina-session": "s1"})
    client.beta.messages.create(
        model=MODEL, max_tokens=10, messages=[say("hi")], metadata={"user_id": "u_session_s2"}, betas=["some-beta"]
    )
    client.beta.messages.create(model=MODEL, max_tokens=10, messages=[say("hi")], metadata={"user_id": '{"session_id": "s3"}'})
    client.messages.create(model=MODEL, max_tokens=10, messages=[say("hi")])
    kept = messages_server.requests
    assert [received.index for received in kept] == [0, 1, 2, 3]
    assert [received.session for received in kept][:3] == ["s1", "s2", "s3"]
    assert kept[3].session.startswith("begins-")
    assert kept[1].betas == ("some-beta",)
    assert (kept[0].use.plain if kept[0].use else None, kept[0].status, kept[0].at) == (1, 200, messages_server.clock())
    assert kept[0].answer is not None
    assert kept[0].answer["content"][0]["text"] == "You said: hi"


def test_the_asynchronous_client_works_the_same_and_many_at_once(messages_server: MessagesServer) -> None:
    def answer(received: Received) -> str:
        return str(received.messages[0]["content"]) * 2

    messages_server.answer_with(answer)

    async def one(client: anthropic.AsyncAnthropic, name: str) -> str:
        async with client.messages.stream(model=MODEL, max_tokens=10, messages=[say(name)]) as stream:
            streamed = await stream.get_final_text()
        plain = await client.messages.create(model=MODEL, max_tokens=10, messages=[say(name)])
        assert plain.content[0].to_dict()["text"] == streamed
        return streamed

    async def run() -> list[str]:
        async with anthropic.AsyncAnthropic(api_key="any", base_url=messages_server.url, max_retries=0) as client:
            return await asyncio.gather(*(one(client, f"n{at}.") for at in range(20)))

    assert asyncio.run(run()) == [f"n{at}.n{at}." for at in range(20)]
    assert len(messages_server.requests) == 40


def test_the_provider_clears_old_results_when_asked(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages: list[Any] = [say("read them all")]
    for at in range(6):
        messages_server.reply(thinking=f"file {at}", tool_use=("Read", {"file_path": f"/{at}"}))
        answer = client.messages.create(model=MODEL, max_tokens=5_000, tools=[TOOL], thinking=THINKING, messages=messages)
        call = next(block for block in answer.content if block.type == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "r" * 4_000}
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    edits: Any = [
        {"type": "clear_thinking_20251015", "keep": {"type": "all"}},
        {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "input_tokens", "value": 3_000},
            "keep": {"type": "tool_uses", "value": 2},
            "clear_at_least": {"type": "input_tokens", "value": 2_000},
        },
    ]
    settings: Any = {"model": MODEL, "max_tokens": 5_000, "tools": [TOOL], "betas": ["context-management-2025-06-27"]}
    sized = client.beta.messages.count_tokens(
        model=MODEL, tools=[TOOL], messages=messages, context_management={"edits": edits}, betas=settings["betas"]
    )
    messages_server.announce_break("clearing")
    with client.beta.messages.stream(messages=messages, context_management={"edits": edits}, **settings) as stream:
        edited = stream.get_final_message()
    assert edited.context_management is not None
    applied: list[Any] = [edit.to_dict() for edit in edited.context_management.applied_edits]
    assert [(edit["type"], edit.get("cleared_tool_uses")) for edit in applied] == [("clear_tool_uses_20250919", 4)]
    assert edited.usage.input_tokens == sized.input_tokens
    assert sized.context_management is not None
    assert sized.context_management.original_input_tokens == sized.input_tokens + applied[0]["cleared_input_tokens"]


def test_the_provider_clears_the_thinking_of_old_turns_when_asked(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages: list[Any] = []
    for at in range(3):
        messages_server.reply(thinking="t" * 400, text=f"answer {at}")
        messages.append(say(f"question {at}"))
        answer = client.messages.create(model=MODEL, max_tokens=5_000, thinking=THINKING, messages=messages)
        messages.append({"role": "assistant", "content": answer.content})
    messages.append(say("and now?"))

    def ask(keep: Any) -> tuple[int, list[Any]]:
        edits: Any = [{"type": "clear_thinking_20251015", "keep": keep}]
        messages_server.announce_break("clearing")
        edited = client.beta.messages.create(
            model=MODEL,
            max_tokens=5_000,
            thinking=THINKING,
            messages=messages,
            context_management={"edits": edits},
            betas=["context-management-2025-06-27"],
        )
        assert edited.context_management is not None
        return edited.usage.input_tokens, [edit.to_dict() for edit in edited.context_management.applied_edits]

    whole, nothing = ask("all")
    fewer, applied = ask({"type": "thinking_turns", "value": 1})
    assert nothing == []
    assert applied == [
        {"type": "clear_thinking_20251015", "cleared_input_tokens": whole - fewer, "cleared_thinking_turns": 2},
    ]


def test_diagnostics_name_what_changed(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    def ask(before: str | None, **changes: Any) -> tuple[str, str | None]:
        settings: Any = {"model": MODEL, "max_tokens": 10, "system": "s", "tools": [TOOL], "messages": [say("hi")], **changes}
        messages_server.announce_break("the test changes it")
        answer = client.messages.create(diagnostics={"previous_message_id": before}, **settings)
        reason = answer.diagnostics.cache_miss_reason if answer.diagnostics else None
        return answer.id, reason.type if reason else None

    first, nothing = ask(None)
    assert nothing is None
    grown = [say("hi"), {"role": "assistant", "content": "ho"}, say("more")]
    assert [
        ask(first)[1],
        ask(first, messages=grown)[1],
        ask(first, model="claude-opus-5")[1],
        ask(first, system="other")[1],
        ask(first, tools=[{**TOOL, "name": "Write"}])[1],
        ask(first, messages=[say("ha")])[1],
        ask(first, tool_choice={"type": "auto"})[1],
        ask("msg_unknown")[1],
    ] == [
        None,
        None,
        "model_changed",
        "system_changed",
        "tools_changed",
        "messages_changed",
        "unavailable",
        "previous_message_not_found",
    ]


@pytest.mark.spec("M4")
def test_cache_edits_are_confirmed_and_shorten_what_is_read(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.reply(tool_use=("Read", {}, "toolu_1"))
    client.messages.create(model=MODEL, max_tokens=10, tools=[TOOL], messages=[say("read it")])
    result: Any = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "r" * 8_000,
        "cache_control": {"type": "ephemeral"},
    }
    messages: list[Any] = [
        say("read it"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}]},
        {"role": "user", "content": [result]},
    ]
    written = client.messages.create(model=MODEL, max_tokens=10, tools=[TOOL], messages=messages).usage
    with client.messages.stream(
        model=MODEL,
        max_tokens=10,
        tools=[TOOL],
        messages=messages,
        extra_body={"cache_edits": {"delete": ["toolu_1"]}},
        extra_headers={"anthropic-beta": "lamina-cache-edits-1"},
    ) as stream:
        edited = stream.get_final_message()
    confirmed = edited.to_dict()["cache_edits"]
    assert isinstance(confirmed, dict)
    assert confirmed["deleted"] == ["toolu_1"]
    assert written.cache_creation_input_tokens is not None
    assert edited.usage.cache_read_input_tokens == written.cache_creation_input_tokens - confirmed["cleared_input_tokens"]
