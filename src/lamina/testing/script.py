"""What the server answers with: a closed set of steps, and the queue a test puts them in.

A step is decided before the first byte leaves. Queued steps are taken in order, each by the first request it is meant for: one of the
conversation, or of the fork it names, that its `when` accepts. So a fork in the background never takes what was queued for the
conversation. After the queue comes the server's function, after that the echo, for forks too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

import msgspec

from ..core.blocks import Wire
from .received_request import Received

# A test that waits longer than this for a server of its own is stuck; the answer goes out and the test can fail.
MAX_DELAY = 30.0
# Queued answers a test can reasonably have in mind.
MAX_QUEUED = 10_000

Delay: TypeAlias = float | threading.Event
When: TypeAlias = Callable[[Received], bool]
ToolCall: TypeAlias = tuple[str, Mapping[str, Any]] | tuple[str, Mapping[str, Any], str]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer."""

    blocks: tuple[Wire, ...]
    stop_reason: str | None = "auto"  # auto: tool_use where a tool is called, else end_turn; None: the answer never says why
    stop_sequence: str | None = None
    stop_details: Wire | None = None
    output_tokens: int | None = None  # None: counted


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP error instead of an answer. An empty kind or message is filled in for the status, in the words of the route."""

    status: int
    kind: str = ""
    message: str = ""
    retry_after: float | None = None


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that stops half way.

    after: events that still arrive; 0 = not even the response's first line. Of a plain answer any other number leaves half.
    how: "reset" the connection is torn down, "close" it is closed too early, "end" the stream ends as if it were complete.
    """

    answer: Answer
    after: int = 0
    how: Literal["reset", "close", "end"] = "reset"


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that don't mean what the headers say: half the JSON, lines that are no events, bytes that are no UTF-8, no gzip."""

    answer: Answer
    what: Literal["json", "sse", "utf8", "gzip"]


class Interrupted(msgspec.Struct, frozen=True, kw_only=True):
    """A stream in which an error event follows `after` good ones."""

    answer: Answer
    after: int = 1
    kind: str = "overloaded_error"
    message: str = "Overloaded"


Step: TypeAlias = Answer | Status | Cut | Broken | Interrupted


class Queued(TypedDict, total=False):
    """For whom a step is queued, and how often."""

    fork: str | None  # None: for the conversation itself
    when: When | None
    delay: Delay | None
    times: int


class PlannedStep(msgspec.Struct, frozen=True):
    step: Step
    when: When | None = None
    delay: Delay | None = None
    fork: str | None = None

    def meant_for(self, received: Received) -> bool:
        """A fork's name is what it is for, a dash and letters of its own (lamina.core.cache: FORK_HEADER)."""
        purpose = received.fork.rpartition("-")[0] or received.fork
        return purpose == (self.fork or "") and (self.when is None or self.when(received))


class Script:
    """The queue and the function behind it. Locked: connections are threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: list[PlannedStep] = []
        self.answer: Callable[[Received], Step | str | None] | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def add(
        self, step: Step, *, fork: str | None = None, when: When | None = None, delay: Delay | None = None, times: int = 1
    ) -> None:
        with self._lock:
            if len(self._queue) + times > MAX_QUEUED:
                raise ValueError(
                    f"{times} more steps would make the script longer than {MAX_QUEUED:,}; use server.answer_with instead"
                )
            self._queue.extend([PlannedStep(step, when, delay, fork)] * times)

    def take(self, received: Received) -> PlannedStep:
        with self._lock:
            for index, planned in enumerate(self._queue):
                if planned.meant_for(received):
                    return self._queue.pop(index)
        said = self.answer(received) if self.answer is not None else None
        if said is None:
            return PlannedStep(echo(received))
        return PlannedStep(make_answer(text=said) if isinstance(said, str) else said)

    def clear(self) -> None:
        with self._lock:
            self._queue.clear()


def make_answer(
    *blocks: Wire,
    text: str | None = None,
    thinking: str | None = None,
    tool_use: ToolCall | Sequence[ToolCall] | None = None,
    stop_reason: str | None = "auto",
    stop_sequence: str | None = None,
    stop_details: Wire | None = None,
    output_tokens: int | None = None,
) -> Answer:
    """An answer in the order thinking, text, blocks, tool calls. The server fills in ids and signatures that are missing."""
    said: list[Wire] = []
    if thinking is not None:
        said.append({"type": "thinking", "thinking": thinking})
    if text is not None:
        said.append({"type": "text", "text": text})
    said.extend(blocks)
    said.extend(_call(call) for call in _calls(tool_use))
    if stop_reason == "refusal" and stop_details is None:
        stop_details = {"type": "refusal", "category": None, "explanation": None}
    return Answer(
        blocks=tuple(said),
        stop_reason=stop_reason,
        stop_sequence=stop_sequence,
        stop_details=stop_details,
        output_tokens=output_tokens,
    )


def _calls(given: ToolCall | Sequence[ToolCall] | None) -> list[Any]:
    if given is None:
        return []
    return [given] if isinstance(given, tuple) and isinstance(given[0], str) else list(given)


def _call(call: Any) -> Wire:
    block: Wire = {"type": "tool_use", "name": call[0], "input": dict(call[1])}
    if len(call) > 2:
        block["id"] = call[2]
    return block


# A default answer must not fill the window of a long test.
ECHO_CHARACTERS = 80


def echo(received: Received) -> Answer:
    """The same request gets the same words."""
    return make_answer(text=f"You said: {last_text(received.body)[:ECHO_CHARACTERS].strip() or 'nothing'}")


def last_text(body: Mapping[str, Any]) -> str:
    """The newest text a user wrote, in either wire form."""
    for message in reversed(body.get("messages") or ()):
        content = message.get("content")
        if message.get("role") != "user":
            continue
        if isinstance(content, str):
            return content
        texts = [part.get("text") for part in content or () if part.get("type") == "text"]
        if texts:
            return str(texts[-1])
    return ""
