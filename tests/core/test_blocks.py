"""Content blocks: any input becomes a plain, private and deterministic value."""

from __future__ import annotations

import copy
import json
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import PICTURE, examples, result, thought, use, words

from lamina.core.blocks import (
    DIGEST_BYTES,
    EMPTY_ERROR,
    Block,
    Document,
    Image,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    read_block,
    read_content,
    scrub,
    text,
    tool_result,
)
from lamina.core.errors import InputError

# Every possible character, including lone surrogates.
anything = st.text(st.characters(exclude_categories=()), max_size=8)
json_like: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | anything,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(anything, inner, max_size=4),
    max_leaves=10,
)
KNOWN = ("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document")
FIELDS = ("text", "citations", "thinking", "signature", "data", "id", "name", "input", "tool_use_id", "content", "is_error")
fields = st.sampled_from([*FIELDS, "source", "title", "cache_control", "parsed_output", "unknown"]) | anything
block_like = st.builds(
    lambda kind, rest: {**rest, "type": kind},
    st.sampled_from([*KNOWN, "server_tool_use", "novelty"]) | json_like,
    st.dictionaries(fields, json_like, max_size=5),
)


def read(raw: Any) -> Block | None:
    try:
        return read_block(raw)
    except InputError:
        return None


def surrogates(value: Any) -> int:
    return sum("\ud800" <= char <= "\udfff" for char in json.dumps(value, ensure_ascii=False))


@examples(300)
@given(block_like)
def test_any_block_is_read_or_refused_with_a_sentence(raw: dict[str, Any]) -> None:
    block = read(raw)
    if block is not None:
        assert isinstance(block.wire, dict)
        assert len(block.digest) == DIGEST_BYTES
        assert surrogates(block.wire) == 0
        assert json.loads(json.dumps(block.wire)) == block.wire


@examples(200)
@given(json_like)
def test_any_content_is_read_or_refused_with_a_sentence(raw: Any) -> None:
    try:
        blocks = read_content(raw)
    except InputError:
        return
    assert all(isinstance(block.wire["type"], str) for block in blocks)


@examples(200)
@given(block_like)
def test_the_same_block_has_the_same_bytes_and_nothing_of_the_callers_in_it(raw: dict[str, Any]) -> None:
    twin = copy.deepcopy(raw)
    block = read(raw)
    if block is None:
        return
    wire, digest = copy.deepcopy(block.wire), block.digest
    for key, value in list(raw.items()):
        if isinstance(value, list):
            value.append("changed by the caller")
        elif isinstance(value, dict):
            value["changed"] = "by the caller"
        raw[key] = "changed by the caller"
    assert block.wire == wire
    again = read(twin)
    assert again is not None
    assert (again.wire, again.digest) == (wire, digest)


@examples(200)
@given(block_like)
def test_a_block_read_again_from_its_own_wire_is_the_same(raw: dict[str, Any]) -> None:
    block = read(raw)
    if block is not None:
        assert read(block.wire) == block


@examples(200)
@given(anything)
def test_every_lone_surrogate_becomes_one_replacement_character(value: str) -> None:
    clean = scrub(value)
    assert surrogates(clean) == 0
    # A surrogate pair that is split into two halves is one character, as in every other program.
    expected = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert clean == expected
    assert len(clean.encode("utf-16-le")) == len(value.encode("utf-16-le", "surrogatepass"))


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ({"type": "tool_use", "id": "t", "name": "n", "input": {"a": ["\ud800", {"\udfff": "x"}]}}, ["�", {"�": "x"}]),
        ({"type": "tool_use", "id": "t", "name": "n", "input": {"a": "\ud83d\ude00"}}, "😀"),
        ({"type": "tool_use", "id": "t", "name": "n", "input": {"a": ("\udc00",)}}, ["�"]),
    ],
)
def test_surrogates_are_replaced_at_any_depth(raw: dict[str, Any], kept: Any) -> None:
    block = read_block(raw)
    assert isinstance(block, ToolUse)
    assert block.input == {"a": kept}


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (words("a"), Text),
        (thought("a"), Thinking),
        ({"type": "redacted_thinking", "data": "a"}, RedactedThinking),
        (use("t1"), ToolUse),
        (result("t1"), ToolResult),
        (PICTURE, Image),
        ({"type": "document", "source": {"type": "text", "data": "a"}}, Document),
        ({"type": "novelty"}, Unknown),
    ],
)
def test_each_type_has_its_own_value(raw: dict[str, Any], kind: type[Block]) -> None:
    block = read_block(raw)
    assert type(block) is kind
    assert block.wire == raw


