"""A session that grows against a loopback server until it is compacted, in each of the three ways there are. For seen.py and stall.py."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lamina.core.settings import Settings
from lamina.core.view import Item
from lamina.layers.l3_notes import offline as notes
from lamina.layers.l4_compact import offline as summary
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import working
from lamina.session.session import Session
from lamina.testing import Answer, MessagesServer, Received

MODEL = "claude-sonnet-5-5"
WINDOW = 200_000
TOOLS = [{"name": "Read", "description": "Read a file. " * 100, "input_schema": {"type": "object"}}]
SYSTEM = "You are a coding agent. " * 300
# About 2,000 tokens of the kind an agent reads.
RESULT = "def handler_{number}(event):\n    return event['value'] * {number}  # step {number}\n" * 90
PATIENCE = 60.0


class Way(NamedTuple):
    policy: str
    settings: Settings


# How a window is emptied: by notes that are there already, by a summary begun in the background, by a call that is waited for.
WAYS = {
    "notes": Way("classic", Settings(size_clearing=False)),
    "ahead": Way("lean", Settings(size_clearing=False)),
    "call": Way("classic", Settings(size_clearing=False, session_notes=False, notes_compaction=False)),
}


def answered(received: Received, latency: float) -> Answer | str:
    """A chat is answered at once, a fork after `latency` seconds by the function that takes the model's part offline."""
    if not received.fork:
        return "I have read it."
    time.sleep(latency)
    local = notes if received.fork.startswith("notes") else summary
    return Answer(blocks=tuple(local.answer(received.body)))


@contextmanager
def growing(home: Path, way: Way, latency: float = 0.0) -> Iterator[tuple[Session, MessagesServer]]:
    with MessagesServer() as server:
        server.answer_with(lambda received: answered(received, latency))
        provider = AnthropicProvider(MODEL, base_url=server.url, api_key="any", max_retries=0)
        with Session(
            provider,
            home=home,
            cwd=home,
            window=WINDOW,
            policy=way.policy,
            settings=way.settings,
            system=SYSTEM,
            tools=TOOLS,
            instructions=False,
            memory=False,
        ) as session:
            yield session, server
        provider.close()


def step(session: Session, server: MessagesServer, number: int) -> None:
    """A question, a call, and its result, which is not answered yet."""
    server.reply(text="I look.", tool_use=[("Read", {"file_path": f"/w/src/f{number}.py"}, f"c{number}")])
    session.add_user(f"Question {number}: what is in it?")
    for call in session.ask().tool_uses:
        session.add_tool_result(call.id, RESULT.format(number=number))


def settle(session: Session) -> None:
    """What works in the background is waited for, so that what follows knows it is done."""
    with working(session) as c:
        for name in ("notes", "summary"):
            c.background.wait(name, PATIENCE)


def in_view(session: Session) -> list[Item]:
    with working(session) as c:
        return list(c.log.view.items)
