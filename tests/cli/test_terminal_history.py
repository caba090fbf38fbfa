"""The history of typed lines: bounded, shared by chats, and never a reason to fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lamina.cli.terminal.input_line import LONGEST, MOST_LINES, ChatHistory, append_line, read_lines


def test_lines_are_kept_newest_first_for_the_next_chat(tmp_path: Path) -> None:
    for text in ("one", "two\nlines", "two\nlines", " not this", "three"):
        ChatHistory(tmp_path).store_string(text)
    assert list(ChatHistory(tmp_path).load_history_strings()) == ["three", "two\nlines", "one"]
    assert (tmp_path / "history").stat().st_mode & 0o777 == 0o600


def test_two_chats_lose_none_of_each_others_lines(tmp_path: Path) -> None:
    first, second = ChatHistory(tmp_path), ChatHistory(tmp_path)
    for number in range(5):
        first.store_string(f"first {number}")
        second.store_string(f"second {number}")
    assert len(list(ChatHistory(tmp_path).load_history_strings())) == 10


@pytest.mark.exhaustive
def test_the_file_stays_small(tmp_path: Path) -> None:
    content: bytes | None = None
    for number in range(MOST_LINES + 5):
        content = append_line(content, f"line {number}")
    assert len(read_lines(content)) == MOST_LINES
    assert read_lines(content)[-1] == f"line {MOST_LINES + 4}"
    history = ChatHistory(tmp_path)
    history.store_string("x" * (LONGEST + 1))
    assert not (tmp_path / "history").exists()


def test_a_damaged_file_costs_what_is_damaged() -> None:
    assert read_lines(b'"one"\n{"no": "text"}\n\xff\xfe\n[[[[\n"two"\n3\n') == ["one", "two"]
    assert json.loads(append_line(b"garbage", "new")) == "new"


def test_a_home_that_cannot_be_used_costs_the_history_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for home in (tmp_path / "file", None):
        history = ChatHistory(home)
        history.store_string("hello")
        assert list(history.load_history_strings()) == []
    (tmp_path / "history").mkdir()
    history = ChatHistory(tmp_path)
    history.store_string("hello")
    assert list(history.load_history_strings()) == []
