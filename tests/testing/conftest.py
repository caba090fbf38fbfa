"""The official SDKs, pointed at the test's own server, without retries: a test that wants them asks for them.

A client costs 80 ms, most of it for certificates nobody needs here, so one is made per run and pointed elsewhere for each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lamina.testing import MessagesServer

if TYPE_CHECKING:
    import anthropic
    import openai


@pytest.fixture(scope="session")
def any_client() -> Iterator[anthropic.Anthropic]:
    import anthropic

    with anthropic.Anthropic(api_key="any", base_url="http://127.0.0.1:9", max_retries=0) as made:
        yield made


@pytest.fixture(scope="session")
def any_chat_client() -> Iterator[openai.OpenAI]:
    import openai

    with openai.OpenAI(api_key="any", base_url="http://127.0.0.1:9", max_retries=0) as made:
        yield made


@pytest.fixture
def client(messages_server: MessagesServer, any_client: anthropic.Anthropic) -> anthropic.Anthropic:
    return any_client.with_options(base_url=messages_server.url)


@pytest.fixture
def chat_client(messages_server: MessagesServer, any_chat_client: openai.OpenAI) -> openai.OpenAI:
    return any_chat_client.with_options(base_url=messages_server.openai_url)
