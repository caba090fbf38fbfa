"""An agent that works through compactions: files, to-dos, instructions and hooks are restored, and the work continues."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.session.compacting import SECTIONS, boundaries, kinds, quiet, summaries, summarising, told

from lamina.agent.agent import Agent
from lamina.core.records import Boundary
from lamina.testing import MessagesServer, Received

from .agent_helpers import PATIENCE, accepted, texts

Open = Callable[..., Agent]
FILLING = "".join(f"value_{number} = {number}  # a line nobody will miss\n" for number in range(400))


def work(server: MessagesServer, agent: Agent, name: str) -> str:
    server.reply(tool_use=("Read", {"file_path": name}))
    server.reply(text=f"I have read {name}.")
    return agent.run(f"Read {name}").text


@pytest.mark.spec("C1", "C4", "B2")
def test_a_long_session_goes_through_compactions_and_keeps_what_matters(
    opened: Open, messages_server: MessagesServer, project: Path
) -> None:
    messages_server.answer_with(summarising())
    (project / "CLAUDE.md").write_text("Always answer in one line.")
    for number in range(12):
        (project / f"part{number}.py").write_text(FILLING)
    agent = opened(settings=quiet(), window=40_000)
    todos = [{"content": "read all parts", "status": "in_progress"}]
    messages_server.reply(tool_use=("TodoWrite", {"todos": todos}))
    messages_server.reply(text="Noted.")
    agent.run("Make a list.")
    (project / "CLAUDE.md").write_text("Always answer in two lines.")
    for number in range(12):
        assert work(messages_server, agent, f"part{number}.py") == f"I have read part{number}.py."
    made = boundaries(agent.session)
    assert len(made) >= 2
    assert all(isinstance(one, Boundary) for one in made)
    text = "\n".join(words for message in accepted(messages_server)[-1].messages for words in texts(message))
    assert SECTIONS.splitlines()[0] in text
    assert "Always answer in two lines." in text
    assert "Always answer in one line." not in text
    assert "read all parts" in text
    assert "Make a list." in text, "the person's words from before both"
    assert kinds(agent.session).count("attachment:instructions") == 1
    assert "attachment:file" in kinds(agent.session)
    assert "part0.py" in text
    assert all(received.status == 200 for received in messages_server.requests)
    assert not told(agent.session, "layer_failed")
    messages_server.reply(tool_use=("Edit", {"file_path": "part11.py", "old_string": "value_0 = 0", "new_string": "value_0 = 1"}))
    messages_server.reply(text="Changed.")
    agent.run("Change it")
    assert (project / "part11.py").read_text().startswith("value_0 = 1"), "what was read before is still known to be read"


@pytest.mark.spec("C2", "C4")
def test_the_persons_own_hooks_stand_around_it(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    messages_server.answer_with(summarising())
    say = "import json, sys; print(json.load(sys.stdin)['hook_event_name'] + ' was here')"
    command = f'{sys.executable} -c "{say}"'
    hook = [{"hooks": [{"type": "command", "command": command}]}]
    agent = opened(settings=quiet(hooks={"PreCompact": hook, "SessionStart": [{"matcher": "compact", **hook[0]}]}))
    (project / "big.py").write_text(FILLING)
    work(messages_server, agent, "big.py")
    assert agent.compact("Be short.").done
    asked = summaries(messages_server)[0].messages[-1]["content"][-1]["text"]
    assert "Be short.\n\nPreCompact was here" in asked
    assert any("SessionStart was here" in words for message in agent.session.messages for words in texts(message))


@pytest.mark.exhaustive
@pytest.mark.spec("Z4", "B1")
def test_killed_while_the_summary_is_made(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    """A resumed session has every message, and compacts again when it must."""
    for number in range(8):
        (project / f"part{number}.py").write_text(FILLING)
    messages_server.answer_with(summarising())
    agent = opened(settings=quiet(), window=40_000, session_id="killed")
    for number in range(3):
        work(messages_server, agent, f"part{number}.py")
    agent.close()
    before = agent.session.messages
    arrived, never = threading.Event(), threading.Event()

    def seen(received: Received) -> bool:
        arrived.set()
        return True

    messages_server.reply(text="late", fork="summary", when=seen, delay=never)
    code = (
        "import sys; from lamina import Agent; from lamina.providers.anthropic import AnthropicProvider\n"
        "provider = AnthropicProvider('claude-sonnet-5-5', api_key='any', base_url=sys.argv[1])\n"
        "agent = Agent.open(provider, cwd=sys.argv[2], resume='killed', mode='all', window=40_000)\n"
        "agent.compact()\n"
    )
    dead = subprocess.Popen([sys.executable, "-c", code, messages_server.url, str(project)])
    try:
        assert arrived.wait(PATIENCE)
    finally:
        dead.kill()
        dead.wait(PATIENCE)
        never.set()
    again = opened(settings=quiet(), window=40_000, resume="killed")
    assert again.session.id == "killed"
    assert again.session.messages[: len(before)] == before
    assert not boundaries(again.session)
    assert again.compact().done
    assert work(messages_server, again, "part3.py") == "I have read part3.py."


@pytest.mark.spec("P7")
def test_the_model_has_no_compact_tool_unless_the_settings_offer_it(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.reply(text="Hello.")
    agent = opened(settings=quiet())
    agent.run("Hi")
    assert "Compact" not in [tool["name"] for tool in accepted(messages_server)[-1].body["tools"]]
    assert "Compact" not in [tool.name for tool in agent.tools]


@pytest.mark.spec("P7")
def test_the_model_compacts_between_two_calls_and_works_on(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    messages_server.answer_with(summarising())
    for number in range(3):
        (project / f"part{number}.py").write_text(FILLING)
    agent = opened(settings=quiet(compact_tool=True), window=60_000)
    assert "Compact" in [tool.name for tool in agent.tools]
    for number in range(3):
        work(messages_server, agent, f"part{number}.py")
    messages_server.reply(tool_use=("Compact", {"instructions": "Keep value_7."}))
    messages_server.reply(text="On to the next part.")
    assert agent.run("The first part is done.").text == "On to the next part."
    assert len(boundaries(agent.session)) == 1
    last = accepted(messages_server)[-1]
    text = "\n".join(words for message in last.messages for words in texts(message))
    assert "The first part is done." in text
    assert "will be compacted before your next step" in text
    assert "Keep value_7." in str(summaries(messages_server)[0].messages[-1])
    assert last.body["tools"] == accepted(messages_server)[0].body["tools"]
