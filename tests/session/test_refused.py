"""A server that refuses a request for what is in it: mended once, announced, remembered, and the history stays."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.session.plain import AsyncSession, Session

from lamina.core.errors import BadRequest
from lamina.providers.anthropic import AnthropicProvider
from lamina.testing import MessagesServer

from .words import answer, reasons, text, thinking


@pytest.fixture
def provider(messages_server: MessagesServer) -> Iterator[AnthropicProvider]:
    made = AnthropicProvider("claude-sonnet-5-5", base_url=messages_server.url, api_key="any", max_retries=0)
    yield made
    made.close()


def told(session: Session) -> Session:
    """A conversation that holds thinking with a signature of another model."""
    session.add_user("hello")
    session.before_call()
    session.after_call(answer("m1", thinking("hm", "from elsewhere"), text("hi")))
    session.add_user("go on")
    return session


def thoughts(messages: list[dict[str, Any]]) -> int:
    return sum(block["type"] == "thinking" for message in messages for block in message["content"])


@pytest.mark.spec("C11", "K3")
def test_what_the_server_objects_to_is_left_out_of_this_and_every_later_request(
    provider: AnthropicProvider, messages_server: MessagesServer, tmp_path: Path
) -> None:
    with Session(provider, home=tmp_path) as session:
        told(session)
        assert session.ask().complete
        session.add_user("and on")
        session.ask()
        assert thoughts(session.messages) == 1, "the history is unchanged"
        assert any("left out" in notice for notice in session.notices)
        path = session.path
    assert [received.status for received in messages_server.requests] == [400, 200, 200]
    assert [thoughts(received.messages) for received in messages_server.requests] == [1, 0, 0]
    assert path is not None
    assert reasons(path) == ["repair"]
    with Session(provider, home=tmp_path, resume=path) as session:
        session.add_user("are you still there?")
        session.ask()
    assert [received.status for received in messages_server.requests] == [400, 200, 200, 200]


def test_a_refusal_that_names_nothing_to_leave_out_comes_out_as_it_is(
    provider: AnthropicProvider, messages_server: MessagesServer
) -> None:
    messages_server.fail(400, message="temperature: Input should be less than 1")
    with Session(provider, in_memory=True) as session:
        session.add_user("hello")
        with pytest.raises(BadRequest, match="temperature"):
            session.ask()
        assert len(messages_server.requests) == 1
        assert session.ask().complete, "the history is unchanged, and so is the request"


def test_a_server_that_refuses_the_mended_request_too_is_asked_no_third_time(
    provider: AnthropicProvider, messages_server: MessagesServer
) -> None:
    messages_server.fail(400, message="Invalid `signature` in `thinking` block", times=2)
    with Session(provider, in_memory=True) as session:
        told(session)
        with pytest.raises(BadRequest, match="signature"):
            session.ask()
        assert len(messages_server.requests) == 2
        assert thoughts(session.messages) == 1


def test_on_an_event_loop_too(provider: AnthropicProvider, messages_server: MessagesServer) -> None:
    async def run() -> None:
        async with AsyncSession(provider, in_memory=True) as session:
            session.add_user("hello")
            await session.before_call()
            await session.after_call(answer("m1", thinking("hm", "from elsewhere"), text("hi")))
            session.add_user("go on")
            assert (await session.ask()).complete
        await provider.aclose()

    asyncio.run(run())
    assert [received.status for received in messages_server.requests] == [400, 200]


def test_a_loop_of_ones_own_hands_in_the_error_of_its_sdk(provider: AnthropicProvider, messages_server: MessagesServer) -> None:
    import anthropic

    with (
        anthropic.Anthropic(api_key="any", base_url=messages_server.url, max_retries=0) as client,
        Session(provider, in_memory=True) as session,
    ):
        told(session)
        with pytest.raises(anthropic.BadRequestError) as caught:
            client.messages.create(**session.before_call())
        assert session.recover(caught.value)
        response = client.messages.create(**session.before_call())
        assert session.after_call(response).complete
        assert not session.recover(ValueError("something else"))
