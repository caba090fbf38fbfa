"""Memories recalled for an agent's messages: with and without a model, with and without the index."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event as Gate

import pytest
from tests.cli.running import here

from lamina.agent.agent import Agent
from lamina.core.errors import Aborted
from lamina.core.policy import Policy, SurfacingPolicy
from lamina.core.settings import Settings
from lamina.disk.transcripts.store import read_transcript
from lamina.memory.memory import Memory
from lamina.session.base import working
from lamina.testing import MessagesServer, Received

from .agent_helpers import PATIENCE, contexts, reminders

Open = Callable[..., Agent]
QUESTION = "What do our integration tests run against?"


@pytest.fixture
def memory(project: Path) -> Iterator[Memory]:
    with Memory.open(project) as memory:
        memory.save(
            "testing-db", type="feedback", description="Integration tests run against a real database", body="No mocks, ever."
        )
        memory.save("coffee", type="user", description="Drinks it black", body="No sugar.")
        yield memory


def recalled(texts: list[str]) -> list[str]:
    return [text for text in texts if "<recalled-memory>" in text]


@pytest.mark.spec("Q1", "Q7")
def test_a_model_gets_the_memory_beside_the_message(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    messages_server.reply(text="A real one.")
    messages_server.reply(text="Yes.")
    agent = opened(settings=Settings(recall_selector="local"))
    agent.run(QUESTION)
    agent.run(f"{QUESTION} Really?")
    first, second = messages_server.requests
    assert len(recalled(reminders(first))) == len(recalled(reminders(second))) == 1
    assert contexts(agent) == ["instructions", "relevant_memories"]
    assert first.messages[-1]["content"][-1]["text"] == second.messages[0]["content"][-1]["text"]


@pytest.mark.spec("Q8", "O1")
def test_without_the_index_an_answer_comes_from_what_was_recalled(project: Path, memory: Memory) -> None:
    with Agent.open("offline", cwd=project, settings=Settings(index_in_prompt=False)) as agent:
        answer = agent.run(QUESTION)
        assert "No mocks, ever.\n(memory: testing-db)" in answer.text
        assert answer.rounds == 1  # nothing had to be read
        sent = json.dumps(agent.session.messages)
        assert "<memory-index>" not in sent
        assert "Drinks it black" not in sent
        again = agent.run("And what do our integration tests run against?").text
        assert "(memory: testing-db)" in again


@pytest.mark.spec("Q8")
def test_with_neither_index_nor_recall_nothing_is_known(project: Path, memory: Memory) -> None:
    with Agent.open("offline", cwd=project, settings=Settings(index_in_prompt=False, recall=False)) as agent:
        assert "I found nothing about that" in agent.run(QUESTION).text


@pytest.mark.spec("S7")
def test_what_was_forgotten_in_the_conversation_is_not_told_from_what_was_recalled(project: Path, memory: Memory) -> None:
    with Agent.open("offline", cwd=project, mode="all", settings=Settings(index_in_prompt=False)) as agent:
        agent.run(QUESTION)
        agent.run("Forget that integration tests run against a real database")
        assert memory.get("testing-db") is None
        assert "I found nothing about that" in agent.run(QUESTION).text


@pytest.mark.spec("B10")
def test_why_a_memory_is_there_is_told_for_the_turn(project: Path, memory: Memory) -> None:
    with Agent.open("offline", cwd=project) as agent:
        agent.run(QUESTION)
        path = agent.session.path
    done = here("context", str(path), "--turn", "1", cwd=project)
    assert "testing-db.md, recalled (name: test; description: integr, test)" in done.stdout
    told = json.loads(here("context", str(path), "--turn", "1", "--json", cwd=project).stdout)
    [piece] = [piece for piece in told["blocks"] if piece["kind"] == "memory"]
    assert piece["why"] == "testing-db.md, recalled (name: test; description: integr, test)"


@pytest.mark.spec("K5")
def test_whoever_watches_is_told_what_was_recalled(project: Path, memory: Memory) -> None:
    events: list[dict[str, object]] = []
    with Agent.open("offline", cwd=project, on_event=events.append) as agent:
        agent.run(QUESTION)
        agent.run("Rename the variable x to count")
    told = [event["data"] for event in events if event.get("type") == "layer" and event.get("name") == "recall"]
    assert [data["files"] for data in told if isinstance(data, dict)] == [["testing-db.md"], []]


def test_other_programs_find_path_and_text_of_each_memory(project: Path, memory: Memory) -> None:
    with Agent.open("offline", cwd=project) as agent:
        agent.run(QUESTION)
        path = agent.session.path
    assert path is not None
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    [written] = [line for line in lines if line.get("attachment", {}).get("type") == "relevant_memories"]
    [one] = written["attachment"]["memories"]
    assert one["path"] == str(memory.path / "testing-db.md")
    assert one["content"].strip() == "No mocks, ever."
    assert one["header"] == "A memory, saved today"
    assert one["mtimeMs"] > 1_600_000_000_000
    assert written["renderedRole"] == "user"
    assert any(getattr(record, "kind", "") == "relevant_memories" for record in read_transcript(path))


@pytest.mark.spec("Q2")
def test_an_abort_ends_a_choice_under_way(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    gate, asked = Gate(), Gate()

    def answers(received: Received) -> str:
        if received.fork.startswith("select"):
            asked.set()
            gate.wait(PATIENCE)
        return '{"selected_memories": ["coffee.md"]}'

    messages_server.answer_with(answers)
    messages_server.reply(text="I look.", tool_use=("Read", {"file_path": "calc.py"}, "c1"))
    patient = Policy("patient", surfacing=SurfacingPolicy(wait_seconds=600.0))

    def stop(event: dict[str, object]) -> None:
        if event.get("type") == "tool_call":
            assert asked.wait(PATIENCE)
            agent.abort()

    agent = opened(settings=Settings(recall_selector="model"), policy=patient, on_event=stop)
    try:
        with pytest.raises(Aborted):
            agent.run(QUESTION)
        with working(agent.session) as conversation:
            assert conversation.background.wait("select", PATIENCE)  # though its server has not answered
    finally:
        gate.set()
    assert contexts(agent) == ["instructions"]


@pytest.mark.spec("Q7")
def test_an_empty_memory_costs_no_event(project: Path) -> None:
    events: list[dict[str, object]] = []
    with Agent.open("offline", cwd=project, on_event=events.append) as agent:
        agent.run(QUESTION)
    assert [event for event in events if event.get("name") == "recall"] == []
