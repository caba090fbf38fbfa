"""A server that says the conversation is too long, whatever was counted: it is compacted and sent once more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import anthropic
import pytest
from tests.session.plain import AsyncSession, Session

from lamina.agent.agent import Agent
from lamina.core.errors import PromptTooLong
from lamina.core.settings import Settings
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import conversation_of
from lamina.testing import MessagesServer

NUMBERS = "prompt is too long: 201000 tokens > 200000 maximum"
SUMMARY = "<analysis>short</analysis><summary>## 1. Primary request and intent\nThe ports of services.</summary>"


@pytest.fixture
def provider(messages_server: MessagesServer) -> Iterator[AnthropicProvider]:
    with anthropic.Anthropic(api_key="any", base_url=messages_server.url, max_retries=0) as client:
        yield AnthropicProvider("claude-sonnet-5-5", client=client, max_retries=0)


def words(number: int) -> str:
    return f"What is the port of service {number}?"


def answers(server: MessagesServer, count: int) -> None:
    for number in range(count):
        server.reply(text=f"It is {8000 + number}. " + "some words that fill it " * 400)


def script(server: MessagesServer, sentence: str, times: int = 1) -> None:
    server.fail(400, message=sentence, times=times)
    server.reply(text=SUMMARY, fork="summary", times=times)
    server.reply(text="On we go.")


QUIET = Settings(session_notes=False)


@pytest.mark.spec("C7")
@pytest.mark.parametrize("sentence", [NUMBERS, "prompt is too long"], ids=["with numbers", "without"])
def test_a_session_compacts_and_sends_again(messages_server: MessagesServer, provider: AnthropicProvider, sentence: str) -> None:
    with Session(provider, in_memory=True, settings=QUIET) as session:
        answers(messages_server, 6)
        for number in range(6):
            session.add_user(words(number))
            session.ask()
        session.add_user("What is next?")
        script(messages_server, sentence)
        assert session.ask().text == "On we go."
        assert len(conversation_of(session).log.decisions) == 1
        assert "What is next?" in str(session.messages)


@pytest.mark.spec("C7")
def test_a_server_that_is_never_content_gives_its_own_error_and_nothing_is_lost(
    messages_server: MessagesServer, provider: AnthropicProvider
) -> None:
    with Session(provider, in_memory=True, settings=QUIET) as session:
        answers(messages_server, 6)
        for number in range(6):
            session.add_user(words(number))
            session.ask()
        session.add_user("What is next?")
        script(messages_server, NUMBERS, times=2)
        with pytest.raises(PromptTooLong):
            session.ask()
        assert "What is next?" in str(session.messages)
        assert session.ask().text == "On we go."


@pytest.mark.spec("C7")
def test_an_agent_and_an_async_session_do_the_same(
    messages_server: MessagesServer, provider: AnthropicProvider, tmp_path: Path
) -> None:
    with Agent.open(provider, cwd=tmp_path, home=tmp_path / "home", settings=QUIET) as agent:
        answers(messages_server, 4)
        for number in range(4):
            agent.run(words(number))
        script(messages_server, NUMBERS)
        assert agent.run("What is next?").text == "On we go."

    async def run() -> None:
        async with AsyncSession(provider, in_memory=True, settings=QUIET) as session:
            answers(messages_server, 4)
            for number in range(4):
                session.add_user(words(number))
                await session.ask()
            session.add_user("What is next?")
            script(messages_server, NUMBERS)
            assert (await session.ask()).text == "On we go."

    asyncio.run(run())


def test_a_loop_of_ones_own_hands_in_what_its_sdk_raised(messages_server: MessagesServer, provider: AnthropicProvider) -> None:
    with (
        anthropic.Anthropic(api_key="any", base_url=messages_server.url, max_retries=0) as client,
        Session(provider, in_memory=True, settings=QUIET) as session,
    ):
        answers(messages_server, 4)
        for number in range(4):
            session.add_user(words(number))
            session.after_call(client.messages.create(**session.before_call()))
        session.add_user("What is next?")
        script(messages_server, NUMBERS)
        with pytest.raises(anthropic.BadRequestError) as caught:
            client.messages.create(**session.before_call())
        assert session.recover(caught.value)
        assert session.after_call(client.messages.create(**session.before_call())).text == "On we go."
