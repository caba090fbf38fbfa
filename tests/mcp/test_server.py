"""The MCP server, spoken to by the SDK's own client in another process."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from tests.history.agents import claude_home

import lamina
from mcp import Client, StdioServerParameters

Talk = Callable[[Client], Awaitable[None]]


def talk(project: Path, run: Talk, *arguments: str) -> None:
    """Start `lamina mcp` in the project and run one conversation with it."""
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "lamina", "mcp", *arguments], cwd=project, env={**os.environ}
    )

    async def main() -> None:
        with anyio.fail_after(120):
            async with Client(server) as client:
                await run(client)

    anyio.run(main)


async def call(client: Client, tool: str, /, **arguments: Any) -> str:
    done = await client.call_tool(tool, arguments)
    assert done.structured_content is None
    [block] = done.content
    assert block.type == "text"
    return f"{'error: ' if done.is_error else ''}{block.text}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.mark.spec("U4")
def test_a_client_saves_finds_changes_and_removes_a_memory(project: Path) -> None:
    async def run(client: Client) -> None:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"memory_search", "memory_read", "memory_save", "memory_update", "memory_remove", "memory_list"} <= offered.keys()
        assert await call(client, "memory_list") == "No memories yet."
        said = {"type": "project", "description": "Deploys are on Tuesday", "body": "We deploy on Tuesdays, after the audit."}
        assert await call(client, "memory_save", name="deploy-day", **said) == "Saved deploy-day."
        assert "after the audit" in await call(client, "memory_search", query="when do we deploy", k=3)
        assert await call(client, "memory_update", name="deploy-day", body="We deploy on Fridays.") == "Updated deploy-day."
        rule = {
            "type": "feedback",
            "description": "Deploys use the force option",
            "body": "All deploys must use the force option.",
        }
        assert (await call(client, "memory_save", name="deploys", **rule)).startswith("The change waits for the user's approval.")
        whole = await call(client, "memory_read", name="deploy-day")
        assert "We deploy on Fridays." in whole
        assert "over MCP" in whole
        with lamina.Memory.open(project) as memory:
            topic = memory.get("deploy-day")
        assert topic is not None
        assert topic.fields["origin"] == "mcp over MCP"
        assert [resource.uri for resource in (await client.list_resources()).resources] == ["lamina://memory/deploy-day"]
        assert (await client.list_resources()).next_cursor == "sessions"
        assert (await client.list_resources(cursor="sessions")).resources == []
        assert len((await client.list_resource_templates()).resource_templates) == 2
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["recall", "wrap_up"]
        [read] = (await client.read_resource("lamina://memory/deploy-day")).contents
        assert "Fridays" in getattr(read, "text", "")
        [asked] = (await client.get_prompt("recall", {"subject": "deploys"})).messages
        assert "Fridays" in getattr(asked.content, "text", "")
        assert (await call(client, "memory_remove", name="deploy-day")).startswith("Removed deploy-day.")
        assert await call(client, "memory_search", query="deploy") == "No memory matches. Try other words."

    talk(project, run)
    with lamina.Memory.open(project) as memory:
        assert [(version.action, version.why.who if version.why else "") for version in memory.log("deploy-day")] == [
            ("remove", "agent"),
            ("save", "agent"),
            ("save", "agent"),
        ]


@pytest.mark.spec("U4")
def test_bad_input_gets_one_sentence_and_the_server_goes_on(project: Path) -> None:
    async def run(client: Client) -> None:
        assert await call(client, "memory_search", query="x", k="many") == (
            "error: memory_search: k must be a whole number from 1 to 50, not 'many'."
        )
        assert (await call(client, "memory_search")).startswith("error: memory_search: query is missing.")
        assert (await call(client, "memory_read", name="none")).startswith("error: memory_read: name: no memory is called 'none'")
        assert (await call(client, "memory_update", name="none", body="x")).startswith("error: memory_update: name:")
        large = {"name": "large", "type": "project", "description": "d", "body": "x" * 10_000_000}
        assert (await call(client, "memory_save", **large)).startswith("error: memory_save: body ")
        assert (await call(client, "none")).startswith("error: Unknown tool 'none'")
        with pytest.raises(MCPError, match="unknown resource"):
            await client.read_resource("lamina://../etc/passwd")
        with pytest.raises(MCPError, match="subject: is missing"):
            await client.get_prompt("recall", {})
        answers = [
            await call(client, "memory_save", name=f"m{number}", type="project", description="d", body=f"Body {number}.")
            for number in range(70)
        ]
        assert [answer[:5] for answer in answers[:60]] == ["Saved"] * 60
        assert {answer[:60] for answer in answers[60:]} == {
            "error: memory_save: Memory accepts 60 changes per minute from a client"[:60]
        }

    talk(project, run)


WRONG = {"string": 7, "integer": "many"}
RIGHT = {"string": "text", "integer": 1}


@pytest.mark.exhaustive
@pytest.mark.spec("U4")
def test_a_wrong_type_is_refused_by_every_tool_with_the_name_of_the_field(project: Path) -> None:
    async def run(client: Client) -> None:
        tried = 0
        for tool in (await client.list_tools()).tools:
            fields = tool.input_schema["properties"]
            right = {name: field.get("enum", [RIGHT[field["type"]]])[0] for name, field in fields.items()}
            for name, field in fields.items():
                answer = await call(client, tool.name, **{**right, name: WRONG[field["type"]]})
                assert answer.startswith(f"error: {tool.name}: {name} must be "), answer
                tried += 1
        assert tried >= 8

    talk(project, run)


@pytest.mark.exhaustive
@pytest.mark.spec("U4")
def test_100_megabytes_are_refused_and_the_server_goes_on(project: Path) -> None:
    async def run(client: Client) -> None:
        large = {"name": "large", "type": "project", "description": "d", "body": "x" * 100_000_000}
        assert (await call(client, "memory_save", **large)).startswith("error: memory_save: body is too long")
        assert await call(client, "memory_list") == "No memories yet."

    talk(project, run)


@pytest.mark.spec("U4", "U3")
def test_past_sessions_of_the_project_are_searched_and_read_without_secrets(project: Path, tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "Ab3" * 30
    with lamina.Session("offline", cwd=project) as session:
        session.add_user(f"Why did we drop redis? My key is {key}")
        session.before_call()
        session.after_call({"role": "assistant", "content": [{"type": "text", "text": "Redis lost writes in the audit."}]})
        name = session.id
    (tmp_path / "other").mkdir()
    with lamina.Session("offline", cwd=tmp_path / "other") as session:
        session.add_user("Redis of another project")
    claude_home(Path(os.environ["HOME"]) / ".claude", project)

    async def run(client: Client) -> None:
        found = await call(client, "sessions_search", query="why was redis dropped")
        assert "Redis lost writes" in found
        assert "another project" not in found
        whole = await call(client, "session_read", session_id=name[:8])
        assert "Why did we drop redis?" in whole
        assert key not in whole
        listed = [resource.uri for resource in (await client.list_resources(cursor="sessions")).resources]
        assert f"lamina://session/{name}" in listed
        [text] = (await client.read_resource(f"lamina://session/{name}")).contents
        assert key not in getattr(text, "text", key)
        assert "tokens" in await call(client, "context_report", session_id=name)
        assert "tokens" in await call(client, "context_report")
        assert (await call(client, "session_read", session_id="0000")).startswith(
            "error: session_read: session_id: no session '0000'"
        )
        assert "turn 9 does not exist" in await call(client, "session_read", session_id=name, turn=9)
        assert "session agent-c0 of Claude Code" in await call(client, "sessions_search", query="count the tests")
        assert "There are 12 tests." in await call(client, "session_read", session_id="agent-c0")

    talk(project, run)


@pytest.mark.spec("U4", "U1")
def test_a_mode_that_changes_holds_at_the_next_call(project: Path) -> None:
    settings = Path(os.environ["LAMINA_HOME"]) / "settings.json"
    said = {"type": "project", "description": "d", "body": "Something."}

    async def run(client: Client) -> None:
        assert await call(client, "memory_save", name="first", **said) == "Saved first."
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text('{"lamina": {"memoryMode": {"private": "confirm"}}}')
        assert (await call(client, "memory_save", name="second", **said)).startswith("The change waits for the user's approval")
        settings.write_text('{"lamina": {"memoryMode": {"private": "read-only"}}}')
        assert "read-only" in await call(client, "memory_save", name="third", **said)
        assert (await call(client, "memory_list")).startswith("first (project)")

    talk(project, run)
