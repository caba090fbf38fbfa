"""Sessions that keep notes: a server that answers chats with an echo and forks for notes as a test says, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.session.hosts import lend
from tests.session.plain import Session

from lamina.conversation.isolate import take_job_results
from lamina.core.receipts import Told, open_receipt, read_receipt
from lamina.core.records import Boundary
from lamina.fork.fork import directive_in
from lamina.layers.l3_notes import offline as local
from lamina.layers.l3_notes.sections import Notes, own_template, read_notes
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import conversation_of, working
from lamina.testing import MessagesServer, Received
from lamina.testing.script import Answer, Step

from .words import Wire, records

MODEL = "claude-sonnet-5-5"
# Every number of T9 is a quarter: notes begin at 2,500 tokens, compaction at 41,750.
WINDOW = 60_000
# About a thousand tokens.
LONG = "The quick brown fox jumps over the lazy dog. " * 100
# Only a test that fails waits so long.
PATIENCE = 120.0

# A window of 200,000 tokens is full long before.
MOST_STEPS = 200

Say = Callable[[Received], Step | str | None]


class Seen(list[tuple[str, Wire]]):
    """The events that a host received, in order (K5)."""

    def __call__(self, name: str, data: Wire) -> None:
        self.append((name, data))

    def named(self, name: str) -> list[Wire]:
        return [data for found, data in self if found == name]


def by_rules(received: Received) -> Step:
    """The notes as the local function writes them."""
    return Answer(blocks=tuple(local.answer(received.body)))


def answering(server: MessagesServer, notes: Say = by_rules) -> None:
    """An echo for the conversation, `notes` for forks that are asked for notes."""
    server.answer_with(lambda received: notes(received) if purpose(received) == "notes" else None)


def purpose(received: Received) -> str:
    """Of a fork's request; empty for the conversation's own."""
    asked = directive_in(received.body)
    return "" if asked is None else "notes" if "notes of this session" in asked or "Write it down" in asked else "other"


def asked_for_notes(server: MessagesServer) -> list[Received]:
    return [received for received in server.requests if purpose(received)]


@contextmanager
def connected(server: MessagesServer, home: Path, **given: Any) -> Iterator[Session]:
    provider = AnthropicProvider(MODEL, base_url=server.url, api_key="any", max_retries=0)
    given = {"window": WINDOW, "system": "Be careful.", "cwd": home, "home": home, **given}
    home.mkdir(exist_ok=True)
    session = Session(provider, **given)
    lend(session, observer=Seen())
    server.follow(breaks=lambda: [None] * session.status.cache_breaks, session=None)
    try:
        yield session
    finally:
        session.close()
        provider.close()


def told(session: Session) -> Seen:
    seen = conversation_of(session).host.observer
    assert isinstance(seen, Seen)
    return seen


def talk(session: Session, *words: str) -> None:
    """Questions and answers; what works in the background is waited for after each, so that a test knows what comes when."""
    for said in words:
        session.add_user(said)
        session.ask()
        settle(session)
        session.end_turn()


def settle(session: Session) -> None:
    with working(session) as c:
        assert c.background.wait("notes", PATIENCE)
        assert c.background.wait("summary", PATIENCE)
        take_job_results(c)


def fill(session: Session, until: int, words: str = LONG) -> None:
    """Talk until the count has reached a number of tokens."""
    for number in range(MOST_STEPS):
        if session.window_state.tokens >= until:
            return
        talk(session, f"Step {number}. {words}")
    raise AssertionError(f"still at {session.window_state.tokens:,} of {until:,} tokens")


def notes_file(session: Session) -> Path:
    assert session.path is not None
    return session.path.with_suffix("") / "session-memory" / "summary.md"


def notes_of(session: Session) -> Notes:
    read = read_notes(notes_file(session).read_text(), own_template())
    assert isinstance(read, Notes)
    return read


def boundaries(session: Session) -> list[Boundary]:
    return [record for record in records(session.path) if isinstance(record, Boundary)]


def fates(boundary: Boundary, order: list[str]) -> dict[str, Told]:
    return open_receipt(read_receipt(boundary.uuid, boundary.receipt), order)


def order_of(session: Session) -> list[str]:
    return [item.uuid for item in conversation_of(session).log.view.items]