@pytest.mark.spec("C11")
@pytest.mark.parametrize(
    ("raw", "wire"),
    [
        ({**words("a"), "parsed_output": {}, "citations": None, "cache_control": {}}, words("a")),
        ({**words("a"), "citations": [{"type": "x"}]}, {**words("a"), "citations": [{"type": "x"}]}),
        ({**use("t1"), "cache_control": {"type": "ephemeral"}, "index": 3}, use("t1")),
        ({**thought("a"), "estimated_tokens": 9}, thought("a")),
        (thought("a", "") | {"signature": 7}, thought("a", None)),
        ({"type": "novelty", "cache_control": {}, "null": None}, {"type": "novelty", "null": None}),
        ({"type": "tool_use", "id": "t", "name": "n"}, {"type": "tool_use", "id": "t", "name": "n", "input": {}}),
        ({**use("t1"), "input": [1]}, use("t1", input={"input": [1]})),
        ({**use("t1"), "input": "x"}, use("t1", input={"input": "x"})),
    ],
)
def test_what_the_api_does_not_take_back_is_stripped(raw: dict[str, Any], wire: dict[str, Any]) -> None:
    assert read_block(raw).wire == wire


@pytest.mark.spec("C11")
@pytest.mark.parametrize(
    ("content", "kept"),
    [
        ("text", "text"),
        (None, ""),
        ("", ""),
        ([], []),
        ([words("a")], [words("a")]),
        ([words("a") | {"cache_control": {}, "citations": None}], [words("a")]),
        ([words(""), {"type": "text", "text": None}, PICTURE], [PICTURE]),
        (["a", "", 5], [words("a"), words("5")]),
        (7, "7"),
        ({"a": 1}, "{'a': 1}"),
    ],
)
def test_the_content_of_a_result_is_tidied(content: Any, kept: Any) -> None:
    block = read_block(result("t1", content))
    assert isinstance(block, ToolResult)
    assert block.content == kept == block.wire["content"]


@pytest.mark.parametrize("content", ["", [], [words("")], None])
def test_an_error_that_says_nothing_gets_words_since_the_api_refuses_it_without(content: Any) -> None:
    assert read_block(result("t1", content, is_error=True)).wire == result("t1", EMPTY_ERROR, is_error=True)


def test_the_text_of_a_result_is_its_texts_joined() -> None:
    block = read_block(result("t1", [words("a"), PICTURE, words("b")]))
    assert isinstance(block, ToolResult)
    assert block.text == "a\nb"
    assert tool_result("t1", "plain").text == "plain"


def test_the_order_of_keys_counts_inside_a_block_and_not_at_its_top() -> None:
    there = read_block(use("t1", input={"a": 1, "b": 2}))
    back = read_block(use("t1", input={"b": 2, "a": 1}))
    assert there.digest != back.digest
    assert read_block(dict(reversed(words("a").items()))).digest == text("a").digest


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"type": None},
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "thinking", "signature": "a"},
        {"type": "tool_use", "id": 5, "name": "n"},
        {"type": "tool_use", "id": "t"},
        {"type": "tool_result"},
        {"type": "image", "source": "a.png"},
        {"type": "document"},
        {"type": "novelty", "value": object()},
        {"type": "text", "text": "\ud800", "citations": object()},
        {"type": "novelty", "value": {"\ud800"}},
        {"type": "novelty", "value": 10**5000},
    ],
)
def test_a_block_of_the_wrong_shape_is_refused_by_name(raw: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="record 7"):
        read_block(raw, where="record 7")


@pytest.mark.parametrize("seed", ["plain", "\ud800"])
def test_a_block_that_holds_itself_is_refused(seed: str) -> None:
    loop: list[Any] = [seed]
    loop.append(loop)
    with pytest.raises(InputError, match="not plain JSON"):
        read_block({"type": "novelty", "value": loop})


class Name(str):
    """A string subclass, as template engines and ORMs return it."""

    __slots__ = ()


def test_values_that_are_nearly_plain_are_read() -> None:
    frozen = MappingProxyType({"path": Name("a"), "more": OrderedDict(b=(1, 2))})
    assert read_block({"type": "tool_use", "id": Name("t1"), "name": "Read", "input": frozen}).wire == use(
        "t1", input={"path": "a", "more": {"b": [1, 2]}}
    )
    assert read_content(Name("said")) == (text("said"),)


def test_content_is_always_a_list_of_blocks() -> None:
    assert read_content(None) == read_content("") == read_content([]) == ()
    assert read_content("a") == read_content([words("a")]) == (text("a"),)


@pytest.mark.parametrize("content", [5, {"type": "text"}, ["a"], [words("a"), None]])
def test_content_of_the_wrong_shape_is_refused_with_its_place(content: Any) -> None:
    with pytest.raises(InputError, match=r"here(\[\d\])?: "):
        read_content(content, where="here")
