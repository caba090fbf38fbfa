"""Cleared results in an agent's conversation: the marker names them shortly, and Read finds them by that name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import anthropic
import pytest

from lamina.agent.agent import Agent
from lamina.core.settings import Settings
from lamina.disk.session_files.spills import named_by
from lamina.providers import open_provider
from lamina.session.base import working
from lamina.session.session import Session
from lamina.testing import MessagesServer
from lamina.tools.registry import builtin_tools
from lamina.tools.tool import definition

MARKER = re.compile(r"\[Cleared to save room: the complete result is in (\S+) and can be read there\.\]")
ONLY_CLEARING = Settings(auto_compact=False, session_notes=False)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    for number in range(40):
        (place / f"f{number}.py").write_text(f"# file {number}\n" + "x = 1  # nothing special in it\n" * 150)
    return place


@pytest.fixture
def client(messages_server: MessagesServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="any", base_url=messages_server.url) as client:
        yield client


def opened(client: anthropic.Anthropic, work: Path, **given: object) -> Session:
    provider = open_provider("anthropic:claude-sonnet-5-5", client=client)
    tools = [definition(tool) for tool in builtin_tools()]
    options = {"home": work.parent / "home", "cwd": work, "window": 40_000, "settings": ONLY_CLEARING, "tools": tools, **given}
    return Session(provider, **options)  # type: ignore[arg-type]  # a table of options


def until_cleared(server: MessagesServer, agent: Agent, work: Path) -> list[str]:
    """Read files until old results are cleared; the names in the markers."""
    for number in range(40):
        server.reply(tool_use=("Read", {"file_path": str(work / f"f{number}.py")}, f"toolu_{number:02}"))
        server.reply(text="Read.")
        agent.run(f"Read file {number}.")
        if found := MARKER.findall(json.dumps(server.requests[-1].body["messages"])):
            return found
    raise AssertionError("nothing was cleared")


def read(server: MessagesServer, agent: Agent, name: str) -> str:
    server.reply(tool_use=("Read", {"file_path": name}, "toolu_again"))
    server.reply(text="I see.")
    agent.run("Read it again.")
    blocks = [block for message in server.requests[-1].body["messages"] for block in message["content"]]
    (result,) = [block for block in blocks if block.get("tool_use_id") == "toolu_again"]
    assert not result.get("is_error"), result
    return str(result["content"])


@pytest.mark.spec("M2", "R5")
def test_a_marker_has_a_short_name_that_read_resolves(
    messages_server: MessagesServer, client: anthropic.Anthropic, work: Path
) -> None:
    with Agent(opened(client, work), mode="ask") as agent:
        names = until_cleared(messages_server, agent, work)
        assert names[:2] == ["result:toolu_00.txt", "result:toolu_01.txt"]
        assert "# file 1" in read(messages_server, agent, names[1])
        messages_server.reply(tool_use=("Grep", {"pattern": "file 0", "path": names[0], "output_mode": "content"}, "toolu_grep"))
        messages_server.reply(text="Found.")
        agent.run("Search it.")
        assert "# file 0" in json.dumps(messages_server.requests[-1].body["messages"][-1])


@pytest.mark.spec("M2", "B1")
def test_a_session_continued_under_another_id_still_finds_them(
    messages_server: MessagesServer, client: anthropic.Anthropic, work: Path
) -> None:
    with Agent(opened(client, work), mode="all") as agent:
        names = until_cleared(messages_server, agent, work)
        first = agent.session
        with Agent(opened(client, work, resume=first.id), mode="all") as other:
            assert other.session.id != first.id
            with working(other.session) as c:
                assert c.directory is not None
                assert not (c.directory / "tool-results" / "toolu_00.txt").exists()
            assert "# file 0" in read(messages_server, other, names[0])


@pytest.mark.parametrize("name", ["result:../secret", "result:", "result:a/b", "result:.x", "src/result:a", "result"])
def test_only_a_plain_file_name_can_follow_the_prefix(name: str) -> None:
    assert named_by(name) is None
