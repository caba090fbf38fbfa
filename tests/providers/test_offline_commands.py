"""The commands of the offline chat become tool calls, through the same path as those of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lamina.agent.agent import Agent
from lamina.providers.offline.chat import NOTED, answer

TOOLS = [{"name": name} for name in ("Read", "Write", "Edit", "Grep", "Glob", "Bash", "TodoWrite")]


def asked(prompt: str, tools: list[dict[str, Any]] = TOOLS) -> list[dict[str, Any]]:
    return answer({"tools": tools, "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}]})


@pytest.mark.spec("O1")
@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("read src/a.py", "Read", {"file_path": "src/a.py"}),
        ("读 src/a.py", "Read", {"file_path": "src/a.py"}),
        ("list", "Glob", {"pattern": "*"}),
        ("List src/**/*.py", "Glob", {"pattern": "src/**/*.py"}),
        ("search for def main in src", "Grep", {"pattern": "def main", "output_mode": "content", "-n": True, "path": "src"}),
        ("search TODO", "Grep", {"pattern": "TODO", "output_mode": "content", "-n": True}),
        ("run make test && echo ok", "Bash", {"command": "make test && echo ok"}),
        ("show me src/a.py", "Read", {"file_path": "src/a.py"}),
        ("读一下 README.md", "Read", {"file_path": "README.md"}),
        ("what files are here?", "Glob", {"pattern": "**/*"}),
        ("列出文件", "Glob", {"pattern": "**/*"}),
        ("grep TODO", "Grep", {"pattern": "TODO", "output_mode": "content", "-n": True}),
        ("git log -3", "Bash", {"command": "git log -3"}),
        ("create a file notes.txt with hello", "Write", {"file_path": "notes.txt", "content": "hello\n"}),
        ("write notes.md: one\ntwo", "Write", {"file_path": "notes.md", "content": "one\ntwo\n"}),
        ('replace "a b" with "c" in x.py', "Read", {"file_path": "x.py"}),
        (
            "todo: one; two",
            "TodoWrite",
            {"todos": [{"content": c, "status": "pending", "activeForm": c} for c in ("one", "two")]},
        ),
    ],
)
def test_a_command_becomes_a_call(prompt: str, name: str, arguments: dict[str, Any]) -> None:
    [block] = asked(prompt)
    assert (block["type"], block["name"], block["input"]) == ("tool_use", name, arguments)


@pytest.mark.spec("O1")
@pytest.mark.parametrize(
    "prompt", ["I read a.py yesterday", "The list is long.", "reading is fun", "git is slow here", "ls is an alias of mine"]
)
def test_a_sentence_that_only_looks_like_a_command_is_no_command(prompt: str) -> None:
    assert asked(prompt) == [{"type": "text", "text": NOTED}]


def test_without_the_tool_there_is_no_command() -> None:
    assert asked("read a.py", tools=[])[0]["type"] == "text"


@pytest.mark.spec("O1")
def test_commands_work_on_real_files_through_the_whole_path(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    with Agent.open("offline", cwd=tmp_path, home=tmp_path / ".home", mode="accept-edits") as agent:
        assert agent.run('replace "x = 1" with "x = 2" in a.py').rounds == 3
        assert "x = 2" in agent.run("read a.py").text
        assert agent.run("read a.py").text == agent.run("read a.py").text
        assert agent.run("read missing.py").text.startswith("That did not work")
        assert agent.run("run touch made").text.startswith("That did not work: Not allowed")
    assert (tmp_path / "a.py").read_text() == "x = 2\n"
    assert not (tmp_path / "made").exists()


@pytest.mark.spec("O1")
def test_the_result_of_a_command_is_told_in_the_language_of_the_conversation(tmp_path: Path) -> None:
    with Agent.open("offline", cwd=tmp_path, home=tmp_path / ".home", mode="accept-edits") as agent:
        assert agent.run("write 说明.txt: 周四部署").text == "已写入 说明.txt。"
        agent.run("我们周四部署。")
        assert agent.run("read missing.py").text == "没有成功：missing.py 不存在。"
        assert agent.run("write a.txt: x").text == "已写入 a.txt。"
        assert agent.run("run touch made").text == "这里不允许这样做。"
        assert agent.run("search nothing in a.txt").text == "没有找到。"


@pytest.mark.spec("O1")
def test_questions_are_answered_from_instruction_files_too(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("# Tests\n\nIntegration tests run with tox.\n")
    with Agent.open("offline", cwd=tmp_path, home=tmp_path / ".home") as agent:
        assert agent.run("How do integration tests run?").text == "Your instructions say: Integration tests run with tox."
