"""Matching a subject in a text."""

from __future__ import annotations

import json
import unicodedata
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.errors import InputError
from lamina.maintenance.forget.subject import MANY_LINES, Subject


@pytest.mark.spec("B11")
@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("Anna Lee", "met ANNA LEE there"),
        ("Anna Lee", "met Anna\n  Lee there"),
        ("Anna Lee", "anna-lee.md"),
        ("Anna Lee", "ANNA_LEE=1"),
        ("Anna", "Anna's house"),
        ("Anna", "\\nAnna was here"),
        ("Anna", '{\\\\"name\\\\": \\\\"Anna\\\\"}'),
        ("René", "Rene\u0301 said"),
        ("Rene\u0301", "RENÉ said"),
        ("René", "\\u0052en\\u00e9 said"),
        ("René", "Ren\\\\u00E9 said"),
        ("Straße", "in der STRASSE"),
        ("Anna", "Ａｎｎａ"),
        ("Anna", "An\u00adna"),
        ("安娜", "我叫安娜李"),
        ("Anna", "Annaさん"),
        ("민수", "민수는"),
        ("😀 club", "\\ud83d\\ude00 club"),
        ("C++", "writes C++ daily"),
    ],
)
def test_it_is_found_however_it_is_written(subject: str, text: str) -> None:
    [span] = Subject(subject).spans(text)
    assert 0 <= span.start < span.end <= len(text)
    assert not Subject(subject).spans(text[: span.start] + "[removed]" + text[span.end :])


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("Ann", "annual"),
        ("Ann", "the channel"),
        ("Rene", "René said"),
        ("민수", "민순이"),
        ("かき", "かぎ"),
        ("Anna Lee", "Anna and Lee"),
        ("Anna", ""),
    ],
)
def test_it_is_not_found_inside_another_word(subject: str, text: str) -> None:
    assert not Subject(subject).spans(text)


def test_inside_longer_words_only_when_asked() -> None:
    assert Subject("Ann", anywhere=True).spans("annual")


@pytest.mark.parametrize("subject", ["", " ", "x", "--", "y" * 201])
def test_what_is_no_subject_is_refused(subject: str) -> None:
    with pytest.raises(InputError):
        Subject(subject)


def test_copied_lines_count_only_when_they_are_long() -> None:
    subject = Subject("Anna", also=["Her keys lie under the blue pot.", "short line"])
    assert subject.holds("x HER KEYS lie under the blue pot. y")
    assert not subject.holds("a short line")


WORDS = st.text(st.characters(categories=("L", "N", "P", "Zs", "M", "Cc")), max_size=30)


@given(before=WORDS, after=WORDS, levels=st.integers(0, 3), form=st.sampled_from(["NFC", "NFD"]), plain=st.booleans())
def test_however_often_it_is_escaped_it_is_found(before: str, after: str, levels: int, form: str, plain: bool) -> None:
    text = f"{before} {unicodedata.normalize(form, 'Zoë Quill')} {after}"  # type: ignore[arg-type]  # a literal of the four forms
    for _ in range(levels):
        text = json.dumps(text, ensure_ascii=not plain)
    spans = Subject("zoë quill").spans(text)
    assert spans
    assert all(a.end < b.start for a, b in pairwise(spans))


LINES = st.lists(st.text("ab \\u", min_size=20, max_size=32), min_size=1, max_size=4)


@given(lines=LINES, parts=st.lists(st.text("ab \\u", max_size=9), max_size=4), draw=st.randoms(use_true_random=False))
def test_many_copied_lines_are_found_where_a_few_are(lines: list[str], parts: list[str], draw: Random) -> None:
    pieces = [*parts, *lines, *lines[:1]]
    draw.shuffle(pieces)
    text = "".join(pieces)
    others = [f"line {number} that stands in no text at all" for number in range(MANY_LINES)]
    few, many = Subject("Anna", also=lines), Subject("Anna", also=[*lines, *others])
    assert many.spans(text) == few.spans(text)
    assert many.holds(text) == few.holds(text)
