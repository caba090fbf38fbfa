"""Undoing a turn removes the user's last message and everything after it, reports that, and offers to undo its memories."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.session.plain import Session

from lamina.agent.agent import Agent
from lamina.cli.terminal.commands import describe_turn
from lamina.core.errors import UsageError
from lamina.memory.memory import Memory
from lamina.tools.permissions.request import Mode


def open_agent(tmp_path: Path) -> Agent:
    return Agent.open("offline", cwd=tmp_path, home=tmp_path / "home", mode="all")


def names(tmp_path: Path) -> set[str]:
    with Memory.open(tmp_path, home=tmp_path / "home") as memory:
        return {header.name for header in memory.headers()}


def test_calls_and_results_of_the_turn_leave_with_it(tmp_path: Path) -> None:
    with open_agent(tmp_path) as agent:
        agent.run("Remember: our tests run against Postgres.")
        before = agent.session.messages
        agent.run("write notes.txt: one")
        removed = agent.session.undo_turn()
        assert removed.calls == ("Write",)
        assert removed.memories == ()
        assert describe_turn(removed).endswith("Changed files stay changed.")
        assert agent.session.messages == before
        assert (tmp_path / "notes.txt").exists()
        assert "Postgres" in agent.run("What do our tests run against?").text
        path = agent.session.path
    with Session("offline", cwd=tmp_path, home=tmp_path / "home", resume=path) as again:
        assert "notes.txt" not in str(again.messages)


@pytest.mark.parametrize(
    ("mode", "words", "left"),
    [
        ("all", "write notes.txt: we deploy on Thursdays", " Changed files stay changed."),
        ("read-only", "write notes.txt: one", ""),
        ("all", "run ls", ""),
        ("all", "run touch notes.txt", " What its commands changed stays changed."),
        ("all", "run touch notes.txt; false", " What its commands changed stays changed."),
        ("ask", "run touch notes.txt", ""),
        ("all", "Remember: we deploy on Thursdays.", ""),
    ],
)
def test_undo_names_what_stays_changed_only_if_something_may_have_changed(
    tmp_path: Path, mode: Mode, words: str, left: str
) -> None:
    with Agent.open("offline", cwd=tmp_path, home=tmp_path / "home", mode=mode) as agent:
        agent.run(words)
        turn = agent.session.undo_turn()
        assert turn.calls
        assert describe_turn(turn).endswith(f" tool call.{left}")


def test_a_turn_that_got_no_answer_is_taken_back_too(tmp_path: Path) -> None:
    with Session("offline", cwd=tmp_path, in_memory=True) as session:
        session.add_user("a question " * 20)
        told = describe_turn(session.undo_turn())
        assert told.startswith('Undid "a question a question')
        assert told.endswith('…", no answer.')
        with pytest.raises(UsageError, match="nothing to undo"):
            session.undo_turn()
        assert session.messages == []


def test_the_first_reminder_stays_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("Use tabs.")
    with open_agent(tmp_path) as agent:
        first = str(agent.session.messages)
        assert "Use tabs." in first
        agent.run("hello")
        agent.session.undo_turn()
        assert str(agent.session.messages) == first


@pytest.mark.spec("B4")
def test_an_undone_turn_names_its_memories_and_they_are_taken_back_on_request(tmp_path: Path) -> None:
    with open_agent(tmp_path) as agent:
        agent.run("Remember: we deploy on Thursdays.")
        agent.run("Remember these:\n- we deploy on Tuesdays\n- Anna owns billing")
        turn = agent.session.undo_turn()
        assert {(change.name, change.did) for change in turn.memories} == {
            ("deploy-tuesdays", "changed"),
            ("anna-owns-billing", "saved"),
        }
        assert names(tmp_path) == {"deploy-tuesdays", "anna-owns-billing"}, "nothing happens without a yes"
        assert "stay changed" not in describe_turn(turn)
        done = agent.session.undo_memories(turn)
        assert {change.name for change in done.back} == {"deploy-tuesdays", "anna-owns-billing"}
        assert done.left == ()
        assert names(tmp_path) == {"deploy-thursdays"}
        assert "Thursdays" in agent.run("When do we deploy?").text
        turn = agent.session.undo_turn()
        assert turn.memories == ()


@pytest.mark.spec("B4")
def test_a_memory_that_was_removed_comes_back_and_one_that_was_changed_since_stays(tmp_path: Path) -> None:
    with open_agent(tmp_path) as agent:
        agent.run("Remember: we deploy on Thursdays.")
        agent.run("Forget deploy-thursdays")
        assert names(tmp_path) == set()
        turn = agent.session.undo_turn()
        assert [change.did for change in turn.memories] == ["removed"]
        agent.session.undo_memories(turn)
        assert names(tmp_path) == {"deploy-thursdays"}
        turn = agent.session.undo_turn()
        assert [change.problem for change in turn.memories] == [""]
        with Memory.open(tmp_path, home=tmp_path / "home") as memory:
            memory.save("deploy-thursdays", description="Deploys need a friend", body="By hand.")
        done = agent.session.undo_memories(turn)
        assert done.back == ()
        assert done.sentences == ("deploy-thursdays was changed since.",)
        assert names(tmp_path) == {"deploy-thursdays"}


@pytest.mark.spec("B4")
def test_a_memory_kept_after_an_undo_is_not_denied(tmp_path: Path) -> None:
    with open_agent(tmp_path) as agent:
        agent.run("Remember: we deploy on Thursdays.")
        agent.session.undo_turn()
        assert "deploy-thursdays" in agent.run("What do you remember?").text


@pytest.mark.spec("S6", "B4")
def test_a_memory_renamed_twice_in_one_conversation_is_one_memory(tmp_path: Path) -> None:
    with open_agent(tmp_path) as agent:
        for day in ("Thursdays", "Tuesdays", "Mondays"):
            agent.run(f"Remember: we deploy on {day}.")
            assert names(tmp_path) == {f"deploy-{day.lower()}"}
            assert day in agent.run("When do we deploy?").text
        agent.session.undo_turn()
        turn = agent.session.undo_turn()
        assert [change.name for change in agent.session.undo_memories(turn).back] == ["deploy-mondays"]
        assert names(tmp_path) == {"deploy-tuesdays"}
