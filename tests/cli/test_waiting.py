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
