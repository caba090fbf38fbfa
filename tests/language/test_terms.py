"""Normalization of texts, and stems that let related words match."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.language.terms import highlights, normal, sought, stem


def without_shortcut(text: str) -> str:
    """Compute `normal` for any text without shortcuts."""
    apart = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFC", "".join(char for char in apart if not "\u0300" <= char <= "\u036f"))


@pytest.mark.spec("B15")
def test_no_character_that_loses_an_accent_is_missed() -> None:
    odd = [
        code for code in range(0x80, 0x30000) if not 0xD800 <= code <= 0xDFFF and normal(chr(code)) != without_shortcut(chr(code))
    ]
    assert odd == []


@pytest.mark.spec("B15")
@given(st.text(max_size=20))
def test_any_text_has_the_form_it_would_have_without_the_shortcut(text: str) -> None:
    assert normal(text) == without_shortcut(text)
    assert normal(normal(text)) == normal(text) or not text.isascii()


@pytest.mark.parametrize(
    ("words", "one"),
    [
        (("test", "tests", "testing", "tested"), "test"),
        (("deploy", "deploys", "deployed"), "deploy"),
        (("query", "queries"), "quer"),
        (("migrate", "migration", "migrations", "migrating"), "migr"),
        (("day", "days"), "day"),
        (("is",), "is"),
    ],
)
def test_forms_of_a_word_meet(words: tuple[str, ...], one: str) -> None:
    assert {stem(word) for word in words} == {one}


@pytest.mark.spec("B15")
def test_scripts_without_spaces_are_compared_in_pairs() -> None:
    assert sought("集成测试") == ["集成", "成测", "测试"]
    assert sought("Größe der DATENBANK") == ["gross", "der", "datenbank"]


@pytest.mark.parametrize(("text", "question", "found"), [
    ("Integration tests use a real database.", "which databases do the tests need?", ["tests", "database"]),
    ("TESTING_db and Testers", "test", ["TESTING", "Testers"]),
    ("Über die Prüfung: geprüft", "prüfung uber", ["Über", "Prüfung"]),
    ("生产环境使用 Redis 缓存", "缓存在哪里? redis", ["Redis", "缓存"]),
    ("the ﬁle is there", "file", ["ﬁle"]),
    ("nothing here", "the of and", []),
    ("", "test", []),
])  # fmt: skip
def test_highlights_are_the_words_that_a_question_finds(text: str, question: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in highlights(text, question)] == found


@given(st.text(), st.text())
def test_highlights_are_in_order_and_in_the_text(text: str, question: str) -> None:
    ranges = highlights(text, question)
    assert all(0 <= start < end <= len(text) for start, end in ranges)
    assert all(one[1] < other[0] for one, other in pairwise(ranges))
    assert len(highlights("test " * 2_000, "test", most=10)) == 10
