"""Helpers for agents in tests: a real provider, a server on loopback, a project on disk, and the requests and records."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from lamina.agent.agent import Agent
from lamina.core.records import Attachment, Message, Record
from lamina.providers import Provider
from lamina.providers.anthropic import AnthropicProvider
from lamina.providers.openai import OpenAIProvider
from lamina.providers.retry import Waits
from lamina.session.base import conversation_of
from lamina.testing import MessagesServer, Received
from lamina.testing.api_json import event
from lamina.testing.request_handler import respond
from lamina.testing.transport import Incoming, Outgoing, Transport

Wire: TypeAlias = dict[str, Any]

# Far more than anything here takes on a busy machine. Only a failing test waits this long.
PATIENCE = 120
# Retries without the pauses between them.
AT_ONCE = Waits(sleep=lambda _: None, random=lambda: 0.5)

PROJECT = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "from calc import add\n\nassert add(2, 2) == 4, add(2, 2)\nprint('all is well')\n",
    "CLAUDE.md": "Use two spaces after a full stop.\n",
}


def provider_at(server: MessagesServer | Wiretap, wire: str = "messages", waits: Waits = AT_ONCE, **options: Any) -> Provider:
    if wire == "chat":
        assert isinstance(server, MessagesServer)
        return OpenAIProvider("gpt-5.5", api_key="any", base_url=server.openai_url, waits=waits, **options)
    return AnthropicProvider("claude-sonnet-5-5", api_key="any", base_url=server.url, waits=waits, **options)


def lay_out(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def texts(message: Wire) -> list[str]:
    """Return all text of a message, including results, for either wire format."""
    content = message["content"]
    if isinstance(content, str) or content is None:
        return [content or ""]
    found: list[str] = []
    for block in content:
        inner = block.get("text") if block["type"] == "text" else block.get("content")
        found += [inner] if isinstance(inner, str) else [part["text"] for part in inner or () if part["type"] == "text"]
    return found


def results(received: Received) -> dict[str, str]:
    """Return the results in the newest message by call; errors begin with `!`."""
    return {
        block["tool_use_id"]: ("!" if block.get("is_error") else "") + "\n".join(texts({"content": [block]}))
        for block in received.messages[-1]["content"]
        if block["type"] == "tool_result"
    }


def reminders(received: Received) -> list[str]:
    """Return every reminder, in the order of the request."""
    return [
        block["text"]
        for message in received.messages
        for block in message["content"]
        if block["type"] == "text" and block["text"].startswith("<system-reminder>")
    ]


def accepted(server: MessagesServer) -> list[Received]:
    """Return all requests but selections of memories, after checking that the API accepted all."""
    found = [(received.status, received.error) for received in server.requests if received.refused]
    assert found == []
    return [received for received in server.requests if not received.fork.startswith("select")]


def records(agent: Agent) -> list[Record]:
    """Return all records of the session, also of a fork that has written nothing yet."""
    return list(conversation_of(agent.session).store.read())


def answers(agent: Agent) -> list[tuple[str | None, list[str]]]:
    """Return the model's records in the transcript: stop reason and kinds of blocks."""
    return [
        (record.stop_reason, [str(block.wire["type"]) for block in record.blocks])
        for record in records(agent)
        if isinstance(record, Message) and record.role == "assistant"
    ]


def contexts(agent: Agent) -> list[str]:
    return [record.kind for record in records(agent) if isinstance(record, Attachment)]


def canonical(body: Wire) -> str:
    return json.dumps(body, sort_keys=True)


def press_ctrl_c() -> None:
    """Send the signal in the main thread, where Python handles it."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


class Pipe:
    """A named pipe that a command writes to; `then` runs as soon as it has."""

    def __init__(self, path: Path, then: Callable[[str], object]) -> None:
        os.mkfifo(path)
        self.path = path
        self._then = then
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        self._then(self.path.read_text())

    def join(self) -> None:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


class Wiretap:
    """A wire with arbitrary answers: the server behind it checks and keeps requests, and the bytes of its answer are replaced."""

    def __init__(self, server: MessagesServer) -> None:
        self._server = server
        self._said: list[tuple[bytes, ...]] = []
        self._transport = Transport(self._respond, lambda: server.body_limit, threading.Event())
        self._transport.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._transport.port}"

    def say(self, *events: Wire) -> None:
        """Make the next answer a stream of these events."""
        self._said.append(tuple(event(str(one["type"]), one) for one in events))

    def _respond(self, incoming: Incoming) -> Outgoing:
        answer = respond(self._server, incoming)
        return answer._replace(parts=self._said.pop(0)) if self._said and answer.status == 200 else answer

    def close(self) -> None:
        self._transport.close()


def begin(answer_id: str = "msg_raw") -> Wire:
    message: Wire = {"id": answer_id, "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    return {"type": "message_start", "message": {**message, "usage": {"input_tokens": 5, "output_tokens": 1}}}


def block(index: int, content: Wire, *deltas: Wire) -> list[Wire]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def call_in_pieces(index: int, call_id: str, *pieces: str) -> list[Wire]:
    """A call of Bash whose input arrives in these pieces."""
    content = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {}}
    return block(index, content, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def end(reason: object) -> list[Wire]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
