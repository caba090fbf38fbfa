"""Command output beyond its threshold: one file named after the call, a preview for the model, pages by Read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from lamina.agent.agent import Agent
from lamina.core.policy import CLASSIC, OncePolicy
from lamina.core.records import Spill
from lamina.providers.anthropic import AnthropicProvider
from lamina.testing import MessagesServer

from .agent_helpers import accepted, records, results

Open = Callable[..., Agent]


@pytest.mark.spec("R2", "R5")
@pytest.mark.parametrize("command", ["seq 1 50000; true", "seq 1 50000"])
def test_a_long_output_lies_in_one_file_and_read_pages_it(opened: Open, messages_server: MessagesServer, command: str) -> None:
    agent = opened()
    assert agent.session.path is not None
    place = agent.session.path.with_suffix("") / "tool-results"
    messages_server.reply(tool_use=("Bash", {"command": command}, "b1"))
    messages_server.reply(tool_use=("Read", {"file_path": str(place / "b1.txt"), "offset": 49_990}, "r1"))
    messages_server.reply(text="Done.")
    agent.run("Count.")
    _, first, second = accepted(messages_server)
    said = results(first)["b1"]
    assert said.startswith("<persisted-output>")
    assert str(place / "b1.txt") in said
    assert "50000\t50000" in results(second)["r1"]
    assert [path.name for path in place.iterdir()] == ["b1.txt"]
    assert (place / "b1.txt").read_text() == "".join(f"{number}\n" for number in range(1, 50_001))
    (spill,) = (record for record in records(agent) if isinstance(record, Spill))
    assert spill.path == str(place / "b1.txt")


def test_a_command_that_fails_keeps_its_beginning_and_its_end(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    messages_server.reply(tool_use=("Bash", {"command": "seq 1 50000; false"}, "b1"))
    messages_server.reply(text="It failed.")
    agent.run("Count.")
    # This much output makes notes due, and their request may come last.
    (said,) = (found["b1"] for each in accepted(messages_server) if "b1" in (found := results(each)))
    assert said.startswith("!Exit code 1")
    assert "\n50000\n" in said
    assert "The whole output is in" in said


@pytest.mark.spec("P3", "R5")
def test_read_opens_the_original_of_an_output_that_was_shown_once(opened: Open, messages_server: MessagesServer) -> None:
    provider = AnthropicProvider("claude-sonnet-4-6", base_url=messages_server.url, api_key="any")
    agent = opened(provider=provider, policy=replace(CLASSIC, once=OncePolicy(from_chars=1_500, preview=500)))
    messages_server.reply(tool_use=("Bash", {"command": "seq 1 2000"}, "b1"))
    messages_server.reply(tool_use=("Read", {"file_path": "result:b1.txt", "offset": 1_990}, "r1"))
    messages_server.reply(text="Done.")
    agent.run("Count.")
    _, first, second = accepted(messages_server)
    assert "\n1999\n" in results(first)["b1"]
    preview = second.messages[-3]["content"][0]["content"]
    assert "All of it is in result:b1.txt\n" in preview
    assert "\n1999\n" not in preview
    assert "1999\t1999" in results(second)["r1"]
