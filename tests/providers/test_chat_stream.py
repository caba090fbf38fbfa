"""Chunks as real servers send them, with and without ids, indices and usage."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.core.blocks import Thinking, ToolUse
from lamina.core.errors import InputError, StreamBroken
from lamina.core.reply import Reply
from lamina.core.usage import Usage
from lamina.providers.openai import ChatStream, OpenAIProvider, messages_usage
from lamina.providers.stream import UNPARSED, StreamState, translated

Wire = dict[str, Any]


def chunk(delta: Wire | None = None, finish: str | None = None, **more: Any) -> Wire:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "some-model", "choices": choices, **more}


def call(arguments: str | None = None, *, name: str | None = None, **more: Any) -> Wire:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"tool_calls": [{"type": "function", "function": function, **more}]}


def read(*chunks: Wire) -> Reply:
    stream, state = ChatStream(), StreamState()
    for one in chunks:
        for event in stream.feed(one):
            state.feed(event)
    for event in stream.close():
        state.feed(event)
    return state.reply()


def calls(reply: Reply) -> list[tuple[str, str, Any]]:
    return [(block.id, block.name, block.input) for block in reply.blocks if isinstance(block, ToolUse)]


def test_text_with_usage_in_a_last_chunk_without_choices() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
    reply = read(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}, "stop"),
        chunk(usage=usage),
    )
    assert (reply.id, reply.model, reply.text, reply.stop_reason) == ("chatcmpl-1", "some-model", "Hello", "end_turn")
    assert reply.usage == Usage(input_tokens=36, cache_read=64, output_tokens=7)


def test_usage_repeated_in_every_chunk_is_counted_once() -> None:
    usages = [{"prompt_tokens": 10, "completion_tokens": n} for n in (1, 2, 3)]
    reply = read(*(chunk({"content": "x"}, usage=usage) for usage in usages), chunk({}, "stop"))
    assert reply.usage == Usage(input_tokens=10, output_tokens=3)


def test_calls_in_pieces_are_put_together_by_index() -> None:
    reply = read(
        chunk({"content": "Looking."}),
        chunk(call("", name="Read", index=0, id="call_a")),
        chunk(call("", name="Grep", index=1, id="call_b")),
        chunk(call('{"path":', index=0)),
        chunk(call('{"q": 1}', index=1)),
        chunk(call(' "a"}', index=0)),
        chunk({}, "tool_calls"),
    )
    assert reply.text == "Looking."
    assert calls(reply) == [("call_a", "Read", {"path": "a"}), ("call_b", "Grep", {"q": 1})]
    assert (reply.stop_reason, len(reply.tool_uses)) == ("tool_use", 2)


def test_calls_without_ids_get_stable_ones() -> None:
    chunks = [chunk(call("{}", name="f", index=0)), chunk(call("{}", name="g", index=1)), chunk({}, "tool_calls")]
    assert calls(read(*chunks)) == calls(read(*chunks)) == [("call_chatcmpl-1_0", "f", {}), ("call_chatcmpl-1_1", "g", {})]


def test_calls_without_indices_are_told_apart_by_id_or_name() -> None:
    reply = read(
        chunk(call('{"a"', name="f", id="x")),
        chunk(call(": 1}")),
        chunk(call("{}", name="g", id="y")),
        chunk(call("{}", name="h")),
        chunk({}, "tool_calls"),
    )
    assert [one[1:] for one in calls(reply)] == [("f", {"a": 1}), ("g", {}), ("h", {})]


def test_different_calls_under_one_index_stay_two() -> None:
    reply = read(
        chunk(call("{}", name="f", index=0, id="x")), chunk(call("{}", name="g", index=0, id="y")), chunk({}, "tool_calls")
    )
    assert [one[:2] for one in calls(reply)] == [("x", "f"), ("y", "g")]


def test_arguments_sent_as_an_object_are_taken() -> None:
    piece = {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "f", "arguments": {"a": [1]}}}]}
    assert calls(read(chunk(piece), chunk({}, "stop"))) == [("x", "f", {"a": [1]})]


def test_a_server_that_says_stop_when_it_calls_tools_is_understood() -> None:
    reply = read(chunk(call("{}", name="f", index=0, id="x")), chunk({}, "stop"))
    assert (reply.stop_reason, len(reply.tool_uses)) == ("tool_use", 1)


def test_a_finish_for_calls_without_any_is_a_plain_end() -> None:
    assert read(chunk({"content": "x"}), chunk({}, "tool_calls")).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("model_length", "model_length")],
)
def test_a_finish_is_a_stop_reason(finish: str, stop: str) -> None:
    assert read(chunk({"content": "x"}, finish)).stop_reason == stop


def test_a_call_cut_by_the_output_limit_is_not_executed() -> None:
    reply = read(chunk(call('{"a": "b', name="f", index=0, id="x")), chunk({}, "length"))
    assert calls(reply) == [("x", "f", {UNPARSED: '{"a": "b'})]
    assert (reply.stop_reason, reply.tool_uses) == ("max_tokens", ())


def test_arguments_that_are_no_json_are_kept_and_not_executed() -> None:
    reply = read(chunk(call("rm -rf /", name="Bash", index=0, id="x")), chunk({}, "tool_calls"))
    assert calls(reply) == [("x", "Bash", {UNPARSED: "rm -rf /"})]
    assert (reply.stop_reason, reply.complete, reply.tool_uses) == (None, False, ())


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_thinking_without_a_signature(key: str) -> None:
    reply = read(chunk({key: "let me "}), chunk({key: "see"}), chunk({"content": "42"}, "stop"))
    thinking = reply.blocks[0]
    assert isinstance(thinking, Thinking)
    assert (thinking.thinking, thinking.signature, reply.text) == ("let me see", "", "42")


def test_content_sent_as_parts_is_read() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "ok"}]
    reply = read(chunk({"content": parts}, "stop"))
    assert [block.wire["type"] for block in reply.blocks] == ["thinking", "text"]
    assert reply.text == "ok"


def test_a_refusal_is_an_answer_that_says_so() -> None:
    reply = read(chunk({"refusal": "I can't "}), chunk({"refusal": "help"}), chunk({}, "stop"))
    assert (reply.text, reply.stop_reason) == ("I can't help", "refusal")


@pytest.mark.parametrize("finish", [None, "error"])
def test_a_stream_that_never_finishes_is_broken_and_keeps_what_came(finish: str | None) -> None:
    with pytest.raises(StreamBroken) as caught:
        read(chunk({"content": "half"}), chunk(call('{"a"', name="f", index=0, id="x"), finish))
    assert [block["type"] for block in caught.value.partial] == ["text", "tool_use"]


def test_an_empty_stream_is_broken() -> None:
    with pytest.raises(StreamBroken):
        read()


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, (10, 0, 0, 2)),
        ({"prompt_tokens": 10, "prompt_tokens_details": None}, (10, 0, 0, 0)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 3}}, (1, 6, 3, 0)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 2}, (2, 8, 0, 0)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 99, "cache_write_tokens": 99}}, (0, 10, 0, 0)),
        ({"prompt_tokens": "x", "completion_tokens": -1}, (0, 0, 0, 0)),
    ],
)
def test_cached_tokens_are_taken_out_of_the_input(raw: Wire, usage: tuple[int, ...]) -> None:
    assert tuple(messages_usage(raw).values()) == usage


def test_a_whole_completion_is_read_by_the_same_rules() -> None:
    provider = OpenAIProvider("m", base_url="http://127.0.0.1:9/v1")
    message = {
        "role": "assistant",
        "content": "hi",
        "tool_calls": [{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    raw = {"id": "c1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    reply = provider.read({**raw, "usage": {"prompt_tokens": 5, "completion_tokens": 1}})
    assert (reply.text, calls(reply), reply.stop_reason) == ("hi", [("x", "f", {})], "tool_use")
    assert reply.usage == Usage(input_tokens=5, output_tokens=1)
    with pytest.raises(InputError):
        provider.read({"id": "c1"})
    with pytest.raises(InputError):
        provider.read({**raw, "choices": [{"index": 0, "message": message}]})


@pytest.mark.parametrize(
    "choices", [[None], "x", [{"delta": "x"}], [{"delta": {"tool_calls": [None]}}], 5, [{"delta": {"tool_calls": 3}}]]
)
def test_a_chunk_of_another_shape_breaks_the_stream_and_keeps_the_rest(choices: Any) -> None:
    stream, state = ChatStream(), StreamState()
    for event in translated(stream, chunk({"content": "half"}), state):
        state.feed(event)
    with pytest.raises(StreamBroken) as caught:
        translated(stream, {"id": "c", "choices": choices}, state)
    assert caught.value.partial == ({"type": "text", "text": "half"},)
