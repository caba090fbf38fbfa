"""Sessions against a server that summarises: what the tests of compaction do again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.session.plain import Session

from lamina.core.policy import CLASSIC, Policy
from lamina.core.receipts import Told, open_receipt, read_receipt
from lamina.core.records import Boundary, Event, Record, Span
from lamina.core.settings import Settings
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import working
from lamina.testing import MessagesServer
from lamina.testing.received_request import Received
from lamina.testing.script import Step

from .words import READ, Wire

# Everything in it shrinks to a tenth: compaction starts at about 14,000 tokens, so a test needs few rounds.
WINDOW = 20_000
LONG = "A line of a file that nobody will miss.\n" * 120
SECTIONS = "\n\n".join(
    f"## {number}. {name}\nwords about it"
    for number, name in enumerate(
        (
            "Primary request and intent",
            "Key technical concepts",
            "Files and code",
            "Errors and fixes",
            "Problem solving",
            "",
            "Pending tasks",
            "Current work",
            "Optional next step",
        ),
        start=1,
    )
    if name
)
SUMMARY = f"<analysis>a draft nobody reads</analysis>\n<summary>\n{SECTIONS}\n</summary>"
Answers = Callable[[Received], Step | str | None]


def quiet(**switches: Any) -> Settings:
    """Only layer 4 works."""
    return Settings(**{"session_notes": False, "size_clearing": False, "spill": False, **switches})


def provider_at(server: MessagesServer) -> AnthropicProvider:
    return AnthropicProvider("claude-sonnet-5-5", api_key="any", base_url=server.url, max_retries=0)


@contextmanager
def opened(
    server: MessagesServer, home: Path, *, policy: Policy = CLASSIC, window: int = WINDOW, **given: Any
) -> Iterator[Session]:
    given = {"settings": quiet(), "tools": [READ], "system": "You are careful.", "max_tokens": 500, **given}
    with (
        closing(provider_at(server)) as provider,
        Session(provider, home=home, cwd=home, policy=policy, window=window, **given) as session,
    ):
        server.follow(breaks=lambda: [None] * session.status.cache_breaks)
        yield session


def summarising(summary: Step | str = SUMMARY) -> Answers:
    """A server that reads a file whenever it is asked, and writes a summary when that is asked."""

    def answers(received: Received) -> Step | str | None:
        return summary if received.fork.startswith("summary") else "Done."

    return answers


def rounds(session: Session, server: MessagesServer, count: int, *, start: int = 0, content: str = LONG) -> list[Wire]:
    """Questions, each with a call and its result; the messages of every request."""
    sent = []
    for number in range(start, start + count):
        server.reply(text="I look.", tool_use=[("Read", {"file_path": f"/w/src/f{number}.py"}, f"c{number}")])
        session.add_user(f"Question {number}: what is in it?")
        reply = session.ask()
        for call in reply.tool_uses:
            session.add_tool_result(call.id, f"{number} {content}")
        session.ask()
        sent.append(server.requests[-1].body)
    return sent


def until_compacted(session: Session, server: MessagesServer, *, start: int = 0, most: int = 80) -> int:
    """Work until a compaction was entered; the number of the next round."""
    before = len(boundaries(session))
    for number in range(start, start + most):
        rounds(session, server, 1, start=number)
        if len(boundaries(session)) > before:
            return number + 1
    raise AssertionError(f"no compaction in {most} rounds: {session.window_state.tokens} tokens, {session.notices}")


def is_summary(received: Received) -> bool:
    return received.fork.startswith("summary")


def summaries(server: MessagesServer) -> list[Received]:
    return [received for received in server.requests if is_summary(received)]


def records(session: Session) -> list[Record]:
    with working(session) as c:
        return list(c.store.read())


def boundaries(session: Session) -> list[Boundary | Span]:
    return [record for record in records(session) if isinstance(record, Boundary | Span)]


def told(session: Session, name: str) -> list[Wire]:
    return [record.data for record in records(session) if isinstance(record, Event) and record.name == name]


def kinds(session: Session) -> list[str]:
    with working(session) as c:
        return [item.kind for item in c.log.view.items]


def ids(session: Session) -> list[str]:
    with working(session) as c:
        return [item.uuid for item in c.log.view.items]


def fates(decision: Boundary | Span, order: list[str]) -> dict[str, Told]:
    return open_receipt(read_receipt(decision.uuid, decision.receipt), order)
