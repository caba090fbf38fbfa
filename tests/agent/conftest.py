"""A project and agents that work on it; everything a test opens is closed at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lamina.agent.agent import Agent
from lamina.testing import MessagesServer

from .agent_helpers import PROJECT, Wiretap, lay_out, provider_at


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return lay_out((tmp_path / "project").resolve(), PROJECT)


@pytest.fixture(autouse=True)
def no_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the ranker alone select memories: a model's selection would arrive between the requests that tests count."""
    monkeypatch.setenv("LAMINA_RECALL_SELECTOR", "local")


@pytest.fixture
def opened(project: Path, messages_server: MessagesServer) -> Iterator[Callable[..., Agent]]:
    """Return a function that opens an agent in the project. `wire` and `waits` go to the provider, the rest to Agent.open."""
    agents: list[Agent] = []

    def make(server: MessagesServer | Wiretap | None = None, *, wire: str = "messages", **given: Any) -> Agent:
        own = {name: given.pop(name) for name in ("waits", "max_retries") if name in given}
        provider = given.pop("provider", None) or provider_at(server or messages_server, wire, **own)
        agents.append(Agent.open(provider, **{"cwd": project, "mode": "all", **given}))
        return agents[-1]

    yield make
    for agent in agents:
        agent.close()
        close = getattr(agent.session.provider, "close", None)
        if close is not None:
            close()


@pytest.fixture
def wiretap(messages_server: MessagesServer) -> Iterator[Wiretap]:
    tap = Wiretap(messages_server)
    yield tap
    tap.close()
