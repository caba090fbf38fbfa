"""What a running turn shows: the rendered answer, the status line, retries, and what is remembered meanwhile."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest

from lamina.testing import MessagesServer

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from .at_terminal import Terminal
from .running import lamina

MODEL = ("--model", "anthropic:claude-sonnet-5-5")


@pytest.fixture
def keyed(messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MessagesServer:
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    return messages_server


@pytest.mark.spec("T7")
def test_an_answer_is_rendered_after_a_retry_that_is_shown(keyed: MessagesServer, tmp_path: Path) -> None:
    go = threading.Event()
    keyed.fail(529, kind="overloaded_error", message="Overloaded")
    keyed.reply(text="## Result\n\n- one\n- **two**\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", delay=go)
    with Terminal(*MODEL, cwd=tmp_path) as terminal:
        terminal.prompt()
        terminal.say("hello")
        terminal.expect("Retry 1 of 4 in ")
        assert re.search(r"Ctrl-C stops\s+context 100% left [^\n]*background: none", terminal.expect("background: none"))
        go.set()
        for block in ("Result\n", " • one\n", " • two\n", " a  b\n ────\n 1  2\n"):  # the progress line may stand between them
            terminal.expect(block)
        terminal.prompt()
        terminal.say("/exit")
        assert terminal.wait() == 0


@pytest.mark.exhaustive
def test_a_dumb_terminal_gets_the_text_of_the_answer(keyed: MessagesServer, tmp_path: Path) -> None:
    keyed.reply(text="## Result\n\n- **two**\n")
    with Terminal(*MODEL, cwd=tmp_path, TERM="dumb") as terminal:
        terminal.expect("> ")
        terminal.say("hello")
        terminal.expect("## Result\n\n- **two**\n")
        terminal.expect("> ")
        terminal.say("/exit")
        assert terminal.wait() == 0
        assert b"\x1b" not in terminal.written


@pytest.mark.exhaustive
def test_a_retry_of_a_prompt_is_a_notice_and_an_event(keyed: MessagesServer, tmp_path: Path) -> None:
    keyed.fail(529, kind="overloaded_error", message="Overloaded")
    done = lamina("-p", "hello", *MODEL, "--output-format", "stream-json", cwd=tmp_path)
    assert "Retry 1 of 4 in " in done.stderr
    assert '"subtype": "api_retry", ' in done.stdout


@pytest.mark.spec("X7")
def test_what_is_remembered_is_told_above_the_prompt_while_the_user_types(tmp_path: Path) -> None:
    with Terminal(cwd=tmp_path) as terminal:
        terminal.prompt()
        terminal.say("I'm a data engineer and new to Rust.")
        terminal.prompt()
        terminal.press("half a sent")
        terminal.expect("Remembered: ")
        terminal.expect("half a sent")
        terminal.press("ence\r")
        terminal.prompt()
        assert "half a sentence" in terminal.text


# Poor terminals


@pytest.mark.parametrize("columns", [40, 23])
def test_wide_characters_fit_a_narrow_terminal(columns: int, tmp_path: Path) -> None:
    with Terminal("--permission-mode", "all", cwd=tmp_path, columns=columns) as terminal:
        terminal.expect("to leave" if columns > 22 else "leave")
        terminal.say("Remember: 部署只在星期二进行，因为星期五没有人值班")
        terminal.expect("记住了")
        terminal.say("/memory")
        terminal.expect("lamina memory")
        terminal.say("/exit")
        assert terminal.wait() == 0


@pytest.mark.exhaustive
def test_an_encoding_without_the_characters_costs_the_characters_alone(keyed: MessagesServer, tmp_path: Path) -> None:
    keyed.reply(text="- 中文 item\n")
    with Terminal(
        *MODEL, cwd=tmp_path, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii"
    ) as terminal:
        terminal.expect("Ctrl-D to leave")
        terminal.say("hello")
        terminal.expect("* ?? item")
        terminal.say("/exit")
        assert terminal.wait() == 0
        assert terminal.written.isascii()
