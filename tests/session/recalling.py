"""Sessions with memories: helpers that open, ask and inspect them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from lamina.core.policy import Policy, SurfacingPolicy
from lamina.core.records import Event
from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import conversation_of
from lamina.session.session import Session
from lamina.testing import MessagesServer, Received

from .words import READ, Wire, answer, records

QUESTION = "What do our integration tests run against?"
OTHER = "Which day do we deploy the service?"


# No other part of memory adds to the requests.
RECALL_ALONE = {"instructions": False, "extraction": False, "dreaming": False}


def remember(memory: Memory) -> None:
    """Three memories: one that QUESTION is about, one for OTHER, and one that fits neither."""
    memory.save(
        "testing-db", type="feedback", description="Integration tests run against a real database", body="No mocks, ever."
    )
    memory.save("deploy-day", type="project", description="We deploy on Thursdays", body="Never on a Friday.")
    memory.save("coffee", type="user", description="Drinks it black", body="No sugar.")


@contextmanager
def opened(home: Path, **given: Any) -> Iterator[Session]:
    given = {"tools": [READ], "system": "Be brief.", "settings": Settings(index_in_prompt=False), **RECALL_ALONE, **given}
    with Session("anthropic:a-model", home=home, cwd=home, **given) as session:
        yield session


def recalled(request: Wire) -> list[str]:
    """The memories in a request, each as it was sent."""
    blocks = [block for message in request["messages"] for block in message["content"]]
    return [block["text"] for block in blocks if block["type"] == "text" and "<recalled-memory>" in block["text"]]


def files(request: Wire) -> list[str]:
    return [part.split(" (a memory")[0].rsplit("/", 1)[-1] for part in recalled(request)]


def told(session: Session) -> list[Wire]:
    assert session.path is not None
    return [one.data for one in records(session.path) if isinstance(one, Event) and one.name == "recall"]


def exchange(session: Session, words: str, number: int = 0) -> Wire:
    session.add_user(words)
    request = session.before_call()
    session.after_call(answer(f"m{number}-{len(words)}", "Noted."))
    session.end_turn()
    return request


# A busy machine may take longer than ten seconds to load a client; only a test that is about waiting waits for less.
PATIENT = Policy("patient", surfacing=SurfacingPolicy(wait_seconds=600.0))


def choosing(model: str = "claude-haiku-5-5", **more: Any) -> Settings:
    return Settings(recall_selector="model", small_model=model, **more)


@contextmanager
def at(
    server: MessagesServer, home: Path, settings: Settings | None = None, policy: Policy = PATIENT, **given: Any
) -> Iterator[Session]:
    provider = AnthropicProvider("claude-sonnet-5-5", api_key="any", base_url=server.url, max_retries=0)
    given = {**RECALL_ALONE, **given}
    with (
        closing(provider),
        Session(provider, home=home, cwd=home, tools=[READ], settings=settings or choosing(), policy=policy, **given) as session,
    ):
        yield session


def chosen(*names: str) -> str:
    return json.dumps({"selected_memories": [*names]})


def is_selection(received: Received) -> bool:
    return received.fork.startswith("select")


def selections(server: MessagesServer) -> list[Received]:
    return [received for received in server.requests if is_selection(received)]


def with_a_call(session: Session, server: MessagesServer, words: str, *, landed: bool = True) -> Wire:
    """A turn with one call; the request behind its result."""
    server.reply(text="I look.", tool_use=[("Read", {"file_path": "/w/f.py"}, f"c-{len(server.requests)}")])
    session.add_user(words)
    reply = session.ask()
    if landed:
        assert conversation_of(session).background.wait("select", 60)
    for one in reply.tool_uses:
        session.add_tool_result(one.id, "text of the file")
    session.ask()
    return dict(next(r for r in reversed(server.requests) if not is_selection(r)).body)
