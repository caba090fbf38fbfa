"""What a model would save although it can be looked up: it waits with a question, whoever writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.agent.agent import Agent
from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason, Proposed
from lamina.testing import MessagesServer

Open = Callable[..., Agent]
LAYOUT = ("The directory layout: src/ has the code, tests/ has the tests", "src/ has the code\ntests/ has the tests")
REQUESTS = ("This week's PRs: 101, 102, 103", "PRs of this week: 101, 102, 103")
FIX = ("Fixed the login bug by using the server's clock", "The login bug was fixed by using the server's clock.")


@pytest.fixture
def memory(project: Path) -> Iterator[Memory]:
    with Memory.open(project) as opened:
        yield opened


def written(opened: Open, server: MessagesServer, memory: Memory, about: str, body: str, **settings: Any) -> None:
    """Let a model write what the user asks it to remember."""
    text = f'---\nname: noted\ndescription: "{about}"\ntype: project\n---\n\n{body}\n'
    server.reply(tool_use=[("Write", {"file_path": str(memory.path / "noted.md"), "content": text}, "w1")])
    server.reply(text="Done.")
    opened(mode="ask", settings=Settings(extraction=False, **settings)).run(f"Remember: {about}. {body}")


@pytest.mark.spec("S8")
@pytest.mark.parametrize(
    ("said", "kind"),
    [(LAYOUT, "the structure of the code"), (REQUESTS, "a list of pull requests or tickets"), (FIX, "how something was fixed")],
)
def test_a_write_of_what_can_be_looked_up_waits_with_a_question(
    opened: Open, messages_server: MessagesServer, memory: Memory, said: tuple[str, str], kind: str
) -> None:
    written(opened, messages_server, memory, *said)
    assert memory.topics() == []
    [proposal] = memory.waiting()
    assert proposal.waits == f"this looks like {kind}. What about it is worth keeping?"


@pytest.mark.spec("S8")
def test_one_setting_keeps_what_describes_the_code(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    written(opened, messages_server, memory, *LAYOUT, keep_architecture=True)
    assert [topic.name for topic in memory.topics()] == ["noted"]


@pytest.mark.spec("S8")
def test_that_setting_keeps_no_list_of_changes(opened: Open, messages_server: MessagesServer, memory: Memory) -> None:
    written(opened, messages_server, memory, *REQUESTS, keep_architecture=True)
    assert memory.topics() == []


@pytest.mark.spec("S8")
@pytest.mark.parametrize(("file", "keeps"), [("AGENTS.md", False), ("CLAUDE.md", False), ("AGENTS.md", True)])
def test_what_stands_in_an_instruction_file_waits(project: Path, file: str, keeps: bool) -> None:
    (project / file).write_text("# Rules\n\nRun make lint before every commit and fix all its warnings.\n")
    about: dict[str, Any] = {
        "type": "feedback",
        "description": "Run make lint before every commit",
        "body": "Fix all its warnings.",
    }
    with Memory.open(project, settings=Settings(keep_architecture=keeps)) as memory:
        memory.save("lint", **about, why=ChangeReason("agent", "a test"))
        assert [topic.name for topic in memory.topics()] == (["lint"] if keeps else [])
        memory.save("by-hand", **about)
        assert memory.get("by-hand") is not None


@pytest.mark.spec("S8")
@pytest.mark.parametrize("who", ["agent", "extraction", "dream"])
def test_every_writer_but_the_user_is_asked_and_a_memory_of_that_kind_may_be_updated(who: Any, memory: Memory) -> None:
    about, body = REQUESTS
    writer = ChangeReason(who, "a test")
    assert isinstance(memory.save("noted", type="project", description=about, body=body, why=writer), Proposed)
    memory.save("noted", type="project", description=about, body=body)
    memory.save("noted", type="project", description=f"{about}, 104", body=body, why=writer)
    topic = memory.get("noted")
    assert topic is not None
    assert topic.description.endswith("104")
