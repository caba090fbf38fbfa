"""Instruction files in a conversation: once at the start, nested ones after the result that triggers them, and each once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.agent.agent import Agent
from lamina.core.settings import Settings
from lamina.testing import MessagesServer

from .agent_helpers import accepted, contexts, lay_out, reminders, results, texts

Open = Callable[..., Agent]


def reads(server: MessagesServer, *paths: str) -> None:
    """Have the model read these, one per answer, and end the turn."""
    for path in paths:
        server.reply(tool_use=("Read", {"file_path": path}))
    server.reply(text="Seen.")


@pytest.mark.spec("I1", "I4")
def test_the_files_stand_once_before_the_first_word_and_stay_as_they_were(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    home = Path(os.environ["LAMINA_HOME"])
    lay_out(home, {"CLAUDE.md": "I like short answers.\n"})
    lay_out(project, {"CLAUDE.local.md": "My port is 8081.\n", ".claude/rules/a.md": "Tests live in tests/.\n"})
    agent = opened()
    agent.run("One.")
    (project / "CLAUDE.md").write_text("Changed in mid-session.\n")
    agent.run("Two.")
    first, second = accepted(messages_server)
    [reminder] = reminders(second)
    assert first.messages[0]["content"][0]["text"] == reminder
    order = ["I like short answers.", "two spaces after a full stop", "Tests live in tests/.", "My port is 8081."]
    places = [reminder.index(words) for words in order]
    assert places == sorted(places)
    assert "Changed in mid-session" not in str(second.messages)
    assert contexts(agent) == ["instructions"]


@pytest.mark.spec("I4")
def test_the_reminder_holds_the_state_of_the_repository_and_the_date(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    lay_out(project, {".git/HEAD": "ref: refs/heads/topic\n", ".git/config": "[core]\n\trepositoryformatversion = 0\n"})
    (project / ".git" / "objects").mkdir()
    (project / ".git" / "refs").mkdir()
    opened().run("Hello.")
    [reminder] = reminders(messages_server.requests[0])
    assert "# Git status" in reminder
    assert "topic" in reminder
    assert "# Date\nToday is " in reminder


def test_a_nested_file_comes_behind_the_result_that_calls_for_it_and_once(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    lay_out(
        project,
        {
            "sub/CLAUDE.md": "Here we use tabs.\n",
            "sub/deep/AGENTS.md": "No imports.\n",
            "sub/a.py": "a\n",
            "sub/deep/b.py": "b\n",
        },
    )
    reads(messages_server, "sub/a.py", "sub/a.py", "sub/deep/b.py", "calc.py")
    agent = opened()
    agent.run("Read them all.")
    *_, last = accepted(messages_server)
    assert [words.count("Here we use tabs.") for words in reminders(last)] == [0, 1, 0]
    assert [words.count("No imports.") for words in reminders(last)] == [0, 0, 1]
    second = messages_server.requests[1].messages[-1]["content"]
    assert [block["type"] for block in second] == ["tool_result", "text"]
    assert "Here we use tabs." in second[1]["text"]
    reads(messages_server, "sub/a.py")
    agent.run("Once more.")
    assert contexts(agent) == ["instructions", "nested_memory", "nested_memory"]


def test_several_files_read_at_once_bring_each_nested_file_once(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    lay_out(project, {"sub/CLAUDE.md": "Here we use tabs.\n", **{f"sub/{name}.py": f"{name}\n" for name in "abcdef"}})
    messages_server.reply(tool_use=[("Read", {"file_path": f"sub/{name}.py"}) for name in "abcdef"])
    messages_server.reply(text="Seen.")
    opened().run("Read them.")
    *_, last = accepted(messages_server)
    content = last.messages[-1]["content"]
    assert [block["type"] for block in content] == ["tool_result"] * 6 + ["text"]


def test_a_resumed_session_does_not_repeat_what_stands_in_it(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    lay_out(project, {"sub/CLAUDE.md": "Here we use tabs.\n", "sub/a.py": "a\n"})
    reads(messages_server, "sub/a.py")
    agent = opened(session_id="one")
    agent.run("Read it.")
    agent.close()
    reads(messages_server, "sub/a.py")
    again = opened(resume="one")
    again.run("Read it again.")
    assert contexts(again) == ["instructions", "nested_memory"]
    assert len(reminders(accepted(messages_server)[-1])) == 2


def test_rules_for_some_files_come_with_the_first_of_them(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    rule = '---\npaths: ["**/*.sql"]\n---\nName every constraint.\n'
    lay_out(project, {".claude/rules/sql.md": rule, "db/schema.sql": "create table t ();\n"})
    reads(messages_server, "calc.py", "db/schema.sql")
    opened().run("Read both.")
    first, second, third = accepted(messages_server)
    assert "Name every constraint." not in str(second.messages)
    assert "Name every constraint." in texts(third.messages[-1])[1]
    assert "Name every constraint." not in str(first.messages)


def test_a_read_that_fails_or_is_refused_brings_nothing(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    lay_out(project, {"sub/CLAUDE.md": "Here we use tabs.\n", "sub/held.txt": "back\n"})
    reads(messages_server, "sub/missing.py", "sub/held.txt")
    agent = opened(settings=Settings(permissions={"deny": ["Read(sub/held.txt)"]}))
    agent.run("Read them.")
    assert contexts(agent) == ["instructions"]
    assert all(words.startswith("!") for received in messages_server.requests[1:] for words in results(received).values())


@pytest.mark.spec("I2")
def test_includes_that_loop_are_cut_and_those_outside_wait_for_a_yes(
    opened: Open, messages_server: MessagesServer, project: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("Words from outside.\n")
    lay_out(
        project,
        {"CLAUDE.md": "@a.md\n@../outside.md\n@/etc/passwd\n", "a.md": "Ay.\n@b.md\n", "b.md": "Be.\n@a.md\n@CLAUDE.md\n"},
    )
    agent = opened()
    agent.run("Hello.")
    [reminder] = reminders(messages_server.requests[0])
    assert reminder.count("Ay.") == reminder.count("Be.") == 1
    assert "Words from outside." not in reminder
    assert "root:" not in reminder
    assert [waiting.real_path for waiting in agent.reminders.instructions.pending] == [outside.resolve()]
    assert any(str(outside.resolve()) in notice for notice in agent.session.notices)
    assert any("/etc/passwd" in notice for notice in agent.session.notices)


@pytest.mark.spec("I2")
def test_an_include_that_was_approved_is_loaded(
    opened: Open, messages_server: MessagesServer, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside.md").write_text("Words from outside.\n")
    (project / "CLAUDE.md").write_text("@../outside.md\n")
    opened(approved=lambda real: real == (tmp_path / "outside.md").resolve()).run("Hello.")
    assert "Words from outside." in reminders(messages_server.requests[0])[0]


def test_the_same_finding_is_told_once_however_often_a_file_is_read(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    lay_out(project, {"sub/CLAUDE.md": "@missing.md\nTabs.\n", "sub/a.py": "a\n", "sub/b.py": "b\n"})
    reads(messages_server, "sub/a.py", "sub/b.py", "sub/a.py")
    agent = opened()
    agent.run("Read them.")
    assert sum("missing.md" in notice for notice in agent.session.notices) == 1


@pytest.mark.spec("I3")
def test_a_file_that_is_too_long_is_cut_and_told(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    (project / "CLAUDE.md").write_text("A line of instructions.\n" * 5_000)
    agent = opened()
    agent.run("Hello.")
    assert len(reminders(messages_server.requests[0])[0]) < 45_000
    assert any("characters; only 39,9" in notice for notice in agent.session.notices)


def test_excluded_files_are_left_out(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    lay_out(project, {"sub/CLAUDE.md": "Here we use tabs.\n", "sub/a.py": "a\n"})
    reads(messages_server, "sub/a.py")
    agent = opened(settings=Settings(instruction_excludes=("**/CLAUDE.md",)))
    agent.run("Read it.")
    assert "tabs" not in str(messages_server.requests[-1].messages)
    assert "two spaces" not in str(messages_server.requests[-1].messages)
