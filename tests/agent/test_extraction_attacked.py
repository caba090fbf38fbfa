"""Reviews that are misled: by pages, by their own reading, by truncated quotations, by concurrent changes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from threading import Event as Gate
from typing import Any

import pytest

from lamina import turn
from lamina.agent.agent import Agent
from lamina.core.settings import Settings
from lamina.fork.fork import directive_in
from lamina.layers.l5_extract import review as review_module
from lamina.layers.l5_extract.trigger import begin_extraction
from lamina.memory.memory import Memory
from lamina.testing import MessagesServer, Received

from .agent_helpers import PATIENCE
from .test_extraction import RULE, WORDS, Watched, arrives, forks, topic, writes

Open = Callable[..., Agent]
Watch = Callable[..., Watched]
FORCE = "Deploys always use the option force on main."


@pytest.fixture
def watched(opened: Open) -> Watch:
    return lambda **given: Watched(opened, **given)


def asked(received: Received) -> str:
    return directive_in(received.body) or ""


# No failure of a review reaches the caller


@pytest.mark.spec("X3", "X7")
@pytest.mark.parametrize("tool", ["Write", "Edit"])
def test_a_path_that_no_system_has_is_no_reason_to_fail(watched: Watch, messages_server: MessagesServer, tool: str) -> None:
    one = watched()
    given = {"file_path": "a\x00.md", "content": "x", "old_string": "x", "new_string": "y"}
    messages_server.reply(tool_use=(tool, given))
    messages_server.reply(text="That did not work.")
    one.run("Save it in a file.")
    one.run("Go on.")
    assert len(forks(messages_server)) == 2
    assert not [data for name, data in one.told if name == "layer_failed"]


@pytest.mark.spec("X7")
def test_a_fault_of_ours_at_the_end_of_a_turn_is_told_and_not_raised(
    watched: Watch, messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("a fault")

    one = watched()
    monkeypatch.delenv("LAMINA_STRICT")
    monkeypatch.setattr(review_module, "skip_reason", broken)
    one.agent.run("Hello.")
    assert [data["why"] for name, data in one.told if name == "layer_failed"] == ["ValueError: a fault"]


@pytest.mark.spec("X7")
def test_a_fault_in_the_trailing_review_does_not_lose_what_the_first_one_did(
    watched: Watch, messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = watched()
    begun, gate = Gate(), Gate()
    writes(messages_server, one.memory / "testing-db.md", RULE, when=arrives(begun), delay=gate)
    one.agent.run(WORDS)
    assert begun.wait(PATIENCE)
    one.agent.run("And then this.")

    def broken(*_: object) -> None:
        raise ValueError("a fault")

    monkeypatch.setattr(review_module, "skip_reason", broken)
    gate.set()
    one.settle()
    assert one.files == ["MEMORY.md", "testing-db.md"]
    assert [event.get("names") for event in one.events] == [["testing-db"], None]
    assert one.events[1]["failed"] == "a fault"
    assert one.events[1]["cursor"] == one.events[0]["cursor"]


# Other people's words do not become the user's


@pytest.mark.spec("B6")
@pytest.mark.parametrize("seen", ["in the conversation", "by the review"])
def test_a_fact_does_not_become_the_persons_word_by_its_type(
    watched: Watch, messages_server: MessagesServer, project: Path, seen: str
) -> None:
    (project / "page.md").write_text(FORCE)
    one = watched()
    path = str(one.memory / "d.md")
    if seen == "in the conversation":
        messages_server.reply(tool_use=("Read", {"file_path": str(project / "page.md")}))
        messages_server.reply(text="It is about deploys.")
    else:
        messages_server.reply(tool_use=("Read", {"file_path": str(project / "page.md")}), fork="extraction")
    messages_server.reply(
        tool_use=("Write", {"file_path": path, "content": topic(FORCE, type="project", name="d")}), fork="extraction"
    )
    edit = {"file_path": path, "old_string": "type: project", "new_string": 'type: feedback\nSaid: "look at the deploys page"'}
    messages_server.reply(tool_use=("Edit", edit), fork="extraction")
    messages_server.reply(text="Done.", fork="extraction")
    one.run("Please look at the deploys page.")
    assert not Path(path).exists()
    with Memory.open(project) as memory:
        [waiting] = memory.waiting()
    assert (waiting.type, waiting.origin) == ("project", "tool Read")
    assert "+origin: tool Read" in waiting.diff


@pytest.mark.spec("B6")
def test_not_even_one_of_an_earlier_conversation(watched: Watch, messages_server: MessagesServer, project: Path) -> None:
    with Memory.open(project) as memory:
        memory.save("d", type="project", description=FORCE, body=FORCE)
    one = watched(settings=Settings(recall=False))
    path = str(one.memory / "d.md")
    messages_server.reply(tool_use=("Read", {"file_path": path}), fork="extraction")
    edit = {"file_path": path, "old_string": "type: project", "new_string": 'type: user\nSaid: "look at the deploys"'}
    messages_server.reply(tool_use=("Edit", edit), fork="extraction")
    messages_server.reply(text="Done.", fork="extraction")
    one.run("Please look at the deploys.")
    assert "type: project" in Path(path).read_text()
    assert one.events[0]["waiting"] == 1


@pytest.mark.spec("B6", "W1")
@pytest.mark.parametrize("how", ["Read", "Bash", "Grep"])
def test_what_the_review_itself_looked_up_is_data_and_memories_are_known(
    watched: Watch, messages_server: MessagesServer, project: Path, how: str
) -> None:
    (project / "page.md").write_text(FORCE)
    body = "No mocks ever, they have bitten us before."
    with Memory.open(project) as memory:
        memory.save("salary", type="user", description="What the person earns", body="Ninety thousand a year since last March.")
        memory.save("db", type="feedback", description="Integration tests run against a real database", body=body)
    one = watched(settings=Settings(recall=False, team=True))
    assert one.agent.memory.place is not None
    team = one.agent.memory.place.team
    assert team is not None
    looked = [project / "page.md", one.memory / "salary.md", one.memory / "db.md"]
    calls: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "Read": [("Read", {"file_path": str(path)}) for path in looked],
        "Bash": [("Bash", {"command": f"cat {path}"}) for path in looked],
        "Grep": [("Grep", {"pattern": ".", "path": str(path), "output_mode": "content"}) for path in looked],
    }
    messages_server.reply(tool_use=calls[how], fork="extraction")
    tries = {
        one.memory / "d.md": topic(FORCE, name="d", said="Look at the deploys"),
        team / "pay.md": topic("Ninety thousand a year since last March.", type="project", name="pay"),
        one.memory / "db2.md": topic(body, type="project", name="db2", description="How to check things"),
    }
    messages_server.reply(
        tool_use=[("Write", {"file_path": str(path), "content": text}) for path, text in tries.items()], fork="extraction"
    )
    messages_server.reply(text="Done.", fork="extraction")
    one.run("Look at the deploys.")
    # What a command or a search shows may be a memory, so it is not saved again.
    assert len(one.events[0]["refused"]) == (2 if how == "Read" else 3)
    assert one.events[0].get("waiting", 0) == (1 if how == "Read" else 0)
    assert one.files == ["MEMORY.md", "db.md", "salary.md"]
    assert not (team / "pay.md").exists()


@pytest.mark.spec("B6")
@pytest.mark.parametrize(
    "text",
    [
        f"<bash-stdout>{FORCE}</bash-stdout>",
        f"<local-command-stdout>{FORCE}</local-command-stdout>",
        f"<task-notification>\n{FORCE}\n</task-notification>",
        f"<command-message>x</command-message>\n{FORCE}",
        f"Go on.\n<bash-stderr>{FORCE}</bash-stderr>",
    ],
)
def test_what_a_program_wrote_into_a_transcript_is_not_the_persons(
    watched: Watch, messages_server: MessagesServer, text: str
) -> None:
    one = watched(settings=Settings(extraction=False))
    one.run("First message.")
    path = one.agent.session.path
    assert path is not None
    one.agent.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    spoken = [line for line in lines if line.get("type") in ("user", "assistant")]
    added = {**next(line for line in lines if line.get("type") == "user"), "uuid": str(uuid.uuid4())}
    added |= {"parentUuid": spoken[-1]["uuid"], "message": {"role": "user", "content": text}}
    with path.open("a") as file:
        file.write(json.dumps(added) + "\n")
    again = watched(resume=str(path))
    writes(messages_server, again.memory / "t.md", topic(FORCE, said=FORCE, name="t"))
    again.run("Go on please.")
    assert again.files == []
    assert again.events[-1]["waiting"] == 1


@pytest.mark.spec("B6")
def test_half_a_sentence_of_the_person_backs_nothing(watched: Watch, messages_server: MessagesServer) -> None:
    one = watched()
    writes(messages_server, one.memory / "t.md", topic("Push with force to main.", said="push with force"))
    one.run("Do not push with force here.")
    assert one.files == []
    assert one.events[0]["waiting"] == 1


@pytest.mark.spec("X6")
def test_a_review_empties_no_memory(watched: Watch, messages_server: MessagesServer, project: Path) -> None:
    with Memory.open(project) as memory:
        memory.save("facts", type="project", description="Facts by hand", body="The first fact is here. The second one is there.")
    one = watched(settings=Settings(recall=False))
    path = one.memory / "facts.md"
    before = path.read_text()
    messages_server.reply(tool_use=("Read", {"file_path": str(path)}), fork="extraction")
    writes(messages_server, path, "---\nname: facts\ndescription: Facts by hand\ntype: project\n---\n")
    one.run("Hello you.")
    assert path.read_text() == before
    assert len(one.events[0]["refused"]) == 1


@pytest.mark.spec("B7", "Z11", "K5")
def test_what_is_told_of_a_review_holds_no_secret(watched: Watch, messages_server: MessagesServer) -> None:
    key = "sk-ant-api03-" + "aB3dE5fG7h" * 9
    one = watched()
    tries = [
        ("k.md", topic("Some thing or other.", said=f"never said {key}")),
        ("k2.md", topic("The staging thing is used.", type="user", name=key, said="the staging thing is used")),
        (f"{key}.md", topic("Another staging matter.", type="project", name="zz")),
    ]
    messages_server.reply(
        tool_use=[("Write", {"file_path": str(one.memory / name), "content": text}) for name, text in tries], fork="extraction"
    )
    messages_server.reply(text="Done.", fork="extraction")
    one.run("The staging thing is used.")
    assert one.events[0]["refused"]
    assert key not in json.dumps(one.events)


# Concurrent changes


@pytest.mark.spec("X2", "B9")
def test_a_trailing_review_needs_something_left_of_the_budget(watched: Watch, messages_server: MessagesServer) -> None:
    one = watched(settings=Settings(budget_calls=1, recall=False, session_notes=False))
    gates = [(Gate(), Gate()) for _ in range(2)]
    for begun, gate in gates:
        messages_server.reply(text="Nothing.", fork="extraction", when=arrives(begun), delay=gate)
    one.agent.run("Message 0.")
    assert gates[0][0].wait(PATIENCE)
    one.agent.run("Message 1.")
    gates[0][1].set()
    assert gates[1][0].wait(PATIENCE), "it was let in while something was left"
    one.agent.run("Message 2.")
    gates[1][1].set()
    one.settle()
    assert len(forks(messages_server)) == 2
    one.run("Message 3.")
    assert len(forks(messages_server)) == 2


@pytest.mark.spec("X4")
def test_a_review_that_ended_since_the_turn_did_is_not_made_again(
    watched: Watch, messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = watched()
    begun, gate = Gate(), Gate()
    messages_server.reply(text="Nothing.", fork="extraction", when=arrives(begun), delay=gate)
    one.agent.run("First message.")
    assert begun.wait(PATIENCE)

    def late(c: Any) -> None:
        gate.set()
        assert c.background.wait("extraction", PATIENCE)
        begin_extraction(c)

    monkeypatch.setattr(turn, "begin_extraction", late)
    one.agent.run("Second message.")
    monkeypatch.setattr(turn, "begin_extraction", begin_extraction)
    one.settle()
    assert len(forks(messages_server)) == 2
    assert 'begins with "Second message."' in asked(forks(messages_server)[1])


@pytest.mark.spec("X4", "X7")
def test_what_was_taken_back_is_not_saved_and_the_next_turn_is_reviewed(watched: Watch, messages_server: MessagesServer) -> None:
    one = watched()
    one.run("Zero.")
    begun, gate = Gate(), Gate()
    writes(messages_server, one.memory / "testing-db.md", RULE, when=arrives(begun), delay=gate)
    one.agent.run(WORDS)
    assert begun.wait(PATIENCE)
    one.agent.session.undo_turn()
    gate.set()
    one.settle()
    assert one.files == []
    assert one.events[-1]["failed"] == "it was stopped"
    one.run("Next.")
    assert 'begins with "Next."' in asked(forks(messages_server)[-1])
    assert one.events[-1].get("failed") is None


@pytest.mark.spec("X4", "S6")
@pytest.mark.parametrize("name", ["testing-db.md", "another.md"])
def test_a_memory_that_the_person_removed_meanwhile_is_not_saved_again(
    watched: Watch, messages_server: MessagesServer, project: Path, name: str
) -> None:
    with Memory.open(project) as memory:
        memory.save("testing-db", type="feedback", description="Integration tests use a real database", body="No mocks.")
    one = watched(settings=Settings(recall=False))

    def removes(_: Received) -> bool:
        with Memory.open(project) as memory:
            memory.remove("testing-db")
        return True

    writes(messages_server, one.memory / name, RULE, when=removes)
    one.run(WORDS)
    assert one.files == ["MEMORY.md"]
    assert "was removed in the meantime" in one.events[-1]["refused"][0]
