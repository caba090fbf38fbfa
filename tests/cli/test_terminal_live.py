"""The last output lines of a running command are shown below the progress line and removed when it ends."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from lamina.cli.output import StdoutSink
from lamina.cli.signals import StopRequest
from lamina.cli.terminal.screen import MOST_BELOW, Screen
from lamina.cli.terminal.turn_display import TAIL, TurnDisplay

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from .at_terminal import Terminal
from .running import PATIENCE


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return place


def test_the_last_lines_are_shown_while_a_command_runs_and_are_gone_behind_it(work: Path) -> None:
    command = "for n in 1 2 3 4 5 6 7 8; do echo step $n; done; until [ -e go ]; do sleep 0.02; done; echo all done"
    with Terminal("--permission-mode", "all", cwd=work) as terminal:
        terminal.prompt()
        terminal.say(f"run {command}")
        shown = terminal.expect("step 8")
        lines = [line.strip() for line in shown.split("\n") if line.strip().startswith("step")]
        assert lines == [f"step {number}" for number in range(9 - MOST_BELOW, 9)]
        (work / "go").touch()
        terminal.expect("all done")
        terminal.prompt()
        assert "\x1b[J" in terminal.written.decode()


def test_a_terminal_that_cannot_move_its_cursor_gets_no_passing_lines(work: Path) -> None:
    with Terminal("--permission-mode", "all", cwd=work, TERM="dumb") as terminal:
        terminal.expect(">")
        terminal.say("run for n in 1 2; do echo line $n; sleep 0.5; done")
        shown = terminal.expect("✓ Bash")
        assert "line 1" not in shown
        assert "\x1b[" not in terminal.written.decode()


class WatchedScreen(Screen):
    """Keeps what is to be seen below."""

    def __init__(self) -> None:
        super().__init__(StdoutSink(StopRequest()))
        self.moves = False
        self.seen: list[list[str]] = []

    def below(self, lines: Any) -> None:
        super().below(lines)
        self.seen.append(list(lines))


def call(call_id: str) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": "Bash", "input": {"command": "make"}}


def output(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "tool_output", "id": call_id, "text": text}


def test_pieces_make_lines_and_each_call_has_its_own(tmp_path: Path) -> None:
    screen = WatchedScreen()
    telling = TurnDisplay(screen, tmp_path)
    for event in (
        call("a"),
        call("b"),
        output("a", "one\ntw"),
        output("b", "other\n"),
        output("a", "o\n\n"),
        output("x", "nobody's"),
    ):
        telling.event(event)
    assert screen.seen == [["one", "tw"], ["other"], ["one", "two"]]


def test_what_is_kept_of_an_output_is_bounded(tmp_path: Path) -> None:
    screen = WatchedScreen()
    telling = TurnDisplay(screen, tmp_path)
    telling.event(call("a"))
    for _ in range(100):
        telling.event(output("a", "x" * 1_000))
    assert len(screen.seen[-1][-1]) == TAIL


class KeptSink(StdoutSink):
    """Keeps what is to be written."""

    def __init__(self) -> None:
        super().__init__(StopRequest())
        self.written = ""
        self.news = threading.Event()

    def write(self, text: str) -> None:
        self.written += text
        self.news.set()


def test_control_characters_of_an_output_are_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("lamina.cli.terminal.screen.PATIENCE", 0.0)
    screen = Screen(sink := KeptSink())
    screen.below(["\x1b[2Jgone?", "a" * 500])
    screen.wait("it runs")
    assert sink.news.wait(PATIENCE)
    drawing = next(thread for thread in threading.enumerate() if thread.name == "lamina-screen")
    screen.calm()
    drawing.join(PATIENCE)
    assert not drawing.is_alive()
    assert "gone?" in sink.written
    assert "\x1b[2J" not in sink.written
    assert all(len(line) < 200 for line in re.sub(r"\r?\x1b\[\d*[KJA]", "", sink.written).split("\n"))
