"""A progress line appears after a second on a terminal, and never elsewhere."""

from __future__ import annotations

import os
import sys
from io import StringIO

import pytest

from lamina.cli import console as room
from lamina.cli.console import ProgressLine, waiting

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)


def test_a_long_wait_is_told_and_the_line_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    import pty

    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.0)
    with open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        written = b""
        with waiting("Looking"):
            while b"Ctrl-C stops" not in written:
                written += os.read(ours, 4_096)
        while not written.endswith(b"\r\x1b[K"):
            written += os.read(ours, 4_096)
        monkeypatch.undo()
    os.close(ours)
    assert b"Looking, " in written


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_into_a_file_nothing_is_written(term: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.0)
    with waiting("Looking"):
        pass
    assert capsys.readouterr().err == ""


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_what_takes_long_says_what_it_is_at_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with ProgressLine() as progress:
        progress.show("quick")
    assert terminal.getvalue() == ""
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(room, "TICK", 0.0)
    with ProgressLine(" …") as progress:
        progress.show("reading session 1 of 2")
        progress.show("short")
    assert terminal.getvalue() == "\r\x1b[Kreading session 1 of 2 …\r\x1b[Kshort …\r\x1b[K"


def test_a_line_that_stays_takes_the_place_of_the_progress_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.0)
    with ProgressLine(" …") as progress:
        progress.say("first")
        progress.show("tidying")
        progress.say("second")
    assert terminal.getvalue() == "first\n\r\x1b[Ktidying …\r\x1b[Ksecond\n\r\x1b[K"


@pytest.mark.parametrize(
    ("width", "shown"),
    [("80", "session 1 of 2: a-long-name.jsonl, call 3 of 9 …"), ("30", "session 1 of 2: a-long-name.…"), ("11", "会话会话…")],
)
def test_a_progress_line_never_needs_a_second_line(width: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.0)
    with ProgressLine(" …") as progress:
        progress.show("会话会话会话" if width == "11" else "session 1 of 2: a-long-name.jsonl, call 3 of 9")
    assert terminal.getvalue() == f"\r\x1b[K{shown}\r\x1b[K"


def test_a_message_on_a_narrow_terminal_breaks_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    room.notice("No moved project matches this directory. Name it with --from; --list shows the known projects.")
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) < 40
    assert " ".join(lines).endswith("; --list shows the known projects.")


def test_a_message_in_a_file_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    room.notice("one two three four five six seven eight nine ten")
    assert capsys.readouterr().err == "lamina: one two three four five six seven eight nine ten\n"


def test_of_two_nested_lines_the_inner_one_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(room, "TICK", 0.0)
    with ProgressLine("") as outer:
        with ProgressLine("") as inner:
            outer.show("outer")
            inner.show("inner")
        outer.show("outer again")
    assert terminal.getvalue() == "\r\x1b[Kinner\r\x1b[K\r\x1b[Kouter again\r\x1b[K"


def test_a_terminal_that_cannot_move_its_cursor_gets_full_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr(room, "QUIET_SECONDS", 0.0)
    with ProgressLine() as progress:
        progress.show("Looking, 1 s")
        progress.show("Looking, 2 s")
    assert terminal.getvalue() == "lamina: Looking, 1 s\n"
