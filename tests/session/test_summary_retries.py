"""Retries have one budget in all, counted in HTTP requests that real SDK clients send to a server on loopback."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from tests.session.plain import AsyncSession, Session

from lamina.core.errors import Overloaded
from lamina.core.policy import CLASSIC
from lamina.providers.anthropic import AnthropicProvider
from lamina.providers.openai import OpenAIProvider
from lamina.providers.retry import Waits
from lamina.testing import MessagesServer
from lamina.testing.script import Status, make_answer

from .compacting import LONG, WINDOW, opened, quiet, rounds, summaries, summarising, told, until_compacted

BUSY = Status(status=529)
UNTAGGED = make_answer(text="We talked about files.")
NO_WAIT = Waits(sleep=lambda _: None, random=lambda: 0.0)
MODEL = "claude-sonnet-5-5"
HELLO = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}


def client_of(server: MessagesServer, retries: int) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="any", base_url=server.url, max_retries=retries)


@pytest.mark.exhaustive
@pytest.mark.spec("C8", "B3")
@pytest.mark.parametrize("retries", [0, 2, 6])
@pytest.mark.parametrize("bad", [BUSY, UNTAGGED], ids=["529", "untagged"])
def test_a_summary_takes_three_requests_whatever_the_client_retries(
    messages_server: MessagesServer, tmp_path: Path, retries: int, bad: Any
) -> None:
    messages_server.answer_with(summarising(bad))
    with (
        client_of(messages_server, retries) as client,
        Session(
            f"anthropic:{MODEL}",
            client=client,
            home=tmp_path,
            cwd=tmp_path,
            policy=CLASSIC,
            window=WINDOW,
            settings=quiet(),
            max_tokens=500,
        ) as session,
    ):
        messages_server.follow(breaks=lambda: [None] * session.status.cache_breaks)
        for number in range(30):
            session.add_user(f"Question {number} {LONG}")
            session.ask()
            if told(session, "compaction"):
                break
        [event] = told(session, "compaction")
        assert event["by"] == "rules"
        assert len(summaries(messages_server)) == 3


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_clients_own_retries_are_honoured(messages_server: MessagesServer, retries: int) -> None:
    messages_server.answer_with(lambda _: BUSY)
    with client_of(messages_server, retries) as client:
        provider = AnthropicProvider(MODEL, client=client, waits=NO_WAIT)
        with pytest.raises(Overloaded):
            provider.ask(HELLO)
    assert len(messages_server.requests) == retries + 1


@pytest.mark.parametrize("retries", [0, 3])
def test_an_openai_clients_own_retries_are_honoured(messages_server: MessagesServer, retries: int) -> None:
    messages_server.answer_with(lambda _: BUSY)
    with openai.OpenAI(api_key="any", base_url=messages_server.openai_url, max_retries=retries) as client:
        provider = OpenAIProvider("gpt-5-mini", client=client, waits=NO_WAIT)
        with pytest.raises(Overloaded):
            provider.ask(HELLO)
    assert len(messages_server.requests) == retries + 1


def test_a_number_given_to_the_provider_wins(messages_server: MessagesServer) -> None:
    messages_server.answer_with(lambda _: BUSY)
    with client_of(messages_server, 0) as client:
        provider = AnthropicProvider(MODEL, client=client, max_retries=2, waits=NO_WAIT)
        with pytest.raises(Overloaded):
            provider.ask(HELLO)
    assert len(messages_server.requests) == 3


@pytest.mark.spec("C8")
def test_an_async_client_is_honoured_too(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising(BUSY))

    async def work() -> int:
        client = anthropic.AsyncAnthropic(api_key="any", base_url=messages_server.url, max_retries=0)
        async with (
            client,
            AsyncSession(
                f"anthropic:{MODEL}",
                client=client,
                home=tmp_path,
                cwd=tmp_path,
                policy=CLASSIC,
                window=WINDOW,
                settings=quiet(),
                max_tokens=500,
            ) as session,
        ):
            messages_server.follow(breaks=lambda: [None] * session.status.cache_breaks)
            for number in range(30):
                session.add_user(f"Question {number} {LONG}")
                await session.ask()
                if summaries(messages_server):
                    break
            return len(messages_server.requests) - number - 1

    assert asyncio.run(work()) == 3


@pytest.mark.spec("C8")
def test_a_server_that_asks_for_a_long_pause_is_not_waited_for(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising(Status(status=429, retry_after=600)))
    with opened(messages_server, tmp_path) as session:
        until_compacted(session, messages_server)
        assert len(summaries(messages_server)) == 1
        assert any("429" in notice and "by rules" in notice for notice in session.notices)


@pytest.mark.spec("C8")
def test_a_rejected_request_is_not_sent_again(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising(Status(status=401)))
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 2)
        until_compacted(session, messages_server, start=2)
        assert len(summaries(messages_server)) == 1
