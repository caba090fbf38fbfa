"""A model with memory: its prompt, its writes with Write and Edit, and what the next session knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.agent.agent import Agent, TurnResult
from lamina.core.records import Message
from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.store.contract import MemoryVersion
from lamina.providers.offline import OfflineProvider
from lamina.testing import MessagesServer, Received

from .agent_helpers import accepted, canonical, records, reminders, results

Open = Callable[..., Agent]
KEY = "sk-ant-" + "a1B2c3D4e5F6g7H8i9J0"
TOPIC = """---
name: testing-db
description: Integration tests use a real database
type: feedback
---

Integration tests use a real database.

**Why:** mocks once hid a broken migration.
"""
SAID = "Remember that integration tests use a real database: mocks once hid a broken migration."


@pytest.fixture
def memory(project: Path) -> Iterator[Memory]:
    with Memory.open(project) as memory:
        yield memory


def system(received: Received) -> str:
    return "\n".join(block["text"] for block in received.body["system"])


def write(memory: Memory, file: str, content: str, call: str = "w1") -> tuple[str, dict[str, Any], str]:
    return "Write", {"file_path": str(memory.path / file), "content": content}, call


def last(log: list[MemoryVersion]) -> tuple[str, str, str | None]:
    why = log[0].why
    assert why is not None
    return why.who, why.why, why.session


@pytest.mark.spec("S7", "S9", "B4")
@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_a_model_saves_in_one_session_and_knows_in_the_next(
    opened: Open, messages_server: MessagesServer, memory: Memory, wire: str
) -> None:
    messages_server.reply(tool_use=write(memory, "testing-db.md", TOPIC))
    messages_server.reply(text="I will remember that.")
    agent = opened(wire=wire, mode="ask")
    answer = agent.run(SAID)
    assert (answer.text, answer.notices) == ("I will remember that.", ("Saved memory: testing-db.",))
    assert (memory.path / "testing-db.md").read_text() == TOPIC
    assert memory.index() == "- [testing-db](testing-db.md) — Integration tests use a real database\n"
    assert last(memory.log()) == ("agent", "the user asked for it", agent.session.id)
    [version] = memory.log()
    assert version.why is not None
    assert version.why.message in {record.uuid for record in records(agent) if isinstance(record, Message)}
    before = len(messages_server.requests)
    opened(wire=wire).run("What do our integration tests use?")
    first = messages_server.requests[before]
    text = json.dumps(first.body, ensure_ascii=False)
    assert f"- Memory directory: {memory.path}" in text
    assert "- [testing-db](testing-db.md) — Integration tests use a real database" in text


@pytest.mark.spec("S7", "B4")
def test_a_model_forgets_by_writing_the_file_empty(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    memory.save("testing-db", type="feedback", description="d", body="b")
    path = str(memory.path / "testing-db.md")
    messages_server.reply(tool_use=("Read", {"file_path": path}, "r1"))
    messages_server.reply(tool_use=write(memory, "testing-db.md", ""))
    messages_server.reply(text="Forgotten.")
    answer = opened(mode="ask").run("Forget what you know about the test database.")
    assert answer.notices == ("Removed memory: testing-db. To undo, run `lamina memory restore testing-db`.",)
    assert not Path(path).exists()
    assert memory.index() == ""
    assert last(memory.log())[:2] == ("agent", "the user asked for it")
    assert memory.restore("testing-db").body == "b\n"


@pytest.mark.spec("X8")
def test_a_memory_is_edited_only_by_who_has_read_it(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    memory.save("testing-db", type="feedback", description="Database of tests", body="Integration tests use a fake database.")
    path = str(memory.path / "testing-db.md")
    change = {"file_path": path, "old_string": "fake", "new_string": "real"}
    messages_server.reply(tool_use=("Edit", change, "e1"))
    messages_server.reply(tool_use=("Read", {"file_path": path}, "r1"))
    messages_server.reply(tool_use=("Edit", change, "e2"))
    messages_server.reply(text="Done.")
    opened(mode="ask").run("Integration tests use a real database.")
    _, second, _, fourth = accepted(messages_server)
    assert "has not been read" in results(second)["e1"]
    assert results(fourth)["e2"].startswith("Updated the memory 'testing-db'")
    assert last(memory.log())[:2] == ("agent", "found worth keeping")
    topic = memory.get("testing-db")
    assert topic is not None
    assert topic.body == "Integration tests use a real database.\n"


def test_the_two_steps_of_saving_work_in_one_answer_after_reading_the_index(
    opened: Open, messages_server: MessagesServer, memory: Memory
) -> None:
    memory.save("lunch", type="project", description="Lunch is at noon", body="b")
    index = str(memory.path / "MEMORY.md")
    line = "- [lunch](lunch.md) — Lunch is at noon"
    change = {
        "file_path": index,
        "old_string": line,
        "new_string": f"{line}\n- [Databases](testing-db.md) — mocks hid a migration",
    }
    messages_server.reply(tool_use=("Read", {"file_path": index}, "r1"))
    messages_server.reply(tool_use=[write(memory, "testing-db.md", TOPIC), ("Edit", change, "e1")])
    messages_server.reply(text="Saved.")
    opened(mode="ask").run(SAID)
    assert not any(said.startswith("!") for said in results(messages_server.requests[-1]).values())
    assert memory.index() == f"{line}\n- [Databases](testing-db.md) — mocks hid a migration\n"


@pytest.mark.spec("B7")
def test_a_secret_never_reaches_the_disk_of_memory(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    messages_server.reply(tool_use=write(memory, "testing-db.md", f"{TOPIC}\nThe key is {KEY}\n"))
    messages_server.reply(text="Saved.")
    answer = opened().run(f"{SAID} The key is {KEY}.")
    assert answer.notices == ("Saved memory: testing-db. A secret was removed (Anthropic key).",)
    assert "A secret was removed" in results(messages_server.requests[-1])["w1"]
    assert not [path for path in memory.path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.spec("B5")
def test_in_confirm_mode_the_model_is_told_that_it_waits(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    messages_server.reply(tool_use=write(memory, "testing-db.md", TOPIC))
    messages_server.reply(text="It waits for your yes.")
    answer: TurnResult = opened(settings=Settings(memory_mode={"private": "confirm"})).run(SAID)
    [proposal] = memory.waiting()
    assert answer.notices == (f"A memory change waits for your approval: lamina inbox accept {proposal.id}",)
    assert f"lamina inbox accept {proposal.id}" in results(messages_server.requests[-1])["w1"]
    assert "waits for the user's approval" in system(messages_server.requests[0])
    assert memory.topics() == []
    memory.accept(proposal.id)
    assert [topic.name for topic in memory.topics()] == ["testing-db"]


@pytest.mark.spec("B5")
def test_memory_that_is_only_read_refuses_with_a_sentence(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    messages_server.reply(tool_use=write(memory, "testing-db.md", TOPIC))
    messages_server.reply(text="I can't.")
    opened(settings=Settings(memory_mode={"private": "read-only"}), mode="ask").run(SAID)
    assert "private memory is read-only" in results(messages_server.requests[-1])["w1"]
    assert memory.topics() == []


@pytest.mark.spec("F3")
def test_with_memory_off_there_is_no_section_and_no_way_in(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    messages_server.reply(tool_use=write(memory, "testing-db.md", TOPIC))
    messages_server.reply(text="I can't.")
    opened(settings=Settings(memory=False), mode="ask").run("Remember this.")
    assert "Memory directory" not in system(messages_server.requests[-1])
    assert results(messages_server.requests[-1])["w1"].startswith("!Not allowed")
    assert memory.topics() == []


@pytest.mark.spec("W1", "B7")
def test_the_teams_memory_refuses_a_profile_and_a_secret(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    settings = Settings(team=True)
    with Memory.open(project, settings=settings) as memory:
        memory.save("release", type="project", description="Releases on Mondays", body="b", scope="team")
        profile = TOPIC.replace("type: feedback", "type: user").replace("testing-db", "me")
        calls = [
            write(memory, "team/me.md", profile, "w1"),
            write(memory, "team/key.md", f"{TOPIC}\n{KEY}\n", "w2"),
            write(memory, "team/testing-db.md", TOPIC, "w3"),
        ]
        messages_server.reply(tool_use=calls)
        messages_server.reply(text="Done.")
        opened(settings=settings, mode="ask").run(f"{SAID} Tell the team. {KEY}")
        first, second = accepted(messages_server)
        assert f"- Team memory directory: {memory.path / 'team'}" in system(first)
        assert "Releases on Mondays" in "".join(reminders(first))
        said = results(second)
        assert "stay private" in said["w1"]
        assert "contains a secret" in said["w2"]
        assert said["w3"].startswith("Saved")
        assert sorted(topic.file for topic in memory.topics()) == ["team/release.md", "team/testing-db.md"]


@pytest.mark.spec("W1")
def test_a_team_directory_elsewhere_is_written_to_without_a_question(
    opened: Open, messages_server: MessagesServer, project: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "shared" / "team-memory"
    settings = Settings(team=True, team_memory_directory=str(elsewhere))
    messages_server.reply(tool_use=("Write", {"file_path": str(elsewhere / "testing-db.md"), "content": TOPIC}, "w1"))
    messages_server.reply(tool_use=("Read", {"file_path": str(elsewhere / "MEMORY.md")}, "r1"))
    messages_server.reply(text="Done.")
    answer = opened(settings=settings, mode="ask").run(f"{SAID} Tell the team.")
    assert answer.notices == ("Saved memory: testing-db.",)
    assert "testing-db.md" in results(messages_server.requests[-1])["r1"]


@pytest.mark.spec("G1")
@pytest.mark.parametrize("file", ["notes.txt", "../x.md", ".git/x.md", ".history/x.md", "sub/../../x.md"])
def test_other_files_there_are_refused(opened: Open, messages_server: MessagesServer, memory: Memory, file: str) -> None:
    messages_server.reply(tool_use=write(memory, file, TOPIC))
    messages_server.reply(text="I can't.")
    opened(mode="ask").run("Write it.")
    assert results(messages_server.requests[-1])["w1"].startswith("!Not allowed")
    assert not (memory.path / file).exists()


@pytest.mark.spec("S9", "K1")
def test_a_resumed_session_sends_the_same_bytes(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    messages_server.reply(tool_use=write(memory, "testing-db.md", TOPIC))
    messages_server.reply(text="Saved.")
    agent = opened()
    agent.run("Remember this.")
    agent.close()
    memory.save("another", type="project", description="Saved by somebody else since", body="b")
    again = opened(resume=agent.session.id, settings=Settings(extra_guidelines="Changed meanwhile."))
    again.run("And now?")
    first, before, after = (accepted(messages_server)[index] for index in (0, -2, -1))
    for request in (before, after):
        assert [canonical(request.body[name]) for name in ("system", "tools")] == [
            canonical(first.body[name]) for name in ("system", "tools")
        ]
        assert (
            canonical(request.messages[0]) == canonical(first.messages[0])
            or request.messages[0]["content"][0] == (first.messages[0]["content"][0])
        )
    assert again.session.status.cache_breaks == 0


@pytest.mark.spec("S10")
def test_earlier_transcripts_can_be_searched_without_a_question(opened: Open, messages_server: MessagesServer) -> None:
    first = opened(provider=OfflineProvider(), mode="ask")
    first.run("The error was E4711.")
    assert first.session.path is not None
    call = {"pattern": "E4711", "path": str(first.session.path.parent), "glob": "*.jsonl"}
    messages_server.reply(tool_use=("Grep", call, "g1"))
    messages_server.reply(text="E4711.")
    opened(mode="ask").run("What was the error the other day?")
    assert f"{first.session.id}.jsonl" in results(messages_server.requests[-1])["g1"]
    assert f'path="{first.session.path.parent}" glob="*.jsonl"' in system(messages_server.requests[-1])


@pytest.mark.spec("F4", "S10")
def test_guidelines_and_switches_reach_the_prompt(opened: Open, messages_server: MessagesServer) -> None:
    opened(settings=Settings(extra_guidelines="Never save names.", past_search=False, index_in_prompt=False)).run("Hello.")
    text = system(messages_server.requests[0])
    assert text.endswith("Never save names.")
    assert "Searching the past" not in text
    assert "is not sent to you" in text


def test_a_memory_that_cannot_be_used_is_a_notice_and_the_session_goes_on(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened(settings=Settings(memory_directory="/etc/memory/here"))
    assert any("continues without memory" in notice for notice in agent.session.notices)
    assert agent.run("Hello.").ended == "answered"
    assert "Memory directory" not in system(messages_server.requests[0])


def test_a_session_in_memory_has_no_memory(opened: Open, messages_server: MessagesServer) -> None:
    opened(in_memory=True).run("Hello.")
    assert "Memory directory" not in system(messages_server.requests[0])


@pytest.mark.spec("S7", "S11")
def test_copies_in_the_history_are_not_offered_as_memories(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with Memory.open(tmp_path, home=home) as memory:
        memory.save("testing-db", description="Integration tests use Postgres", body="The Postgres of the staging server.")
        memory.save("billing", description="Who owns billing", body="Anna, who also runs the Postgres cluster.")
        for copy in (".history/index-20260101T000000000000.md", ".dreams/d1/work/testing-db.md"):
            (memory.path / copy).parent.mkdir(parents=True, exist_ok=True)
            (memory.path / copy).write_text("The Postgres cluster of the staging server.\n")
    with Agent.open("offline", cwd=tmp_path, home=home) as agent:
        told = agent.run("Forget the Postgres cluster").text
    assert "index-" not in told
    assert told.count("testing-db") == 1
