"""A session closes the connections that it opened, and no others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anthropic
import pytest

import lamina
from lamina.providers.anthropic import AnthropicProvider
from lamina.testing import MessagesServer

MODEL = "anthropic:claude-sonnet-5-5"


@pytest.fixture
def served(messages_server: MessagesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MessagesServer:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    messages_server.reply(text="Hello.")
    return messages_server


def client_of(session: Any) -> anthropic.Anthropic:
    assert isinstance(session.provider, AnthropicProvider)
    client: anthropic.Anthropic = session.provider._clients.sync()
    return client


def test_a_session_closes_the_client_that_it_opened(served: MessagesServer) -> None:
    with lamina.Session(MODEL) as session:
        session.add_user("hello")
        session.ask()
        client = client_of(session)
        assert not client.is_closed()
    assert client.is_closed()


def test_an_async_session_closes_the_client_that_it_opened(served: MessagesServer) -> None:
    async def talk() -> anthropic.AsyncAnthropic:
        async with lamina.AsyncSession(MODEL) as session:
            session.add_user("hello")
            await session.ask()
            assert isinstance(session.provider, AnthropicProvider)
            client: anthropic.AsyncAnthropic = session.provider._clients.asynchronous(asyncio.get_running_loop())
        return client

    assert asyncio.run(talk()).is_closed()


def test_a_client_that_was_passed_in_stays_open(served: MessagesServer) -> None:
    with anthropic.Anthropic() as client:
        with lamina.Session(MODEL, client=client) as session:
            session.add_user("hello")
            session.ask()
        assert not client.is_closed()
