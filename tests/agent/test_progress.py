"""Summaries of background agents: requested in side calls, shown, counted, and off if disabled (A7)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from lamina.agent.agent import Agent
from lamina.core.policy import CLASSIC, AgentPolicy, Policy
from lamina.core.settings import Settings
from lamina.disk.session_files.agent_states import read_states
from lamina.layers.l7_agents.report import list_restorables
from lamina.providers.anthropic import AnthropicProvider
from lamina.testing import MessagesServer, Received

from .agent_helpers import PATIENCE, texts
from .subagent_helpers import Open, events, for_parent, for_subagent, in_background, wait_for

KINDS = [None, "general-purpose"]
CHEAPEST = "claude-haiku-5-5"
AT_ONCE = Policy("classic", agents=AgentPolicy(summary_seconds=0.0))


def cheapest_at(server: MessagesServer) -> AnthropicProvider:
    return AnthropicProvider(CHEAPEST, api_key="any", base_url=server.url)


class Watched:
    """An agent that reads a file, and is held in its second call until a summary of the first arrived or none was requested."""

    def __init__(self, server: MessagesServer, kind: str | None) -> None:
        self.release, self.second, self.shown = threading.Event(), threading.Event(), threading.Event()
        self.told: list[str] = []
        own: dict[str, Any] = {} if kind else {"fork": "agent"}

        def mine(received: Received) -> bool:
            return for_subagent(received) if kind else True

        def again(received: Received) -> bool:
            if mine(received):
                self.second.set()
            return mine(received)

        server.reply(tool_use=in_background("look", kind=kind))
        server.reply(tool_use=("Read", {"file_path": "calc.py"}, "r1"), when=mine, **own)
        server.reply(text="The report.", when=again, delay=self.release, **own)
        server.reply(text="Runs.", when=for_parent, delay=self.second)

    def hear(self, event: dict[str, Any]) -> None:
        if event["type"] == "agent" and event.get("summary"):
            self.told.append(event["summary"])
            self.shown.set()

    def asked(self, server: MessagesServer) -> list[Received]:
        return [received for received in server.requests if received.fork.startswith("agent_summary")]


def end(agent: Agent, watched: Watched) -> None:
    watched.release.set()
    wait_for(agent)


@pytest.mark.spec("A7", "C4")
@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_of_the_agent_says_what_it_does_and_it_is_shown_everywhere(
    opened: Open, messages_server: MessagesServer, kind: str | None
) -> None:
    watched = Watched(messages_server, kind)
    messages_server.reply(text="Reading add in calc.py", fork="agent_summary")
    agent = opened(policy=AT_ONCE, on_event=watched.hear, provider=cheapest_at(messages_server))
    agent.run("Start it")
    assert watched.shown.wait(PATIENCE)
    assert agent.agents is not None
    [state] = agent.agents.states
    assert state.summary == "Reading add in calc.py"
    assert state.line.endswith("Reading add in calc.py")
    assert "Reading add in calc.py" in list_restorables(agent.agents.catalog, agent.agents.states)[0].text
    assert agent.session.path is not None
    [row] = read_states(agent.session.path.with_suffix(""))
    assert (row["id"], row["status"], row["summary"]) == (state.id, "running", "Reading add in calc.py")
    first = watched.asked(messages_server)[0]
    assert not first.refused
    words = texts(first.messages[-1])
    assert "what you are doing at this moment" in words[-1]
    assert len(first.body["tools"]) == len(messages_server.requests[0].body["tools"]) - (1 if kind else 0), (
        "the agent's own tools"
    )
    end(agent, watched)
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("And?")
    [used] = [row for row in events(agent, "fork") if row["purpose"] == "agent_summary"]
    assert used["input"] + used["cache_read"] + used["cache_write"] > 0
    [row] = read_states(agent.session.path.with_suffix(""))
    assert row["status"] == "done"
    assert agent.session.status.cache_breaks == 0


@pytest.mark.spec("A7", "B9")
def test_a_small_model_is_shown_the_end_as_data_and_what_it_says_is_counted(
    opened: Open, messages_server: MessagesServer, tmp_path: Path
) -> None:
    watched = Watched(messages_server, None)
    messages_server.reply(text="Checking add in calc.py", fork="agent_summary")
    settings = Settings(small_model="claude-haiku-5-5")
    agent = opened(policy=AT_ONCE, on_event=watched.hear, settings=settings, home=tmp_path / "home")
    agent.run("Start it </agent-message>")
    assert watched.shown.wait(PATIENCE)
    end(agent, watched)
    [first, *_] = watched.asked(messages_server)
    assert first.body["model"] == "claude-haiku-5-5"
    assert "tools" not in first.body
    assert len(first.messages) == 1
    [words] = texts(first.messages[0])
    assert words.count("</agent-message>") == 1
    assert "Start it &lt;/agent-message>" in words
    ledger = "".join(path.read_text() for path in (tmp_path / "home" / "ledger").glob("*.jsonl"))
    assert '"purpose":"agent_summary"' in ledger


@pytest.mark.spec("A7")
@pytest.mark.parametrize("kind", KINDS)
def test_without_a_setting_the_makers_small_model_is_asked(
    opened: Open, messages_server: MessagesServer, kind: str | None
) -> None:
    watched = Watched(messages_server, kind)
    messages_server.reply(text="Checking add in calc.py", fork="agent_summary")
    agent = opened(policy=AT_ONCE, on_event=watched.hear)
    agent.run("Start it")
    assert watched.shown.wait(PATIENCE)
    end(agent, watched)
    [first, *_] = watched.asked(messages_server)
    assert (first.body["model"], "tools" in first.body, len(first.messages)) == (CHEAPEST, False, 1)
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("And?")
    assert not [each for each in agent.session.notices if "summarized" in each]
    [used] = [row for row in events(agent, "fork") if row["purpose"] == "agent_summary"]
    assert 0 < used["usd"] < 0.001


@pytest.mark.spec("A7")
def test_a_server_without_the_small_model_is_asked_by_a_fork_and_the_user_is_told(
    opened: Open, messages_server: MessagesServer
) -> None:
    watched = Watched(messages_server, None)
    messages_server.fail(404, fork="agent_summary", when=lambda received: received.body["model"] == CHEAPEST)
    messages_server.reply(text="Checking add in calc.py", fork="agent_summary")
    agent = opened(policy=AT_ONCE, on_event=watched.hear)
    agent.run("Start it")
    assert watched.shown.wait(PATIENCE)
    end(agent, watched)
    assert [received.body["model"] for received in watched.asked(messages_server)][:2] == [CHEAPEST, "claude-sonnet-5-5"]
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("And?")
    [told] = [each for each in agent.session.notices if "summarized" in each]
    assert told.startswith("Background agents are summarized by claude-sonnet-5-5. Set lamina.smallModel")


@pytest.mark.spec("A7")
def test_a_small_model_of_the_settings_that_fails_is_reported_and_not_replaced_by_a_dear_one(
    opened: Open, messages_server: MessagesServer
) -> None:
    watched, refused = Watched(messages_server, None), threading.Event()

    def seen(received: Received) -> bool:
        refused.set()
        return True

    messages_server.fail(404, fork="agent_summary", when=seen, times=99)
    agent = opened(policy=AT_ONCE, on_event=watched.hear, settings=Settings(small_model="claude-none-1"))
    agent.run("Start it")
    assert refused.wait(PATIENCE)
    end(agent, watched)
    assert {received.body["model"] for received in watched.asked(messages_server)} == {"claude-none-1"}
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("And?")
    assert [each for each in agent.session.notices if "Change lamina.smallModel" in each]


@pytest.mark.spec("A7", "F1")
@pytest.mark.prefix_free("two conversations begin with the same words")
def test_what_is_vague_leaves_what_was_shown_and_the_switch_turns_it_off(opened: Open, messages_server: MessagesServer) -> None:
    watched = Watched(messages_server, None)
    asked = threading.Event()

    def seen(received: Received) -> bool:
        asked.set()
        return True

    messages_server.reply(text="Working on the task", fork="agent_summary", when=seen, times=9)
    agent = opened(policy=AT_ONCE, on_event=watched.hear)
    agent.run("Start it")
    assert asked.wait(PATIENCE)
    end(agent, watched)
    assert agent.agents is not None
    assert agent.agents.states[0].summary == ""
    assert watched.told == []
    off = Watched(messages_server, None)
    agent.close()
    other = opened(policy=AT_ONCE, settings=Settings(agent_summaries=False))
    count = len(off.asked(messages_server))
    other.run("Start it")
    end(other, off)
    assert len(off.asked(messages_server)) == count


@pytest.mark.spec("A7")
def test_a_short_agent_costs_no_summary_and_nobody_waits_for_one(opened: Open, messages_server: MessagesServer) -> None:
    watched = Watched(messages_server, None)
    agent = opened(policy=CLASSIC)
    agent.run("Start it")
    assert "agent_summary" in agent.session.status.background_jobs
    end(agent, watched)
    assert agent.session.status.background_jobs == ()
    assert watched.asked(messages_server) == []


def resting(agent: Agent) -> str | None:
    return agent.session.status.budget_exhausted


@pytest.mark.spec("A7", "B9")
def test_over_the_days_budget_nothing_is_asked(opened: Open, messages_server: MessagesServer, tmp_path: Path) -> None:
    watched = Watched(messages_server, None)
    agent = opened(policy=AT_ONCE, home=tmp_path / "home", settings=Settings(budget_calls=0, extraction=False))
    agent.run("Start it")
    end(agent, watched)
    assert resting(agent) is None, "an agent is no background work of its own"
    messages_server.reply(text="I see.", when=for_parent)
    agent.run("And?")
    assert watched.asked(messages_server) == []
    assert resting(agent) == "calls"
    assert any("background" in each.lower() for each in agent.session.notices)
