"""Repair of a rejected message list: which blocks are left out, and that the API accepts the result."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.api_rules import complaints

from lamina.conversation.repair import objected, without
from lamina.core.blocks import Wire, digest_of


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


def thinking(words: str) -> Wire:
    return {"type": "thinking", "thinking": words, "signature": f"signed {words}"}


def call(call_id: str) -> Wire:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {}}


def result(call_id: str, content: Any = "found") -> Wire:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


IMAGE: Wire = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def user(*blocks: Wire) -> Wire:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks)}


HISTORY = [
    user(text("hello"), IMAGE),
    assistant(thinking("one"), text("hi"), call("c1")),
    user(result("c1", [text("seen"), IMAGE]), text("go on")),
    assistant(thinking("two"), text("done")),
    user(text("thanks")),
]


def mended(sentence: str, messages: list[Wire]) -> list[Wire]:
    return without(messages, objected(sentence, messages))


@pytest.mark.spec("C11")
@pytest.mark.parametrize(
    "sentence",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.3.content.0.thinking.signature: Field required",
        "The request was refused: thinking blocks cannot be modified",
    ],
)
def test_a_refusal_of_thinking_leaves_all_of_it_out_and_every_word_in(sentence: str) -> None:
    after = mended(sentence, HISTORY)
    assert after == [
        HISTORY[0],
        assistant(text("hi"), call("c1")),
        HISTORY[2],
        assistant(text("done")),
        HISTORY[4],
    ]
    assert after[0] is HISTORY[0], "what keeps all its blocks is the same dict"


def test_thinking_that_comes_later_is_kept() -> None:
    refused = objected("Invalid `signature` in `thinking` block", HISTORY)
    later = [*HISTORY, assistant(thinking("three"), text("welcome")), user(text("bye"))]
    assert without(later, refused)[-2] is later[-2]


def test_an_image_the_server_names_becomes_a_line() -> None:
    after = mended("messages.0.content.1.image.source.base64: could not be decoded", [*HISTORY[:1], *HISTORY[3:]])
    assert after[0]["content"] == [text("hello"), text("[left out: the server refused this image]")]


def test_an_image_it_does_not_name_is_taken_to_be_the_newest() -> None:
    after = mended("Could not process image", HISTORY)
    assert after[0] is HISTORY[0]
    assert after[2]["content"][0] == result("c1", "seen\n[left out: the server refused this part of the result]")


def test_a_call_it_names_goes_and_what_its_result_says_stays_as_text() -> None:
    after = mended("messages.1.content.2.tool_use.id: String should match pattern", HISTORY)
    assert after[1]["content"][-1] == text("[left out: the server refused this call of Read]")
    assert after[2]["content"] == [text("Result of a call that is left out:\nseen"), text("go on")]
    assert complaints(after) == []


def test_a_block_nobody_knows_becomes_a_line() -> None:
    history = [user(text("hello"), {"type": "hologram", "data": "x"})]
    assert mended("messages.0.content.1: Input tag 'hologram' does not match", history) == [
        user(text("hello"), text("[left out: the server refused this hologram]"))
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
        "max_tokens: Input should be a valid integer",
        "messages.99.content.0: no such thing",
        "",
    ],
)
def test_words_are_never_left_out_and_a_refusal_of_something_else_mends_nothing(sentence: str) -> None:
    assert objected(sentence, HISTORY) == frozenset()


def test_a_message_of_which_nothing_is_left_goes_and_its_neighbours_merge() -> None:
    history = [user(text("hello")), assistant(thinking("only")), user(text("are you there?"))]
    assert mended("thinking", history) == [user(text("hello"), text("are you there?"))]
    assert mended("thinking", [assistant(thinking("a"), text("b"))])[0]["role"] == "user"


blocks = st.one_of(st.sampled_from(["a", "b", "c"]).map(text), st.sampled_from(["x", "y"]).map(thinking), st.just(IMAGE))


@pytest.mark.spec("C11")
@given(st.lists(st.lists(blocks, min_size=1, max_size=4), min_size=1, max_size=6), st.data())
def test_whatever_is_left_out_the_rest_is_legal_unchanged_and_the_same_beginning_when_the_list_grows(
    turns: list[list[Wire]], data: st.DataObject
) -> None:
    messages = []
    for at, turn in enumerate(turns):
        kept = [block for block in turn if (block["type"] == "thinking") == (at % 2 == 1) or block["type"] == "text"]
        messages.append((user if at % 2 == 0 else assistant)(*kept, text("end")))
    refused = {
        digest_of(block)
        for message in messages
        for block in message["content"]
        if block["type"] != "text" and data.draw(st.booleans())
    }
    before = copy.deepcopy(messages)
    after = without(messages, refused)
    assert messages == before
    assert complaints(after) == []
    assert without(messages[:-1], refused) == after[: len(messages) - 1]
    assert not any(digest_of(block) in refused for message in after for block in message["content"])
    assert without(after, refused) == after
