"""The plugin in Claude Code itself, offline, against the test server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.cli.running import here
from tests.session.other_readers import CLAUDE_CODE, SECONDS

import lamina
from lamina.testing import MessagesServer


@pytest.mark.exhaustive
@pytest.mark.spec("U5")
def test_claude_code_loads_the_plugin_with_its_hooks_and_its_server(tmp_path: Path) -> None:
    project, home = tmp_path / "project", Path.home()
    project.mkdir()
    with lamina.Memory.open(project) as memory:
        memory.save("redis", type="project", description="Redis was dropped in favour of SQLite", body="One file is enough.")
    assert here("install", "claude-code").returncode == 0
    with MessagesServer() as server:
        server.reply(tool_use=("Bash", {"command": "seq 1 9000", "description": "count"}))
        server.reply(tool_use=("mcp__plugin_lamina_mem__memory_search", {"query": "redis"}))
        server.reply(text="done")
        environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "PYTHONPYCACHEPREFIX") if name in os.environ}
        environment |= {"HOME": str(home), "LAMINA_HOME": os.environ["LAMINA_HOME"], "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}
        environment |= {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "any",
        }
        command = [str(CLAUDE_CODE), "-p", "Why did we drop Redis?", "--model", "claude-opus-4-6", "--allowedTools"]
        done = subprocess.run(
            [*command, "Bash", "mcp__plugin_lamina_mem"],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr
        first, second, third = (request.body["messages"] for request in server.requests)
    assert "<memory-index>" in json.dumps(first)  # SessionStart
    assert "One file is enough." in json.dumps(first)  # UserPromptSubmit
    assert "This result has 43,893 bytes" in json.dumps(second[-1])  # PostToolUse
    assert "One file is enough." in json.dumps(third[-1])  # the server's own tool
    assert "hook_prompt" not in json.dumps(third)  # unlisted, so it takes no room
    assert here("uninstall", "claude-code").returncode == 0
    assert not (home / ".claude" / "skills").exists()
    assert not (home / ".claude" / "plugins" / "data" / "lamina-skills-dir").exists()
