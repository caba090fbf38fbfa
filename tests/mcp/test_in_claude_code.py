"""The plugin in Claude Code itself, offline, against the test server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.cli.running import here
from tests.session.other_readers import CLAUDE_CODE, SECONDS

import lamina
from lamina.testing import MessagesServer


def claude(project: Path, server: MessagesServer, *arguments: str) -> str:
    """Run Claude Code once in the project and return what it prints."""
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "PYTHONPYCACHEPREFIX") if name in os.environ}
    environment |= {"HOME": str(Path.home()), "LAMINA_HOME": os.environ["LAMINA_HOME"], "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}
    environment |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "any"}
    command = [str(CLAUDE_CODE), *arguments, "--model", "claude-opus-4-6", "--allowedTools", "Bash", "mcp__plugin_lamina_mem"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one memory, and the plugin installed."""
    directory = tmp_path / "project"
    directory.mkdir()
    with lamina.Memory.open(directory) as memory:
        memory.save("redis", type="project", description="Redis was dropped in favour of SQLite", body="One file is enough.")
    assert here("install", "claude-code").returncode == 0
    return directory


@pytest.mark.exhaustive
@pytest.mark.spec("U5")
def test_claude_code_loads_the_plugin_with_its_hooks_and_its_server(project: Path) -> None:
    home = Path.home()
    with MessagesServer() as server:
        server.reply(tool_use=("Bash", {"command": "seq 1 9000", "description": "count"}))
        server.reply(tool_use=("mcp__plugin_lamina_mem__memory_search", {"query": "redis"}))
        server.reply(text="done")
        assert claude(project, server, "-p", "Why did we drop Redis?") == "done"
        first, second, third = (request.body["messages"] for request in server.requests)
    assert "<memory-index>" in json.dumps(first)  # SessionStart
    assert "One file is enough." in json.dumps(first)  # UserPromptSubmit
    assert "This result has 43,893 bytes" in json.dumps(second[-1])  # PostToolUse
    assert "One file is enough." in json.dumps(third[-1])  # the server's own tool
    assert "hook_prompt" not in json.dumps(third)  # unlisted, so it takes no room
    assert here("uninstall", "claude-code").returncode == 0
    assert not (home / ".claude" / "skills").exists()
    assert not (home / ".claude" / "plugins" / "data" / "lamina-skills-dir").exists()


@pytest.mark.exhaustive
@pytest.mark.spec("U5", "X1")
def test_claude_code_keeps_statements_in_memory_and_in_a_summary(project: Path) -> None:
    settings = Path(os.environ["LAMINA_HOME"]) / "settings.json"
    settings.write_text(json.dumps({"lamina": {"extractionNonInteractive": True, "provider": "offline"}}))
    said = "I prefer short commit messages from now on."
    with MessagesServer() as server:
        server.reply(text="Fine.")
        server.reply(text="<summary>Commit messages were discussed.</summary>")
        answer = json.loads(claude(project, server, "-p", said, "--output-format", "json"))
        claude(project, server, "-p", "/compact", "--resume", answer["session_id"])
        asked = json.dumps(server.requests[1].body["messages"][-1])
    with lamina.Memory.open(project) as memory:
        assert [topic.type for topic in memory.topics() if "short commit messages" in topic.body] == ["feedback"]  # Stop
    assert f"Keep these statements of the user in the summary, word for word:\\n- {said}" in asked  # PreCompact


@pytest.mark.exhaustive
@pytest.mark.spec("U5")
def test_a_plugin_directory_works_too_and_a_dead_server_costs_only_its_help(project: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(Path.home() / ".claude" / "skills" / "lamina", copy)
    here("uninstall", "claude-code")
    dead = json.dumps({"mcpServers": {"mem": {"command": "/bin/false", "args": []}}})
    for alive in (True, False):
        if not alive:
            (copy / ".mcp.json").write_text(dead)
        with MessagesServer() as server:
            server.reply(tool_use=("Bash", {"command": "seq 1 9000", "description": "count"}))
            server.reply(text="done")
            assert claude(project, server, "-p", "Why did we drop Redis?", "--plugin-dir", str(copy)) == "done"
            first, second = (json.dumps(request.body["messages"]) for request in server.requests)
        assert "<memory-index>" in first
        assert ("One file is enough." in first) is alive
        assert ("This result has 43,893 bytes" in second) is alive
