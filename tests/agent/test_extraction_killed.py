"""kill -9 between two writes of a review: saved files are complete, and the resumed session reviews the same messages again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event as Gate

import pytest

from lamina.agent.agent import Agent
from lamina.fork.fork import directive_in
from lamina.memory.memory import Memory
from lamina.testing import MessagesServer

from .agent_helpers import PATIENCE
from .test_extraction import RULE, WORDS, Watched, arrives, forks

pytestmark = pytest.mark.exhaustive

PROGRAM = """
import sys
from lamina import Agent
from lamina.providers.anthropic import AnthropicProvider

url, directory, words = sys.argv[1:]
provider = AnthropicProvider("claude-sonnet-5-5", api_key="any", base_url=url)
with Agent.open(provider, cwd=directory, session_id="killed", mode="all", interactive=True) as agent:
    agent.run(words)
"""


@pytest.mark.spec("X4", "Z1")
def test_a_review_that_is_killed_leaves_whole_memories_and_the_old_cursor(
    opened: Callable[..., Agent], messages_server: MessagesServer, project: Path
) -> None:
    with Memory.open(project) as memory:
        path = memory.path / "testing-db.md"
    saved, never = Gate(), Gate()
    messages_server.reply(tool_use=("Write", {"file_path": str(path), "content": RULE}), fork="extraction")
    messages_server.reply(text="Too late.", fork="extraction", when=arrives(saved), delay=never)
    command = [sys.executable, "-c", PROGRAM, messages_server.url, str(project), WORDS]
    victim = subprocess.Popen(command, env=dict(os.environ), stdin=subprocess.DEVNULL)
    try:
        assert saved.wait(PATIENCE)
    finally:
        victim.kill()
        victim.wait(PATIENCE)
        never.set()
    with Memory.open(project) as memory:
        found = memory.get("testing-db")
        assert found is not None
        assert found.body == "Integration tests run against a real database.\n"
    one = Watched(opened, resume="killed")
    messages_server.reply(tool_use=("Write", {"file_path": str(path.with_name("twin.md")), "content": RULE}), fork="extraction")
    messages_server.reply(text="Done.", fork="extraction")
    one.run("Go on.")
    asked = directive_in(forks(messages_server)[-1].body) or ""
    assert f'begins with "{WORDS[:20]}' in asked, "the cursor did not move"
    assert "- [feedback] testing-db.md (" in asked
    assert one.files == ["MEMORY.md", "testing-db.md"], "what is there is not written twice"
