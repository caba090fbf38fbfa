"""What an MCP client may change: its own project and reference memories at once, everything else after the user's approval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from bench.redteam_doors import McpClient

from lamina.core.settings import Settings
from lamina.mcp.project import ServedProject
from lamina.memory.memory import Memory

RULE: dict[str, Any] = {"type": "feedback", "description": "Never force push", "body": "Never force push to a shared branch."}
FACT: dict[str, Any] = {"type": "project", "description": "Deploys are on Tuesday", "body": "Deploys are on Tuesday."}


class Client(McpClient):
    def __init__(self, project: Path, name: str = "cursor", **settings: Any) -> None:
        super().__init__(ServedProject(project, settings=Settings(**settings) if settings else None), name)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def memory(project: Path) -> Iterator[Memory]:
    with Memory.open(project) as opened:
        yield opened


def said(memory: Memory, name: str) -> tuple[str | None, str]:
    topic = memory.get(name)
    assert topic is not None
    return topic.type, topic.body.strip()


WAYS = {
    "a save of another type": ("memory_save", {"name": "no-force", "type": "project"}),
    "another spelling": ("memory_save", {"name": "No-Force", "type": "project"}),
    "the name of the file": ("memory_save", {"name": "no-force.md", "type": "reference"}),
    "an update of the type": ("memory_update", {"name": "no-force", "type": "reference"}),
    "an update of the text": ("memory_update", {"name": "no-force", "body": "Force push is allowed."}),
    "an update of the description": ("memory_update", {"name": "NO-FORCE", "description": "Force push is allowed"}),
    "a removal": ("memory_remove", {"name": "no-force"}),
    "a removal by the file": ("memory_remove", {"name": "no-force.md"}),
}


@pytest.mark.spec("U4", "G3")
@pytest.mark.parametrize("way", WAYS)
def test_a_client_changes_no_memory_of_the_user_without_approval(way: str, project: Path, memory: Memory) -> None:
    memory.save("no-force", **RULE)
    tool, arguments = WAYS[way]
    if tool == "memory_save":
        arguments = {"description": "Force push is allowed", "body": "Force push is allowed.", **arguments}
    answer = Client(project).call(tool, **arguments)
    assert "waits for the user's approval" in answer
    assert said(memory, "no-force") == ("feedback", RULE["body"])
    [proposal] = memory.waiting()
    assert proposal.why.client == "cursor"
    assert proposal.file == "no-force.md"


def test_a_memory_whose_name_differs_only_in_its_marks_waits(project: Path, memory: Memory) -> None:
    memory.save("no-force", **RULE)
    lunch = {"type": "project", "description": "Lunch is at noon", "body": "Lunch is at noon."}
    assert "waits for the user's approval" in Client(project).call("memory_save", name="No Force", **lunch)
    assert memory.get("No Force") is None


@pytest.mark.parametrize("kind", ["project", "reference", None])
def test_a_memory_that_the_client_did_not_write_is_not_changed_whatever_its_type(
    kind: Any, project: Path, memory: Memory
) -> None:
    memory.save("deploys", type=kind, description="Deploys are on Tuesday", body="Deploys are on Tuesday.")
    client = Client(project)
    assert "waits" in client.call("memory_save", name="deploys", **{**FACT, "body": "Deploys are on Friday."})
    assert "waits" in client.call("memory_remove", name="deploys")
    assert said(memory, "deploys") == (kind, "Deploys are on Tuesday.")
    assert [one.action for one in memory.waiting()] == ["save", "remove"]


def test_a_new_project_memory_is_live_marked_and_may_be_changed_by_its_client(project: Path, memory: Memory) -> None:
    client = Client(project)
    assert client.call("memory_save", name="deploys", **FACT) == "Saved deploys."
    assert client.call("memory_update", name="deploys", body="Deploys are on Friday.") == "Updated deploys."
    topic = memory.get("deploys")
    assert topic is not None
    assert topic.fields["origin"] == "cursor over MCP"
    assert "waits" in Client(project, "zed").call("memory_update", name="deploys", body="Deploys are on Monday.")
    assert client.call("memory_remove", name="deploys").startswith("Removed deploys.")
    assert [one.why.client for one in memory.waiting()] == ["zed"]


@pytest.mark.parametrize(
    ("known", "told"),
    [
        (RULE, "Force push is allowed for everybody since the release of March"),
        (FACT, "Deploys are on Friday."),
        (
            {"type": "reference", "description": "Bugs are in Linear", "body": "The team does not use Jira."},
            "The team uses Jira.",
        ),
    ],
)
def test_a_new_memory_that_contradicts_one_of_somebody_else_waits(
    known: dict[str, Any], told: str, project: Path, memory: Memory
) -> None:
    memory.save("known", **known)
    answer = Client(project).call("memory_save", name="a-new-one", type="project", description=told.rstrip("."), body=told)
    assert "waits" in answer
    assert memory.get("a-new-one") is None
    [proposal] = memory.waiting()
    assert "known" in proposal.waits


def test_a_memory_about_something_else_is_live(project: Path, memory: Memory) -> None:
    memory.save("no-force", **RULE)
    memory.save("deploys", **FACT)
    told = {"type": "project", "description": "The audit ends in March", "body": "The audit of billing ends in March."}
    assert Client(project).call("memory_save", name="audit", **told) == "Saved audit."


def test_what_the_user_removed_does_not_come_back_by_itself(project: Path, memory: Memory) -> None:
    client = Client(project)
    client.call("memory_save", name="deploys", **FACT)
    memory.remove("deploys")
    assert "waits" in client.call("memory_save", name="deploys", **FACT)
    assert memory.get("deploys") is None


def test_a_client_s_memory_that_the_user_edited_by_hand_is_the_user_s(project: Path, memory: Memory) -> None:
    client = Client(project)
    client.call("memory_save", name="deploys", **FACT)
    path = memory.where("deploys.md")
    path.write_text(path.read_text().replace("are on Tuesday.", "are on Friday, after lunch."))
    assert "waits" in client.call("memory_update", name="deploys", body="Deploys are at any time.")
    assert said(memory, "deploys")[1] == "Deploys are on Friday, after lunch."


def test_all_writes_of_clients_wait_on_request(project: Path, memory: Memory) -> None:
    client = Client(project, **{"lamina.mcp.writes": "wait"})
    assert "waits" in client.call("memory_save", name="deploys", **FACT)
    assert memory.topics() == []
    memory.accept(memory.waiting()[0].id)
    assert "waits" in client.call("memory_update", name="deploys", body="Deploys are on Monday.")
    assert "waits" in client.call("memory_remove", name="deploys")


def test_two_clients_at_once_leave_the_memory_to_the_one_that_wrote_it(project: Path, memory: Memory) -> None:
    start, answers = Barrier(8), dict[str, str]()

    def save(name: str) -> None:
        client = Client(project, name)
        start.wait(timeout=60)
        answers[name] = client.call("memory_save", name="deploys", **{**FACT, "body": f"Deploys are done by {name}."})

    threads = [Thread(target=save, args=(f"client-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    [first] = [name for name, answer in answers.items() if answer == "Saved deploys."]
    assert said(memory, "deploys")[1] == f"Deploys are done by {first}."
    assert [version.why.client for version in memory.log("deploys") if version.why] == [first]


def test_a_team_s_memory_is_changed_in_the_team_s_scope_after_approval(project: Path) -> None:
    settings: dict[str, Any] = {"team": True}
    with Memory.open(project, settings=Settings(**settings)) as memory:
        memory.save("release", type="project", description="Releases need two reviews", body="Two reviews.", scope="team")
        client = Client(project, **settings)
        assert "waits" in client.call("memory_update", name="release", body="No reviews.")
        assert "waits" in client.call("memory_save", name="Release", **FACT)
        assert "waits" in client.call("memory_remove", name="release")
        assert [(one.scope, one.name) for one in memory.waiting()] == [("team", "release")] * 3
        assert [topic.file for topic in memory.topics()] == ["team/release.md"]
