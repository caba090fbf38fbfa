"""Helpers for tests of agents: calls of the Agent tool, whose request is whose, and the agent events in the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lamina.agent.agent import Agent
from lamina.core.records import Event
from lamina.layers.l7_agents.types import AGENT
from lamina.session.base import working
from lamina.testing import MessagesServer, Received

from .agent_helpers import PATIENCE, records

Open = Callable[..., Agent]


def agent_call(prompt: str, number: int = 1, **given: Any) -> tuple[str, dict[str, Any], str]:
    return (AGENT, {"description": f"task {number}", "prompt": prompt, **given}, f"a{number}")


def in_background(prompt: str, number: int = 1, kind: str | None = None) -> tuple[str, dict[str, Any], str]:
    return agent_call(prompt, number, run_in_background=True, **({"subagent_type": kind} if kind else {}))


def of_fork(server: MessagesServer) -> list[Received]:
    return [received for received in server.requests if received.fork]


def of_subagent(server: MessagesServer) -> list[Received]:
    """Return the subagents' own requests, without those of their notes."""
    return [received for received in server.requests if for_subagent(received) and not received.fork]


def for_subagent(received: Received) -> bool:
    return received.session.startswith("agent-")


def for_parent(received: Received) -> bool:
    return not received.fork and not for_subagent(received)


def last_of_parent(server: MessagesServer) -> Received:
    """Return the parent's last request, after checking that all of its requests were valid. Background agents send theirs at any time."""
    own = [received for received in server.requests if for_parent(received)]
    assert [received.error for received in own if received.refused] == []
    return own[-1]


def events(agent: Agent, name: str) -> list[dict[str, Any]]:
    return [record.data for record in records(agent) if isinstance(record, Event) and record.name == name]


def wait_for(agent: Agent) -> None:
    """Wait until no agent works in the background."""
    with working(agent.session) as conversation:
        background = conversation.background
    for name in background.names:
        assert background.wait(name, PATIENCE)


def well_formed(received: Received) -> None:
    """Check that every call has its result in the next message, and every result its call."""
    open_calls: set[str] = set()
    for message in received.messages:
        ids = {block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"}
        assert ids == open_calls
        open_calls = {block["id"] for block in message["content"] if block["type"] == "tool_use"}
    assert not open_calls
