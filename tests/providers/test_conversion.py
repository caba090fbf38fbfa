"""Conversion between Messages and Chat Completions is lossless in both directions."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import examples

from lamina.core.errors import InputError
from lamina.providers.conversion import ERROR, block_of, chat_messages, messages_from_chat, part_of
from lamina.providers.stream import UNPARSED

Wire = dict[str, Any]

# Lamina's tags in texts are the hard case, so they are made likely on purpose.
TAGS = [
    "<lamina:",
    "<lamina:block>",
    "</lamina:block>",
    "<lamina:see>toolu_1#0</lamina:see>",
    "<lamina:here>toolu_1#0</lamina:here>",
    ERROR,
]
words = (
    st.text(min_size=1, max_size=12)
    | st.sampled_from(TAGS)
    | st.builds("".join, st.lists(st.sampled_from([*TAGS, "x", "\n", "{}"]), min_size=1))
)
base64 = st.sampled_from(["aGk=", "", "AAAA"])
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2), max_leaves=5
)
objects = st.dictionaries(st.text(max_size=5), values, max_size=3)

texts = st.builds(lambda text: {"type": "text", "text": text}, words)
cited = st.builds(lambda text: {"type": "text", "text": text, "citations": [{"cited_text": "x"}]}, words)
images = st.one_of(
    st.builds(lambda data: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}, base64),
    st.builds(
        lambda path: {"type": "image", "source": {"type": "url", "url": "https://example.org/" + path}}, st.text(max_size=4)
    ),
    st.just({"type": "image", "source": {"type": "url", "url": "data:image/png;base64,AAAA"}}),
    st.just({"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
)
documents = st.one_of(
    st.just({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}),
    st.builds(
        lambda title: {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
            "title": title,
        },
        st.sampled_from(["Report", "document.pdf", ""]),
    ),
    st.just(
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}, "title": "T", "context": "C"}
    ),
)
unknown = st.builds(lambda fields: {**fields, "type": "something_new"}, objects)
parts = texts | images | documents | unknown


@st.composite
def results(draw: st.DrawFn, ids: list[str]) -> list[Wire]:
    found = []
    for ident in ids:
        content: Any = draw(st.text(max_size=8) | words | st.lists(parts, min_size=1, max_size=3))
        if isinstance(content, list) and len(content) == 1 and content[0].keys() == {"type", "text"}:
            content = content[0]["text"]  # the normal form of a result of one text
        block = {"type": "tool_result", "tool_use_id": ident, "content": content}
        found.append({**block, "is_error": True} if draw(st.booleans()) else block)
    return found


@st.composite
def conversations(draw: st.DrawFn) -> list[Wire]:
    messages: list[Wire] = []
    ids: list[str] = []
    for turn in range(draw(st.integers(1, 4))):
        content = [*draw(results(ids)), *draw(st.lists(parts | cited, min_size=0 if ids else 1, max_size=3))]
        messages.append({"role": "user", "content": content})
        ids = [f"toolu_{turn}_{number}" for number in range(draw(st.integers(0, 2)))]
        calls = [{"type": "tool_use", "id": ident, "name": "Read", "input": draw(objects)} for ident in ids]
        said = draw(st.lists(texts | cited | unknown, min_size=0 if ids else 1, max_size=2))
        messages.append({"role": "assistant", "content": [*said, *calls]})
    return messages


def to_chat(messages: list[Wire], **options: bool) -> list[Wire]:
    return [chat for message in messages for chat in chat_messages(message, **options)]


@examples(200)
@given(conversations())
def test_a_conversation_comes_back_as_it_went(messages: list[Wire]) -> None:
    before = copy.deepcopy(messages)
    chat = to_chat(messages)
    assert messages_from_chat(json.loads(json.dumps(chat))) == messages
    assert messages == before


@given(conversations())
def test_what_is_sent_is_legal_chat(messages: list[Wire]) -> None:
    waiting: list[str] = []
    for message in to_chat(messages):
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            content = message["content"]
            assert isinstance(content, str) or all(part["type"] == "text" for part in content)
            continue
        assert not waiting, "every call is answered before anything else is said"
        if message["role"] == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls", ())]
            assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in message.get("tool_calls", ()))


chat_parts = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, words),
    st.just({"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "high"}}),
    st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
    st.just({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
    st.just({"type": "file", "file": {"file_id": "file-1"}}),
    st.builds(lambda text: {"type": "text", "text": text, "extra": 1}, words),
)


@st.composite
def chats(draw: st.DrawFn) -> list[Wire]:
    """Message lists of callers in normal form: no empty texts, a single text as a string, compact arguments."""
    content = words | st.lists(chat_parts, min_size=2, max_size=3)
    names = st.sampled_from([{}, {"name": "ada"}])
    out: list[Wire] = []
    if draw(st.booleans()):
        out.append({"role": draw(st.sampled_from(["system", "developer"])), "content": draw(words)})
    for turn in range(draw(st.integers(1, 3))):
        out += [{"role": "user", "content": draw(content), **draw(names)} for _ in range(draw(st.integers(1, 2)))]
        calls = [
            {
                "id": f"call_{turn}_{n}",
                "type": "function",
                "function": {"name": "f", "arguments": json.dumps(draw(objects), separators=(",", ":"), ensure_ascii=False)},
            }
            for n in range(draw(st.integers(0, 2)))
        ]
        if not calls:
            out.append({"role": "assistant", "content": draw(words), **draw(st.sampled_from([{}, {"refusal": "no"}]))})
            continue
        out.append({"role": "assistant", "content": draw(st.none() | words), "tool_calls": calls})
        out += [{"role": "tool", "tool_call_id": call["id"], "content": draw(st.text(max_size=9))} for call in calls]
    return out


@examples(200)
@given(chats())
def test_a_callers_own_list_comes_back_as_it_was(chat: list[Wire]) -> None:
    assert to_chat(messages_from_chat(chat)) == chat


@given(chats(), st.data())
def test_a_longer_list_begins_with_the_blocks_of_the_shorter_one(chat: list[Wire], data: st.DataObject) -> None:
    shorter = messages_from_chat(chat[: data.draw(st.integers(0, len(chat)))])
    longer = messages_from_chat(chat)
    flat = [[(message["role"], block) for message in found for block in message["content"]] for found in (shorter, longer)]
    assert flat[1][: len(flat[0])] == flat[0]


@given(parts | cited)
def test_a_block_takes_its_native_form_only_if_that_converts_back(block: Wire) -> None:
    assert block_of(part_of(block)) == block


def test_common_messages_look_as_every_server_expects_them() -> None:
    messages: list[Wire] = [
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no such file", "is_error": True},
                {"type": "text", "text": "try b"},
            ],
        },
    ]
    assert to_chat(messages) == [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [{"id": "toolu_1", "type": "function", "function": {"name": "Read", "arguments": '{"path":"a"}'}}],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": f"{ERROR}\nno such file"},
        {"role": "user", "content": "try b"},
    ]


def test_a_picture_in_a_result_follows_in_a_user_message_that_says_whose_it_is() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "see"}, picture]}
    tool, user = chat_messages({"role": "user", "content": [result]})
    assert tool["role"] == "tool"
    assert [part["type"] for part in tool["content"]] == ["text", "text"]
    assert [part["type"] for part in user["content"]] == ["text", "image_url"]
    assert "toolu_1#1" in tool["content"][1]["text"]
    assert "toolu_1#1" in user["content"][0]["text"]


def test_thinking_is_left_out_unless_the_server_takes_it_back() -> None:
    message = {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "ok"}],
    }
    assert chat_messages(message) == [{"role": "assistant", "content": "ok"}]
    (sent,) = chat_messages(message, reasoning=True)
    assert sent["reasoning_content"] == "hm"
    assert messages_from_chat([sent]) == [message]


def test_arguments_that_are_no_json_go_back_as_the_text_they_came_as() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": '}}
    chat = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    messages = messages_from_chat(chat)
    assert messages[0]["content"][0]["input"] == {UNPARSED: '{"a": '}
    assert to_chat(messages) == chat


def test_calls_without_ids_get_stable_ones_and_their_results_find_them() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat: list[Wire] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [call, call]},
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
    ]
    messages = messages_from_chat(chat)
    assert messages == messages_from_chat(chat)
    assert [block["id"] for block in messages[1]["content"]] == ["call_1_0", "call_1_1"]
    assert [(block["tool_use_id"], block["content"]) for block in messages[2]["content"]] == [
        ("call_1_0", "one"),
        ("call_1_1", "two"),
    ]


@pytest.mark.parametrize("chat", [[{"content": "x"}], [{"role": "tool", "content": "x"}]])
def test_a_message_nobody_can_place_is_an_input_error_that_names_it(chat: list[Wire]) -> None:
    with pytest.raises(InputError, match=r"messages\[0\]"):
        messages_from_chat(chat)
