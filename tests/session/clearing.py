"""Sessions whose tools return much: what the tests of clearing do again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.session.plain import Session

from lamina.core.blocks import ToolResult
from lamina.core.log import Log
from lamina.core.policy import CLASSIC, Policy
from lamina.core.receipts import Told, open_receipt, read_receipt
from lamina.core.records import Clear, Event, Record
from lamina.core.settings import Settings
from lamina.providers import Capabilities
from lamina.providers.anthropic import AnthropicProvider
from lamina.providers.retry import Waits
from lamina.session.base import conversation_of
from lamina.testing import MessagesServer
from lamina.testing.received_request import Received
from lamina.testing.script import Step, make_answer

from .words import Wire, answer, records

# The smallest window the offsets are whole in is 200,000; this one makes every number of T9 a quarter.
WINDOW = 60_000
READ: Wire = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}
TODO: Wire = {"name": "TodoWrite", "description": "Keeps a list.", "input_schema": {"type": "object"}}
# 1,000 tokens by the plain rule.
LONG = "line of a file, nothing special in it\n" * 105


class Told5(list[tuple[str, Wire]]):
    """The events that a host received, in order (K5)."""

    def __call__(self, name: str, data: Wire) -> None:
        self.append((name, data))

    def named(self, name: str) -> list[Wire]:
        return [data for found, data in self if found == name]


def quiet(**switches: Any) -> Settings:
    """Settings under which only layer 2 works."""
    return Settings(auto_compact=False, session_notes=False, spill=False, **switches)


def opened(home: Path, *, policy: Policy = CLASSIC, window: int = WINDOW, **options: Any) -> Session:
    options.setdefault("settings", quiet())
    options.setdefault("tools", [READ])
    return Session("anthropic:a-model", home=home, cwd=home, policy=policy, window=window, system="Be brief.", **options)


def called(session: Session, name: str, tool: str = "Read") -> None:
    """One call of a tool, with a usage that says what the session itself counts."""
    use = {"type": "tool_use", "id": name, "name": tool, "input": {"file_path": f"{name}.py"}}
    usage = {"input_tokens": max(1, session.window_state.tokens), "output_tokens": 20}
    session.after_call(answer(f"m-{name}", use, usage=usage))


def work(session: Session, names: Sequence[str], *, content: Any = LONG, tool: str = "Read") -> list[Wire]:
    """A call and its result for each name, and the request that follows each."""
    requests = []
    for name in names:
        called(session, name, tool)
        session.add_tool_result(name, content)
        requests.append(session.before_call())
    return requests


def numbered(count: int, start: int = 0) -> list[str]:
    return [f"t{number}" for number in range(start, start + count)]


def until_cleared(session: Session, *, most: int = 100) -> list[Wire]:
    """Work until the first clearing; the requests, the last of which shows it."""
    requests: list[Wire] = []
    while not requests or not cleared(requests[-1]):
        assert len(requests) < most
        requests += work(session, numbered(1, len(requests)))
    return requests


def begun(session: Session, words: str = "look at everything") -> Session:
    session.add_user(words)
    session.before_call()
    return session


def shown(request: Wire) -> dict[str, Any]:
    """Return what the model sees of each result."""
    blocks = [block for message in request["messages"] for block in message["content"]]
    return {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}


def cleared(request: Wire) -> list[str]:
    return [name for name, content in shown(request).items() if str(content).startswith("[Cleared")]


def clearings(path: Path | None) -> list[Clear]:
    return [record for record in records(path) if isinstance(record, Clear)]


def events(path: Path | None, name: str) -> list[Wire]:
    return [record.data for record in records(path) if isinstance(record, Event) and record.name == name]


def fates(path: Path | None, decision: Clear) -> dict[str, Told]:
    """The receipt of a clearing, opened against the view as it was before; raises where a record has no fate or two."""
    before: list[Record] = []
    for record in records(path):
        if isinstance(record, Clear) and record.uuid == decision.uuid:
            break
        before.append(record)
    order = [item.uuid for item in Log.load(lambda: before).view.items]
    return open_receipt(read_receipt(decision.uuid, decision.receipt), order)


def results_in(session: Session) -> dict[str, ToolResult]:
    blocks = [block for _, block in conversation_of(session).log.view.blocks()]
    return {block.tool_use_id: block for block in blocks if isinstance(block, ToolResult)}


ABLE = Capabilities("messages", cache_marks=True, cache_edits=True, context_management=True, thinking=True)


def connected(server: MessagesServer, home: Path, *, capabilities: Capabilities = ABLE, **options: Any) -> Session:
    """A session that talks to a server."""
    provider = AnthropicProvider(
        "claude-sonnet-5", base_url=server.url, api_key="key", capabilities=capabilities, waits=Waits(sleep=lambda _: None)
    )
    options.setdefault("settings", quiet())
    options.setdefault("tools", [READ])
    options.setdefault("window", WINDOW)
    options.setdefault("cwd", home)
    home.mkdir(exist_ok=True)
    return Session(provider, home=home, system="Be brief.", max_tokens=1_000, **options)


def reading(rounds: int, *, together: int = 1, thinking: str | None = None) -> Callable[[Received], Step]:
    """A model that reads files, so many times and so many at once, and then is done."""

    def decide(received: Received) -> Step:
        done = sum(message["role"] == "assistant" for message in received.messages)
        if done >= rounds:
            return make_answer(text="done")
        numbers = range(done * together, (done + 1) * together)
        calls = [("Read", {"file_path": f"{number}.py"}, f"toolu_{number:04}") for number in numbers]
        return make_answer(thinking=thinking, tool_use=calls)

    return decide


def run(session: Session, *, content: str = LONG, most: int = 1_000) -> int:
    """Answer calls until the model is done; how many there were."""
    for number in range(most):
        reply = session.ask()
        if not reply.tool_uses:
            return number
        for use in reply.tool_uses:
            session.add_tool_result(use.id, content)
    raise AssertionError("the model never ends")
