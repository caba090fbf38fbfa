"""The cost of a block by T2's rule, and the classes of its characters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.window.estimate import estimate
from lamina.conversation.window.features import EMPTY, Features, Memo, is_json, measure, measure_all
from lamina.core.blocks import read_block, text, tool_result

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def plain(raw: dict[str, Any]) -> int:
    return measure(read_block(raw)).plain


@pytest.mark.spec("T2")
@pytest.mark.parametrize(
    ("raw", "tokens"),
    [
        ({"type": "text", "text": "a" * 4_000}, 1_000),
        ({"type": "text", "text": "a" * 4_001}, 1_001),
        ({"type": "text", "text": "記" * 400}, 300),  # three bytes each
        ({"type": "thinking", "thinking": "a" * 400, "signature": "s" * 900}, 100),
        ({"type": "redacted_thinking", "data": "a" * 400}, 100),
        ({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}, 8),  # {"command":"ls"} is 16 bytes
        ({"type": "tool_result", "tool_use_id": "t", "content": "a" * 400}, 100),
        ({"type": "tool_result", "tool_use_id": "t", "content": '{"key":"' + "a" * 390 + '"}'}, 200),
        ({"type": "tool_result", "tool_use_id": "t", "content": " \n[1,2,3,4]\n"}, 6),
        (PNG, 2_000),
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a" * 40_000}}, 2_000),
        ({"type": "search_result", "a": 1}, 15),  # unknown: {"type":"search_result","a":1} is 30 bytes
        (
            {
                "type": "tool_result",
                "tool_use_id": "t",
                "content": [{"type": "text", "text": "a" * 40}, PNG, {"type": "text", "text": "[1]"}, PNG],
            },
            10 + 2_000 + 2 + 2_000,
        ),
    ],
)
def test_the_plain_rule_counts_four_bytes_of_text_two_of_json_and_a_flat_number(raw: dict[str, Any], tokens: int) -> None:
    assert plain(raw) == tokens


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ('{"a": 1}', True),
        ("  [1, 2]\n", True),
        ("", False),
        ("prose", False),
        ("[1] see [2]", False),
        ("{not json}", False),
        ("3", False),
        ("[" * 200_000 + "]" * 200_000, False),
    ],
)
def test_only_an_object_or_a_list_is_json(value: str, answer: bool) -> None:
    assert is_json(value) is answer


@pytest.mark.parametrize(
    ("value", "features"),
    [
        ("Hello you", Features(letters=8, blanks=1)),
        ("\tx = 42;\n", Features(letters=1, blanks=3, marks=5)),
        ("日本語のテキスト", Features(wide=8)),
        ("한국어", Features(wide=3)),
        ("中文 and", Features(letters=3, blanks=1, wide=2)),
        ("，。", Features(wide=2)),  # full-width and CJK punctuation
        ("→", Features(rare=3)),
        ("é", Features(rare=2)),
        ("🙂", Features(rare=4)),
    ],
)
def test_characters_are_told_apart_by_what_tokenizers_make_of_them(value: str, features: Features) -> None:
    got = measure(text(value))
    assert (got.letters, got.blanks, got.marks, got.wide, got.rare) == (
        features.letters,
        features.blanks,
        features.marks,
        features.wide,
        features.rare,
    )


@given(st.text(st.characters(codec="utf-8")))
def test_every_byte_of_a_text_is_in_exactly_one_class(value: str) -> None:
    got = measure(text(value))
    assert got.letters + got.blanks + got.marks + 3 * got.wide + got.rare == len(value.encode())
    assert min(got.letters, got.blanks, got.marks, got.wide, got.rare) >= 0


def test_a_chinese_japanese_or_korean_character_costs_about_a_token() -> None:
    for sample in ("这个函数读取设置并返回结果", "この関数は設定を読み結果を返す", "이함수는설정을읽고결과를반환한다"):
        assert 0.9 <= estimate(measure(text(sample * 50))) / len(sample * 50) <= 1.1


def test_an_argument_is_read_as_it_is_and_not_escaped() -> None:
    call = measure(read_block({"type": "tool_use", "id": "t", "name": "Write", "input": {"content": "\n\n\t\t"}}))
    assert (call.letters, call.marks, call.blanks) == (len("content"), 2, 3)


def test_each_argument_of_a_call_has_a_frame_of_its_own() -> None:
    one = measure(read_block({"type": "tool_use", "id": "t", "name": "Grep", "input": {"a": "x"}}))
    two = measure(read_block({"type": "tool_use", "id": "t", "name": "Grep", "input": {"a": "x", "b": 1}}))
    assert two.frame > one.frame


def test_thinking_that_is_shown_as_a_summary_counts_by_its_signature() -> None:
    shown = measure(read_block({"type": "thinking", "thinking": "a" * 1_000, "signature": "s" * 100}))
    hidden = measure(read_block({"type": "thinking", "thinking": "", "signature": "s" * 4_000}))
    assert shown.letters == 1_000
    assert hidden.letters == 3_000 - 170
    assert hidden.plain == 0


def test_a_document_whose_text_is_at_hand_is_estimated_by_it() -> None:
    long = measure(
        read_block({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a" * 400_000}})
    )
    scan = measure(
        read_block({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}})
    )
    assert estimate(long) > 50_000
    assert estimate(scan) == 2_000


@pytest.mark.spec("T2")
def test_a_block_that_was_read_before_is_not_read_again() -> None:
    block, other = tool_result("t1", "a" * 400), tool_result("t2", "a" * 400)
    memo: Memo = {}
    first = measure_all([block, other], memo)
    assert set(memo) == {block.digest, other.digest}
    memo[block.digest] = Features(plain=7)
    assert measure_all([block], memo).plain == 7
    assert first == measure_all([block, other])


def test_features_add_up_field_by_field() -> None:
    one, two = Features(1, 2, 3, 4, 5, 6, 7, 8), Features(10, 20, 30, 40, 50, 60, 70, 80)
    assert one + two == Features(11, 22, 33, 44, 55, 66, 77, 88)
    assert one + EMPTY == one
