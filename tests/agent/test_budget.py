"""Work requested in a conversation is not background work: agents run whatever the budget says."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.session.compacting import quiet

from lamina.agent.agent import Agent
from lamina.disk.home.ledger import day_of, read_ledger_day
from lamina.layers.l7_agents.types import AGENT
from lamina.session.base import working
from lamina.testing import MessagesServer

from .agent_helpers import PATIENCE

Open = Callable[..., Agent]


@pytest.mark.spec("B9")
def test_an_agent_in_the_background_runs_and_is_no_line_of_the_ledger(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened(settings=quiet(budget_calls=0, extraction=False))
    call = (AGENT, {"description": "look", "prompt": "look around", "run_in_background": True}, "a1")
    messages_server.reply(tool_use=call)
    messages_server.reply(text="It works in the background.")
    messages_server.reply(text="All is well.", fork="agent")
    agent.run("Look around")
    with working(agent.session) as c:
        background, home = c.background, c.home
    for name in background.names:
        assert background.wait(name, PATIENCE)
    assert [received.fork for received in messages_server.requests if received.fork]
    assert agent.session.status.budget_exhausted is None
    assert home is not None
    assert read_ledger_day(home, day_of(time.time())) == []
