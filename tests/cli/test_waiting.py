"""Whoever waits longer than a second on a terminal is told for what; whoever does not watch is told nothing."""

from __future__ import annotations

import os
import sys

import pytest

from lamina.cli import progress as room
from lamina.cli.progress import waiting

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
