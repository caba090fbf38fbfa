"""Edit's decision: exactly one place, or a sentence that shows the way to it."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lamina.tools.edit import EditPlan, EditRefusal, plan_edit
from lamina.tools.file_kinds import decode, encode, with_line_ends

TEXT = st.text(st.sampled_from("abc \n"), max_size=40)


def plan(text: str, old: str, new: str, *, everywhere: bool = False, line_end: str = "\n") -> EditPlan | EditRefusal:
    return plan_edit(text, old, new, everywhere=everywhere, line_end=line_end)


@given(TEXT, TEXT, TEXT)
def test_replacing_everywhere_is_what_str_replace_does(text: str, old: str, new: str) -> None:
    assume(old)
    planned = plan(text, old, new, everywhere=True)
    if isinstance(planned, EditRefusal):
        assert old not in text or old == new
    else:
        assert planned.text == text.replace(old, new)
        assert all(planned.text[start : start + planned.length] == new for start in planned.starts)
        assert len(planned.starts) == text.count(old)


@given(TEXT, TEXT, TEXT)
def test_one_place_is_changed_only_when_there_is_one(text: str, old: str, new: str) -> None:
    assume(old)
    planned = plan(text, old, new)
    assert isinstance(planned, EditPlan) == (text.count(old) == 1 and old != new)
    if isinstance(planned, EditPlan):
        assert planned.text == text.replace(old, new)


@given(TEXT, TEXT, TEXT)
def test_a_file_with_windows_line_ends_is_edited_like_one_without(text: str, old: str, new: str) -> None:
    assume(old)
    there = with_line_ends(text, "\r\n")
    unix, windows = plan(text, old, new), plan(there, old, new, line_end="\r\n" if "\n" in text else "\n")
    if isinstance(unix, EditPlan):
        assert isinstance(windows, EditPlan)
        assert windows.text.replace("\r\n", "\n") == unix.text
        assert "\n" not in text or "\n" not in windows.text.replace("\r\n", "")
    else:
        assert isinstance(windows, EditRefusal)


@given(st.text(st.sampled_from("aé漢\r\n"), max_size=30), st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]))
def test_what_is_decoded_is_encoded_back(text: str, bom: bytes) -> None:
    codec = {b"": "utf-8", b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}[bom]
    data = bom + text.encode(codec)
    decoded = decode(data, "f")
    assert decoded.text == text
    assert encode(decoded.form, decoded.text) == data


def test_bytes_that_are_no_utf_8_survive() -> None:
    data = b"caf\xe9 \xff\n" + b"plain\n" * 10
    decoded = decode(data, "f")
    assert encode(decoded.form, decoded.text) == data


FILE = "def one():\n    return 1\n\n\ndef two():\n\treturn 2\n"


@pytest.mark.parametrize(
    ("old", "sentence"),
    [
        ("def", "old_string appears 2 times (lines 1, 5). Add surrounding lines"),
        ("retrun 1", "The most similar line is 2: return 1"),
        ("    return 2", "Line 6 differs only in white space"),
        ("1\tdef one():", "It seems to begin with line numbers"),
        ("def one():\n    return 7", "It begins like line 1, but then the file has a similar line: return 1"),
        ("def one():\n\n    return 1", "It begins like line 1, but blank lines or the end differ"),
        ("entirely different words", "nor anything similar"),
        ("\n\n\n\n\n", "was not found in the file"),
    ],
)
def test_what_is_not_there_once_is_explained(old: str, sentence: str) -> None:
    planned = plan(FILE, old, "x")
    assert isinstance(planned, EditRefusal)
    assert sentence in planned.sentence


def test_a_text_in_a_hundred_places_names_ten_of_them() -> None:
    planned = plan("x\n" * 100, "x", "y")
    assert isinstance(planned, EditRefusal)
    assert "100 times (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)" in planned.sentence


def test_looking_for_something_similar_in_a_large_file_does_not_take_long() -> None:
    large = "".join(f"value_{number} = compute({number})\n" for number in range(200_000))
    planned = plan(large, "value_5 = computed(5)", "x")
    assert isinstance(planned, EditRefusal)
    assert "most similar line is" in planned.sentence
