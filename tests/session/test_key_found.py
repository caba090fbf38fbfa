"""A session with a provider's name uses the client it is given, else the key in the environment; without either it cannot call."""

from __future__ import annotations

import pytest
from tests.session.plain import Session

from lamina.agent.agent import Agent
from lamina.core.errors import SettingError
from lamina.session.base import side_provider
from lamina.testing import MessagesServer

MODEL = "anthropic:claude-sonnet-5-5"


@pytest.fixture
def key(messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)


@pytest.mark.usefixtures("key")
def test_a_key_in_the_environment_is_enough_to_ask(messages_server: MessagesServer) -> None:
    messages_server.reply(text="Here.")
    with Session(MODEL, in_memory=True) as session:
        session.add_user("Are you there?")
        assert session.ask().text == "Here."
        assert side_provider(session) is session.provider


@pytest.mark.usefixtures("key")
def test_an_agent_finds_it_too(messages_server: MessagesServer) -> None:
    messages_server.reply(text="Done.")
    with Agent.open(MODEL, in_memory=True) as agent:
        assert agent.run("Do it.").text == "Done."


def test_without_one_requests_are_prepared_and_a_call_says_what_is_missing() -> None:
    with Session(MODEL, in_memory=True) as session:
        session.add_user("Are you there?")
        assert session.before_call()["model"] == "claude-sonnet-5-5"
        with pytest.raises(SettingError, match="neither an API key, a client nor a base URL"):
            session.ask()
