"""/memory shows which memories were recalled in this conversation, and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.agent.agent import Agent
from lamina.cli.terminal.memory_commands import RecalledMemory, find_recalled
from lamina.core.blocks import Wire
from lamina.core.records import Event
from lamina.disk.transcripts.store import read_transcript
from lamina.memory.memory import Memory
from lamina.session.base import working

if os.name == "nt":
    pytest.skip("needs a pseudo-terminal", allow_module_level=True)

from .at_terminal import Terminal

QUESTION = "What do our integration tests run against?"
WHY = "name: test; description: integr, test"


def remember(project: Path, home: Path | None = None) -> None:
    with Memory.open(project, home=home) as memory:
        memory.save("testing-db", type="feedback", description="Integration tests run against a real database", body="No mocks.")


def brought(agent: Agent) -> list[RecalledMemory]:
    assert agent.session.path is not None
    with working(agent.session) as c:
        branch, view = set(c.log.tree.members), {item.uuid for item in c.log.view.items}
    return find_recalled(read_transcript(agent.session.path), branch, view)


@pytest.mark.spec("B10", "Q7")
def test_what_came_is_told_with_its_reason_and_not_once_it_was_taken_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    remember(tmp_path, home)
    with Agent.open("offline", cwd=tmp_path, home=home) as agent:
        agent.run("Rename the variable x to count")
        assert brought(agent) == []
        agent.run(QUESTION)
        assert brought(agent) == [RecalledMemory("testing-db.md", WHY, True)]
        agent.session.undo_turn()
        assert brought(agent) == []


@pytest.mark.spec("B10")
def test_what_left_the_view_is_told_apart_and_odd_events_say_nothing() -> None:
    told: Wire = {"attachment": "a", "files": ["x.md", "y.md"], "why": ["one", "two"]}
    odd: list[Wire] = [
        {},
        {"attachment": "a"},
        {"attachment": None, "files": ["z.md"], "why": ["w"]},
        {"attachment": "a", "files": "z", "why": 1},
    ]
    records = [Event(str(at), None, "", "recall", data) for at, data in enumerate([told, *odd, {**told, "attachment": "b"}])]
    assert find_recalled(records, {"a"}, set()) == [RecalledMemory("x.md", "one", False), RecalledMemory("y.md", "two", False)]


@pytest.mark.spec("B10")
def test_the_chat_lists_what_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    remember(work)
    with Terminal(cwd=work) as chat:
        chat.prompt()
        chat.say(QUESTION)
        chat.expect("(memory: testing-db)")
        chat.say("/memory")
        chat.expect("[feedback] Integration tests run against a real database")
        chat.expect("Recalled in this conversation:")
        chat.expect(f"testing-db ({WHY})")
        chat.say("/exit")
        assert chat.wait() == 0
