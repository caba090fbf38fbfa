"""Arguments of callers become private plain values, or raise an error that names them."""

from __future__ import annotations

import json
from collections import UserDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import PICTURE, examples, words

from lamina.core.blocks import tool_result
from lamina.core.errors import InputError
from lamina.core.inputs import plain_rows, system_blocks
from lamina.layers.l1_results.source import result_output


def test_a_system_text_is_one_block_and_none_where_there_is_none() -> None:
    assert system_blocks("be brief") == system_blocks([words("be brief")]) == [words("be brief")]
    assert system_blocks("") == system_blocks([]) == []


def test_rows_are_copied_and_lose_their_marks() -> None:
    tool = {"name": "Read", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    rows = plain_rows([tool, MappingProxyType({"name": "\ud800", "more": MappingProxyType({"a": (1,)})})], "tools")
    tool["input_schema"]["type"] = "changed by the caller"  # type: ignore[index]  # a dict of mixed values
    assert rows == [{"name": "Read", "input_schema": {"type": "object"}}, {"name": "�", "more": {"a": [1]}}]


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    "rows", ["text", {"name": "Read"}, [5], ["text"], 5, [{"run": print}], [{"loop": LOOP}], [{"big": 10**5000}]]
)
def test_what_is_no_list_of_plain_objects_is_refused(rows: Any) -> None:
    with pytest.raises(InputError, match="tools"):
        plain_rows(rows, "tools")


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ("text", "text"),
        (None, ""),
        ({"a": 1}, '{"a":1}'),
        ([1, 2], "[1,2]"),
        ([], "[]"),
        (True, "true"),
        ({"a": "\ud800"}, '{"a":"�"}'),
        ([words("a"), PICTURE], [words("a"), PICTURE]),
        ((words("a"),), [words("a")]),
        ([words("a"), "b"], '[{"type":"text","text":"a"},"b"]'),
        ([{"type": "file", "name": "a.py"}], '[{"type":"file","name":"a.py"}]'),
        ([{"type": "text", "text": "a"}, {"type": "dir"}], '[{"type":"text","text":"a"},{"type":"dir"}]'),
        ([{"type": "text", "text": 5}], '[{"type":"text","text":5}]'),
        ([{"type": ["text"]}], '[{"type":["text"]}]'),
        (UserDict(a=1), '{"a":1}'),
        (print, str(print)),
        (LOOP, str(LOOP)),
    ],
)
def test_a_tools_output_becomes_content(output: object, content: Any) -> None:
    assert result_output(output) == content


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@examples(150)
@given(anything.filter(lambda output: not isinstance(output, bytes)))
def test_any_output_can_be_sent_as_a_result(output: object) -> None:
    content = result_output(output)
    assert isinstance(content, str | list)
    block = tool_result("t1", content)
    json.dumps(block.wire, ensure_ascii=False).encode("utf-8")
    assert isinstance(block.content, str | list)
