"""Words: what two texts share, in any script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.words import asks_for_memory, is_word, normal, sought, stem, terms

MEET = [
    ("test", "tests"),
    ("test", "testing"),
    ("query", "queries"),
    ("migration", "migrations"),
    ("migrate", "migration"),
    ("database", "databases"),
    ("deployed", "deploys"),
    ("deploy", "deploys"),
    ("Thursday", "Thursdays"),
    ("Größe", "GROSSE"),
    ("café", "cafe"),
    ("ＡＰＩ", "api"),
]


@pytest.mark.parametrize(("one", "other"), MEET)
def test_forms_of_a_word_meet(one: str, other: str) -> None:
    assert terms(one) == terms(other) != []


@pytest.mark.parametrize(("one", "other"), [("test", "text"), ("main", "mail"), ("cat", "car"), ("one", "on")])
def test_other_words_do_not(one: str, other: str) -> None:
    assert terms(one) != terms(other)


@pytest.mark.spec("B15")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("集成测试", ["集成", "成测", "测试"]),
        ("我们的测试用什么？", ["测试", "试用"]),
        ("用Postgres数据库", ["用", "postgr", "数据", "据库"]),
        ("データベース", ["デー", "ータ", "タベ", "ベー", "ース"]),
        ("테스트는", ["테스", "스트", "트는"]),
        ("字", ["字"]),
    ],
)
def test_scripts_without_spaces_are_cut_in_pairs(text: str, expected: list[str]) -> None:
    assert [term.removesuffix("es") for term in terms(text)] == expected


def test_words_that_say_nothing_are_left_out_and_each_is_sought_once() -> None:
    assert terms("What do we use it for?") == []
    assert sought("the tests of the test database") == ["test", stem("database")]


@given(st.text(max_size=60))
def test_a_term_can_be_found_by_a_plain_search(text: str) -> None:
    plain = normal(text)
    assert normal(plain) == plain
    for term in terms(plain):
        assert term in plain
        assert is_word(term) == term.isascii()


@pytest.mark.parametrize(
    "text",
    [
        "Remember: x",
        "Save this: x",
        "note: x",
        "save to memory x",
        "please remember that x",
        "记住：x",
        "請記住 x",
        "覚えて：x",
        "기억해: x",
        "Forget about x",
        "忘记 x",
        "忘れて x",
    ],
)
def test_a_wish_for_memory_is_heard(text: str) -> None:
    assert asks_for_memory(text)


@pytest.mark.parametrize(
    "text",
    [
        "Do you remember x?",
        "Remember our deploy day?",
        "记得部署日吗？",
        "Save the report to a file.",
        "Note the time",
        "Remember when we met?",
        "Forget it.",
        "The test fails.",
        "我记住了",
        "",
    ],
)
def test_other_words_are_no_wish(text: str) -> None:
    assert not asks_for_memory(text)
