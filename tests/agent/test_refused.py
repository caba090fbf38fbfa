"""A server that refuses content of a conversation: the agent's loop repairs it once and continues."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lamina.agent.agent import Agent
from lamina.core.errors import BadRequest
from lamina.testing import MessagesServer

Open = Callable[..., Agent]
BOUND = "messages.1.content.0: Invalid `signature` in `thinking` block"


def thoughts(server: MessagesServer) -> list[int]:
    return [
        sum(block["type"] == "thinking" for message in received.messages for block in message["content"])
        for received in server.requests
    ]


@pytest.mark.spec("C11")
def test_a_refused_request_is_mended_and_the_turn_goes_on(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    messages_server.reply(thinking="hm", text="Hello.")
    agent.run("Hi.")
    messages_server.fail(400, message=BOUND)
    messages_server.reply(text="Still here.")
    answer = agent.run("Are you there?")
    assert (answer.text, answer.rounds) == ("Still here.", 1)
    messages_server.reply(text="And here.")
    assert agent.run("And now?").text == "And here."
    assert thoughts(messages_server) == [0, 1, 0, 0]
    assert agent.session.status.cache_breaks == 1


def test_a_server_that_refuses_twice_is_heard(opened: Open, messages_server: MessagesServer) -> None:
    agent = opened()
    messages_server.reply(thinking="hm", text="Hello.")
    agent.run("Hi.")
    messages_server.fail(400, message=BOUND, times=2)
    with pytest.raises(BadRequest, match="signature"):
        agent.run("Are you there?")
    assert len(messages_server.requests) == 3
    messages_server.reply(text="Here.")
    assert agent.run("And now?").text == "Here."
