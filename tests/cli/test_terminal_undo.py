"""Undoing a turn removes the user's last message and everything after it, and reports that in a sentence."""

from __future__ import annotations

from pathlib import Path

from tests.session.plain import Session

from lamina.agent.agent import Agent
from lamina.cli.terminal.commands import undo_turn
from lamina.session.base import working


def open_agent(tmp_path: Path) -> Agent:
    return Agent.open("offline", cwd=tmp_path, home=tmp_path / "home", mode="all")


def test_calls_and_results_of_the_turn_leave_with_it(tmp_path: Path) -> None:
    with open_agent(tmp_path) as agent:
        agent.run("Remember: our tests run against Postgres.")
        before = agent.session.messages
        agent.run("write notes.txt: one")
        with working(agent.session) as conversation:
            removed = undo_turn(conversation)
        assert removed is not None
        assert removed.calls == ("Write",)
        assert removed.sentence().endswith("Changed files stay changed.")
        assert agent.session.messages == before
        assert (tmp_path / "notes.txt").exists()
        assert "Postgres" in agent.run("What do our tests run against?").text
        path = agent.session.path
    with Session("offline", cwd=tmp_path, home=tmp_path / "home", resume=path) as again:
        assert "notes.txt" not in str(again.messages)


def test_a_turn_that_got_no_answer_is_taken_back_too(tmp_path: Path) -> None:
    with Session("offline", cwd=tmp_path, in_memory=True) as session:
        session.add_user("a question " * 20)
        with working(session) as conversation:
            removed = undo_turn(conversation)
            assert removed is not None
            assert removed.sentence().startswith('Undid "a question a question')
            assert removed.sentence().endswith('…", no answer.')
            assert undo_turn(conversation) is None
        assert session.messages == []


def test_the_first_reminder_stays_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("Use tabs.")
    with open_agent(tmp_path) as agent:
        first = str(agent.session.messages)
        assert "Use tabs." in first
        agent.run("hello")
        with working(agent.session) as conversation:
            assert undo_turn(conversation) is not None
        assert str(agent.session.messages) == first
