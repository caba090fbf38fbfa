"""Counts agree with their nouns and verbs."""

from __future__ import annotations

import pytest

from lamina.language.wording import counted, plural


@pytest.mark.parametrize(
    ("number", "one", "many", "text"),
    [
        (0, "call", "", "0 calls"),
        (1, "call", "", "1 call"),
        (1, "memory", "", "1 memory"),
        (1_000, "memory", "", "1,000 memories"),
        (2, "day", "", "2 days"),
        (1, "memory is", "memories are", "1 memory is"),
        (3, "memory is", "memories are", "3 memories are"),
    ],
)
def test_a_count_agrees_with_its_noun(number: int, one: str, many: str, text: str) -> None:
    assert counted(number, one, many) == text


def test_a_verb_agrees_with_a_number_that_is_not_printed() -> None:
    assert [plural(number, "it is", "they are") for number in (0, 1, 2)] == ["they are", "it is", "they are"]
