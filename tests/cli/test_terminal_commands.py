"""Slash commands about memory, search and cost, and the first chat in a new home."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.memory.memory import Memory

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from .at_terminal import Terminal


def test_memory_is_steered_from_the_chat(tmp_path: Path) -> None:
    with Terminal(cwd=tmp_path, LAMINA_HOME=str(tmp_path / "new")) as chat:
        first = chat.prompt()
        assert "Welcome. Lamina is a chat that remembers" in first
        assert f"plain files in {tmp_path / 'new'}. " in first, "the home that is used, not the usual one"
        chat.say("/remember deploys happen on Tuesdays")
        chat.expect("Saved memory: deploys-happen-tuesdays.")
        chat.prompt()
        chat.say("/re")
        chat.expect("Did you mean /resume or /remember or /remove or /retry?")
        chat.say("/se deploys Tuesdays")
        chat.expect("deploys happen on Tuesdays")
        chat.prompt()
        chat.say("/cost")
        assert "$0.0000" in chat.prompt()
        chat.say("/remove nothing-like-it")
        chat.expect("Memory 'nothing-like-it' not found. Use /memory to list them.")
        chat.say("/forget Tuesdays")
        chat.expect("Remove it permanently?")
        chat.say("y")
        chat.expect("Unfinished. Run `lamina forget --resume` to finish it.")
        chat.prompt()
        chat.press("\x04")
        assert chat.wait() == 0
    with Memory.open(tmp_path, home=tmp_path / "new") as memory:
        assert memory.headers() == []
        assert memory.log() == []
    with Terminal(cwd=tmp_path, LAMINA_HOME=str(tmp_path / "new")) as chat:
        assert "Welcome" not in chat.prompt()


def test_what_is_removed_in_the_chat_can_be_restored(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.save("deploys", type="project", description="Deploys happen on Tuesdays", body="With people on call.")
    with Terminal(cwd=tmp_path, columns=40) as chat:
        assert "\nCtrl-D to leave" in chat.expect("mode ask")  # wrapped between words
        chat.say("/remove deploys")
        chat.expect("to the trash.")
        chat.expect("mode ask")
    with Memory.open(tmp_path) as memory:
        assert memory.headers() == []
        assert memory.restore("deploys").name == "deploys"


def test_remember_answers_in_the_language_of_its_text(tmp_path: Path) -> None:
    with Terminal(cwd=tmp_path) as chat:
        chat.prompt()
        chat.say("/remember 测试用真实数据库")
        chat.expect("已保存记忆：测试用真实数据库。")
        chat.expect("后台：无")


def test_a_command_at_a_question_means_no_and_then_runs(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.save("deploys", type="project", description="Deploys happen on Tuesdays", body="With people on call.")
    with Terminal(cwd=tmp_path) as chat:
        chat.prompt()
        chat.say("/forge Tuesdays")
        chat.expect("Unknown command /forge. Did you mean /forget?")
        chat.prompt()
        chat.say("/forget Tuesdays")
        chat.expect("'Tuesdays' would be deleted for good: ")
        chat.expect("Remove it permanently?")
        chat.say("/memory")
        chat.expect("deploys: [project] Deploys happen on Tuesdays")
        chat.prompt()
        chat.say("run touch made.txt")
        chat.expect("type what to do instead")
        chat.expect("  > ")
        chat.say("/permissions")
        chat.expect("Mode ask: ")
        chat.prompt()
        chat.say("/forget Tuesdays")
        chat.expect("Remove it permanently?")
        chat.say("!echo three$((3))")
        chat.expect("three3")
        chat.prompt()
        chat.press("\x04")
        assert chat.wait() == 0
    assert not (tmp_path / "made.txt").exists()
    with Memory.open(tmp_path) as memory:
        assert [header.name for header in memory.headers()] == ["deploys"]


def test_a_shell_command_is_run_and_shown(tmp_path: Path) -> None:
    with Terminal(cwd=tmp_path) as chat:
        chat.prompt()
        chat.say("!echo the port is $((8000 + 81)); touch made.txt")
        chat.expect("the port is 8081")
        chat.prompt()
        assert (tmp_path / "made.txt").exists(), "typing the command is the permission to run it"
        chat.say("!")
        chat.expect("Usage: !COMMAND")
        chat.prompt()
        chat.say("!exit 3")
        chat.expect("Exit code 3")
        chat.prompt()
        chat.say("/permissions read-only")
        chat.prompt()
        chat.say("!touch other.txt")
        chat.expect("Not allowed: ")
        chat.prompt()
        chat.press("\x04")
        assert chat.wait() == 0
    assert not (tmp_path / "other.txt").exists()
