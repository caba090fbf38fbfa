"""A command's output: plain text, bounded, with the whole text in a file if it is long."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.tools import capture
from lamina.tools.capture import HEAD_BYTES, INLINE_BYTES, LIVE_CHARACTERS, TAIL_BYTES, Capture, Cleaner


def cleaned(*parts: bytes) -> str:
    cleaner = Cleaner()
    return "".join(cleaner.feed(part) for part in parts) + cleaner.feed(b"", final=True)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain\ttext\n", "plain\ttext\n"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07x\x1b]8;;http://y\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        (b"\x1b(B\x1b=\x1bcx", "x"),
        (b"\x1bPdevice\x1b\\x", "x"),
        (b"10%\r20%\r\ndone\r\n", "10%\n20%\ndone\n"),
        (b"a\x00\x07\x08b\x7f\xc2\x9bc", "abc"),
        (b"caf\xe9 \xf0\x9d", "caf\ufffd \ufffd"),
        ("漢字".encode(), "漢字"),
        (b"cut \x1b[31", "cut [31"),
    ],
)
def test_control_sequences_and_broken_utf_8_do_not_get_through(data: bytes, text: str) -> None:
    assert cleaned(data) == text


@given(
    st.lists(
        st.sampled_from([b"\x1b[31m", b"\x1b]0;t\x07", b"\r\n", b"\r", "é漢".encode(), b"\xff", b"text", b"\x1b"]), max_size=12
    )
)
def test_where_the_output_is_cut_into_pieces_does_not_matter(parts: list[bytes]) -> None:
    whole = b"".join(parts)
    assert cleaned(*(whole[place : place + 1] for place in range(len(whole)))) == cleaned(whole)


def test_a_sequence_that_never_ends_does_not_swallow_the_rest() -> None:
    assert cleaned(b"\x1b]0;" + b"x" * 10_000, b"end").endswith("end")


def test_short_output_is_whole_and_makes_no_file(tmp_path: Path) -> None:
    taken = Capture(tmp_path)
    assert taken.take(b"x" * INLINE_BYTES)
    captured = taken.close()
    assert captured.text == "x" * INLINE_BYTES
    assert (captured.cut, captured.size, captured.lines, captured.file) == (0, INLINE_BYTES, 1, None)
    assert os.listdir(tmp_path) == []


def test_long_output_shows_both_ends_and_is_whole_in_a_private_file(tmp_path: Path) -> None:
    taken = Capture(tmp_path / "made")
    whole = "".join(f"{number} é\n" for number in range(20_000))
    data = whole.encode()
    for start in range(0, len(data), 1_000):
        assert taken.take(data[start : start + 1_000])
    captured = taken.close()
    taken.drop()
    assert captured.file is not None
    assert captured.file.read_text() == whole
    assert stat.S_IMODE(captured.file.stat().st_mode) == 0o600
    assert captured.lines == 20_000
    head, tail = captured.text.split(f"\n[… {captured.cut:,} of {len(data):,} bytes omitted …]\n")
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) + captured.cut == len(data)
    assert len(captured.text.encode()) <= INLINE_BYTES - 900
    assert HEAD_BYTES - 4 <= len(head.encode()) <= HEAD_BYTES
    assert TAIL_BYTES - 4 <= len(tail.encode()) <= TAIL_BYTES


def test_the_file_is_bounded_and_then_the_program_is_to_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "FILE_BYTES", 100_000)
    taken = Capture(tmp_path)
    assert taken.take(b"x" * 90_000)
    assert not taken.take(b"y" * 90_000)
    captured = taken.close()
    assert captured.file is not None
    assert captured.file.stat().st_size == 100_000


def test_output_of_control_characters_alone_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "FILE_BYTES", 100_000)
    taken = Capture(tmp_path)
    assert taken.take(b"\0" * 90_000)
    assert not taken.take(b"\0" * 10_000)
    assert taken.close().text == ""


def test_without_a_place_for_the_file_the_ends_are_shown_and_the_reason_said(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    taken = Capture(tmp_path / "f")
    assert taken.take(b"x" * 50_000)
    captured = taken.close()
    assert captured.file is None
    assert "not a directory" in captured.lost
    assert captured.cut > 0


def test_a_file_that_nobody_was_told_of_is_removed(tmp_path: Path) -> None:
    taken = Capture(tmp_path)
    taken.take(b"x" * 50_000)
    assert len(os.listdir(tmp_path)) == 1
    taken.drop()
    assert os.listdir(tmp_path) == []


def test_whoever_watches_sees_the_beginning_only(tmp_path: Path) -> None:
    seen = list[str]()
    taken = Capture(tmp_path, seen.append)
    for _ in range(LIVE_CHARACTERS // 1_000 + 10):
        taken.take(b"\x1b[1mx\x1b[0m" * 1_000)
    taken.close()
    assert "".join(seen) == "x" * LIVE_CHARACTERS
