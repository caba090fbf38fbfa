"""The accumulator: any truncated, reordered or invalid stream gives a complete answer or StreamBroken."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.blocks import Text, Thinking, ToolUse
from lamina.core.errors import StreamBroken
from lamina.core.reply import Reply
from lamina.core.usage import Usage
from lamina.providers.stream import UNPARSED, StreamState, read_input

Event = dict[str, Any]


def start(**message: Any) -> Event:
    fields: Event = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
    }
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 1}
    return {"type": "message_start", "message": {**fields, "usage": usage, **message}}


def block(index: int, content: Event) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index: int, **content: Any) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": content}


def finish(stop_reason: str | None = "end_turn", **more: Any) -> list[Event]:
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": {"output_tokens": 7},
            **more,
        },
        {"type": "message_stop"},
    ]


THINKING = [
    block(0, {"type": "thinking", "thinking": "", "signature": ""}),
    delta(0, type="thinking_delta", thinking="let me "),
    delta(0, type="thinking_delta", thinking="see"),
    delta(0, type="signature_delta", signature="c2ln"),
    {"type": "content_block_stop", "index": 0},
]
TEXT = [
    block(1, {"type": "text", "text": ""}),
    {"type": "ping"},
    delta(1, type="text_delta", text="Hel"),
    delta(1, type="text_delta", text="lo"),
    {"type": "content_block_stop", "index": 1},
]
CALL = [
    block(2, {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}),
    delta(2, type="input_json_delta", partial_json=""),
    delta(2, type="input_json_delta", partial_json='{"path": "a'),
    delta(2, type="input_json_delta", partial_json='.py"}'),
    {"type": "content_block_stop", "index": 2},
]
WHOLE = [start(), *THINKING, *TEXT, *CALL, *finish("tool_use")]


def read(events: list[Event]) -> Reply:
    state = StreamState()
    for event in events:
        state.feed(event)
    return state.reply(request_id="req_1")


def test_a_whole_stream_is_the_answer_it_tells() -> None:
    reply = read(WHOLE)
    thinking, text, call = reply.blocks
    assert isinstance(thinking, Thinking)
    assert (thinking.thinking, thinking.signature) == ("let me see", "c2ln")
    assert isinstance(text, Text)
    assert text.text == "Hello"
    assert isinstance(call, ToolUse)
    assert call.input == {"path": "a.py"}
    assert reply.tool_uses == (call,)
    assert (reply.id, reply.model, reply.stop_reason, reply.request_id) == ("msg_1", "claude-x", "tool_use", "req_1")


def test_usage_is_cumulative_and_counted_once() -> None:
    late = {
        "type": "message_delta",
        "delta": {},
        "usage": {"input_tokens": 10, "cache_read_input_tokens": None, "output_tokens": 5},
    }
    reply = read([start(), *TEXT, late, *finish()])
    assert reply.usage == Usage(input_tokens=10, cache_read=90, cache_write=5, output_tokens=7)


def test_what_the_server_did_to_the_context_is_kept_as_it_said_it() -> None:
    edits = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 4, "cleared_input_tokens": 50_000}]}
    miss = {"cache_miss_reason": {"type": "system_changed"}}
    reply = read([start(diagnostics=miss), *TEXT, *finish(context_management=edits)])
    assert reply.notes == {"context_management": edits, "diagnostics": miss}


def test_a_refusal_is_an_answer_with_its_reason() -> None:
    events = [
        start(),
        {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"type": "refusal"}}, "usage": {}},
    ]
    reply = read([*events, {"type": "message_stop"}])
    assert (reply.stop_reason, reply.complete, reply.notes) == ("refusal", True, {"stop_details": {"type": "refusal"}})


@given(st.integers(0, len(WHOLE) - 1))
def test_a_stream_cut_anywhere_is_broken_and_keeps_what_came(cut: int) -> None:
    state = StreamState()
    for event in WHOLE[:cut]:
        state.feed(event)
    with pytest.raises(StreamBroken) as caught:
        state.reply()
    begun = sum(event["type"] == "content_block_start" for event in WHOLE[:cut])
    assert len(caught.value.partial) == begun


def test_a_tool_call_cut_in_its_input_is_kept_as_text_and_never_executed() -> None:
    state = StreamState()
    for event in [start(), *CALL[:3]]:
        state.feed(event)
    assert state.partial()[0]["input"] == {UNPARSED: '{"path": "a'}


@pytest.mark.parametrize(
    "text", ['{"path": "a', "[1, 2]", "null", '{"a": NaN}', '{"a": 1e999}', "{'a': 1}", '{"a": 1}}', "[" * 9_999]
)
def test_a_whole_answer_with_unreadable_input_counts_as_cut_off(text: str) -> None:
    reply = read([start(), CALL[0], delta(2, type="input_json_delta", partial_json=text), *finish("tool_use")])
    call = reply.blocks[0]
    assert isinstance(call, ToolUse)
    assert call.input == {UNPARSED: text}
    assert (reply.stop_reason, reply.complete, reply.tool_uses) == (None, False, ())
    assert reply.notes == {"unparsed_input": ["toolu_1"], "stop_reason": "tool_use"}
    assert reply.usage is not None


def test_an_answer_that_ran_into_its_limit_keeps_its_reason_and_runs_nothing() -> None:
    reply = read([start(), *CALL[:3], *finish("max_tokens")])
    assert (reply.stop_reason, reply.tool_uses) == ("max_tokens", ())


def test_a_call_without_input_has_an_empty_one() -> None:
    reply = read([start(), CALL[0], *finish("tool_use")])
    assert [call.input for call in reply.tool_uses] == [{}]


def test_a_stop_without_a_reason_is_a_broken_stream() -> None:
    with pytest.raises(StreamBroken):
        read([start(), *TEXT, *finish(None)])


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start"},
        {"type": "content_block_start", "index": "x", "content_block": {}},
        {"type": "content_block_start", "index": 9},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta"}},
        {"type": "content_block_delta", "index": 1, "delta": None},
        {"type": "message_delta", "delta": "x", "usage": {}},
    ],
)
def test_an_event_that_makes_no_sense_breaks_the_stream_and_keeps_the_rest(event: Event) -> None:
    state = StreamState()
    for known in [start(), *TEXT]:
        state.feed(known)
    with pytest.raises(StreamBroken) as caught:
        state.feed(event)
    assert caught.value.partial == ({"type": "text", "text": "Hello"},)


def test_a_block_without_a_type_is_a_broken_stream() -> None:
    with pytest.raises(StreamBroken):
        read([start(), block(0, {"text": "x"}), *finish()])


def test_what_later_versions_add_is_passed_by_or_kept() -> None:
    events = [
        start(),
        {"type": "something_new", "data": 1},
        block(0, {"type": "compaction", "content": None}),
        delta(0, type="compaction_delta", content="all of it", encrypted_content="x"),
        block(1, {"type": "text", "text": "", "citations": None}),
        delta(1, type="text_delta", text="so"),
        delta(1, type="citations_delta", citation={"type": "char_location", "cited_text": "a"}),
        delta(1, type="citations_delta", citation={"type": "char_location", "cited_text": "b"}),
        *finish(),
    ]
    reply = read(events)
    assert [one.wire for one in reply.blocks] == [
        {"type": "compaction", "content": "all of it", "encrypted_content": "x"},
        {"type": "text", "text": "so", "citations": [{"type": "char_location", "cited_text": c} for c in "ab"]},
    ]


def test_a_lone_surrogate_from_the_server_is_replaced_on_the_way_in() -> None:
    reply = read([start(), block(0, {"type": "text", "text": ""}), delta(0, type="text_delta", text="a\ud800b"), *finish()])
    assert reply.text == "a\ufffdb"
    call = [start(), CALL[0], delta(2, type="input_json_delta", partial_json='{"a": "\\ud800"}'), *finish("tool_use")]
    assert read(call).tool_uses[0].input == {"a": "\ufffd"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.lists(st.integers(0, 60), max_size=5))
def test_an_input_in_any_pieces_is_the_same_input(value: dict[str, Any], cuts: list[int]) -> None:
    text = json.dumps(value)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    events = [start(), CALL[0], *(delta(2, type="input_json_delta", partial_json=piece) for piece in pieces), *finish("tool_use")]
    assert read_input(text) == value
    assert len(read(events).tool_uses) == 1
