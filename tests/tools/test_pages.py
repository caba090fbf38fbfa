"""Pages: all lines of a file, in bounded memory, however long the file and its lines are."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.tools.read import LINE_CHARACTERS, TextPage, as_utf8, read_page

TEXT = st.text(st.sampled_from("ab\n\r\t é€𝄞"), max_size=60)


def page(parts: Iterable[bytes], *, first: int = 1, lines: int = 2_000, size: int = 100_000, to_the_end: bool = True) -> TextPage:
    return read_page(parts, first=first, most_lines=lines, most_bytes=size, to_the_end=to_the_end)


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def lines_of(text: str) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if text and not text.endswith("\n") else lines[:-1]


@given(TEXT, st.integers(1, 9), st.integers(1, 5), st.integers(1, 30))
def test_the_pages_of_a_file_together_are_all_its_lines(text: str, chunk: int, lines: int, size: int) -> None:
    found, first = list[str](), 1
    while True:
        got = page(pieces(text.encode(), chunk), first=first, lines=lines, size=size)
        assert got.total == len(lines_of(text))
        found += got.lines
        first += len(got.lines)
        if not got.more:
            break
        assert got.lines
    assert found == lines_of(text)


@given(TEXT, st.integers(1, 9), st.integers(1, 9))
def test_reading_stops_behind_a_page_when_the_rest_is_not_asked_for(text: str, chunk: int, first: int) -> None:
    whole = page(pieces(text.encode(), chunk), first=first, lines=2)
    short = page(pieces(text.encode(), chunk), first=first, lines=2, to_the_end=False)
    assert short.lines == whole.lines
    assert short.more == whole.more
    assert short.ended or short.more


@given(TEXT, st.sampled_from(["utf-16-le", "utf-16-be"]), st.integers(1, 9))
def test_other_encodings_give_the_same_lines(text: str, codec: str, chunk: int) -> None:
    assert page(as_utf8(pieces(text.encode(codec), chunk), codec)).lines == lines_of(text)


def test_a_long_line_is_cut_and_says_by_how_much() -> None:
    got = page(pieces(b"x" * 10_000_000 + b"\nnext\n", 1 << 16))
    assert got.lines == ["x" * LINE_CHARACTERS + "… [9,998,000 more bytes in this line]", "next"]
    assert got.cut == 1


def test_a_cut_through_a_character_is_no_broken_encoding() -> None:
    got = page(["𝄞".encode() * 5_000])
    assert not got.replaced
    assert got.lines[0].startswith("𝄞" * LINE_CHARACTERS + "…")


@pytest.mark.parametrize("data", [b"caf\xe9\n", b"\xff" * 3, b"x\xc3"])
def test_bytes_that_are_no_utf_8_are_replaced_and_said(data: bytes) -> None:
    got = page([data])
    assert got.replaced
    assert "\ufffd" in got.lines[0]


def test_a_full_page_knows_at_once_that_a_line_of_gigabytes_follows() -> None:
    def parts() -> Iterable[bytes]:
        yield b"one\n"
        yield b"x"
        pytest.fail("read on behind the page")

    got = page(parts(), lines=1, to_the_end=False)
    assert got.more
    assert not got.ended
