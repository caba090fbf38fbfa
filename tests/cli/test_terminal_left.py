"""A turn interrupted by a closed terminal: on resume the user sees it and can continue it or not."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from .at_terminal import Terminal


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return place


@pytest.mark.exhaustive
def test_a_turn_that_was_cut_off_is_told_and_carried_on(work: Path) -> None:
    with Terminal("--permission-mode", "all", cwd=work) as terminal:
        terminal.prompt()
        terminal.say("run echo begun; sleep 60")
        terminal.expect("  begun")
        terminal.close()
        terminal.wait()
    with Terminal("--continue", cwd=work) as terminal:
        assert "The last turn was not finished. Use /retry" in terminal.prompt()
        terminal.say("/retry")
        terminal.expect("begun")
        terminal.prompt()
        terminal.press("\x04")
        assert terminal.wait() == 0
    with Terminal("--continue", cwd=work) as terminal:
        assert "not finished" not in terminal.prompt()


def test_the_line_of_a_long_command_keeps_its_time_and_how_to_stop_it(work: Path) -> None:
    command = "until [ -e go ]; do sleep 0.02; done; echo " + "word " * 20
    with Terminal("--permission-mode", "all", cwd=work, columns=60) as terminal:
        terminal.expect("mode all")
        terminal.say(f"run {command}")
        # While the model is asked, the line tells of that; then of the command.
        shown = terminal.expect_match(re.compile("until .*… · .*Ctrl-C stops")).split("\n")[-1]
        assert len(shown.strip()) < 60
        (work / "go").touch()
        terminal.expect("✓ Bash")
