"""The plugin in Claude Code itself, offline, against the test server."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
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
    assert json.dumps(first).count("One file is enough.") == 1  # UserPromptSubmit
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
@pytest.mark.spec("U5", "X2")
def test_claude_code_without_a_user_extracts_nothing(project: Path) -> None:
    with MessagesServer() as server:
        server.reply(text="Fine.")
        claude(project, server, "-p", "I prefer short commit messages from now on.")
    with lamina.Memory.open(project) as memory:
        assert [topic.name for topic in memory.topics()] == ["redis"]


@pytest.mark.exhaustive
@pytest.mark.spec("U5")
def test_a_plugin_directory_works_too(project: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(Path.home() / ".claude" / "skills" / "lamina", copy)
    here("uninstall", "claude-code")
    first, second = session(project, "--plugin-dir", str(copy))
    assert "<memory-index>" in first
    assert first.count("One file is enough.") == 1
    assert "This result has 43,893 bytes" in second


def session(project: Path, *arguments: str, command: str = "seq 1 9000") -> list[str]:
    """Run a session of one prompt and one command, and return the messages of its requests."""
    with MessagesServer() as server:
        server.reply(tool_use=("Bash", {"command": command, "description": "count"}))
        server.reply(text="done")
        assert claude(project, server, "-p", "Why did we drop Redis?", *arguments) == "done"
        return [json.dumps(request.body["messages"]) for request in server.requests]


# What the server's process does before it starts. A stopped process is not continued.
FAULTS = {
    "dead": "exit 1",
    "stopped": "kill -STOP $$",
    "garbage": "yes garbage | head -c 100000",
    "garbage alone": "yes garbage | head -c 100000; exec cat > /dev/null",
    "late": "sleep 3",
}


@pytest.mark.exhaustive
@pytest.mark.spec("U5")
@pytest.mark.parametrize("fault", [*FAULTS, "stopped halfway", "killed halfway"])
def test_whatever_the_server_does_the_session_goes_on_and_the_first_prompt_has_its_memory_once(
    project: Path, tmp_path: Path, fault: str
) -> None:
    servers, process = Path.home() / ".claude/skills/lamina/.mcp.json", tmp_path / "process"
    entry = json.loads(servers.read_text())["mcpServers"]["mem"]
    start = shlex.join([entry["command"], *entry["args"]])
    line = f"echo $$ > {process}; {FAULTS.get(fault, ':')}; exec {start}"
    servers.write_text(json.dumps({"mcpServers": {"mem": {"command": "/bin/sh", "args": ["-c", line]}}}))
    signal = {"stopped halfway": "STOP", "killed halfway": "KILL"}.get(fault, "0")
    first, second = session(project, command=f"kill -{signal} $(cat {process}); seq 1 9000")
    assert first.count("One file is enough.") == 1
    assert "9000" in second or "This result has" in second
    with suppress(ProcessLookupError):  # Claude Code ends the server, as a rule
        os.kill(int(process.read_text()), 9)
    told = json.loads(here("doctor", "--json", cwd=project).stdout)["findings"]
    kinds = {found["kind"] for found in told}
    assert "plugin-hooks" in kinds or fault in ("garbage", "late", "killed halfway")


@pytest.mark.exhaustive
@pytest.mark.spec("U5")
def test_a_call_of_a_server_that_hangs_ends_with_an_error(project: Path, tmp_path: Path) -> None:
    servers, process = Path.home() / ".claude/skills/lamina/.mcp.json", tmp_path / "process"
    entry = json.loads(servers.read_text())["mcpServers"]["mem"]
    line = f"echo $$ > {process}; exec {shlex.join([entry['command'], *entry['args']])}"
    short = {**entry, "command": "/bin/sh", "args": ["-c", line], "timeout": entry["timeout"] // 10}
    servers.write_text(json.dumps({"mcpServers": {"mem": short}}))
    with MessagesServer() as server:
        server.reply(tool_use=("Bash", {"command": f"kill -STOP $(cat {process})", "description": "stop"}))
        server.reply(tool_use=("mcp__plugin_lamina_mem__memory_search", {"query": "redis"}))
        server.reply(text="done")
        assert claude(project, server, "-p", "What is known of Redis?") == "done"
        assert "timed out after 3s" in json.dumps(server.requests[-1].body["messages"][-1])
    with suppress(ProcessLookupError):
        os.kill(int(process.read_text()), 9)


@pytest.mark.exhaustive
@pytest.mark.spec("U5")
def test_two_sessions_at_once_have_their_memory_once_each(project: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        for first, _ in pool.map(lambda _: session(project), range(2)):
            assert first.count("One file is enough.") == 1


@pytest.mark.exhaustive
@pytest.mark.spec("U5")
def test_a_home_that_cannot_be_used_costs_only_memory(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_HOME", "/dev/full")
    first, _ = session(project)
    assert "One file is enough." not in first
