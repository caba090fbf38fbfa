"""The server's script: a closed set of steps, and the queue that a test fills.

A step is chosen before the first byte is sent. Queued steps are taken in order, each by the first request it is meant for: a
request of the conversation, or of the fork it names, that its `when` accepts. So a background fork never takes a step queued for
the conversation. If no step matches, the server's function answers, and otherwise the echo; this applies to forks too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

import msgspec

from ..core.blocks import Wire
from .received_request import Received

# A test that waits longer than this is stuck. The answer is then sent, so that the test can fail.
MAX_DELAY = 30.0
# More steps than any test needs.
MAX_QUEUED = 10_000

Delay: TypeAlias = float | threading.Event
When: TypeAlias = Callable[[Received], bool]
ToolCall: TypeAlias = tuple[str, Mapping[str, Any]] | tuple[str, Mapping[str, Any], str]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A complete answer."""

    blocks: tuple[Wire, ...]
    stop_reason: str | None = "auto"  # auto: tool_use if there is a tool call, else end_turn; None: no stop reason is sent
    stop_sequence: str | None = None
    stop_details: Wire | None = None
    output_tokens: int | None = None  # None: counted


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP error instead of an answer. An empty kind or message gets the usual value for the status and API."""

    status: int
    kind: str = ""
    message: str = ""
    retry_after: float | None = None


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that stops half way.

    after: number of events sent before it stops; 0 sends nothing, not even the status line. For an answer that is not streamed,
    any
        other number sends the first half.
    how: "reset" resets the connection, "close" closes it too early, "end" ends the stream as if it were complete.
    """

    answer: Answer
    after: int = 0
    how: Literal["reset", "close", "end"] = "reset"


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A body that does not match its headers: truncated JSON, lines that are not events, invalid UTF-8, or invalid gzip."""

    answer: Answer
    what: Literal["json", "sse", "utf8", "gzip"]


class Interrupted(msgspec.Struct, frozen=True, kw_only=True):
    """A stream in which an error event follows `after` regular ones."""

    answer: Answer
    after: int = 1
    kind: str = "overloaded_error"
    message: str = "Overloaded"


Step: TypeAlias = Answer | Status | Cut | Broken | Interrupted


class Queued(TypedDict, total=False):
    """The requests that a step is queued for, and how often."""

    fork: str | None  # the kind of fork; None for the conversation itself
    when: When | None
    delay: Delay | None
    times: int


class PlannedStep(msgspec.Struct, frozen=True):
    step: Step
    when: When | None = None
    delay: Delay | None = None
    fork: str | None = None

    def meant_for(self, received: Received) -> bool:
        """Return whether a request may take this step. A fork's name is its purpose, a dash and a unique suffix (FORK_HEADER)."""
        purpose = received.fork.rpartition("-")[0] or received.fork
        return purpose == (self.fork or "") and (self.when is None or self.when(received))


class Script:
    """The queue and the function that answers after it. Thread-safe, because each connection is a thread."""

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
                    f"the script would exceed {MAX_QUEUED:,} steps with {times:,} more; use server.answer_with instead"
                )
            self._queue.extend([PlannedStep(step, when, delay, fork)] * times)

    def take(self, received: Received) -> PlannedStep:
        with self._lock:
            for index, planned in enumerate(self._queue):
                if planned.meant_for(received):
                    return self._queue.pop(index)
        answer = self.answer(received) if self.answer is not None else None
        if answer is None:
            return PlannedStep(echo(received))
        return PlannedStep(make_answer(text=answer) if isinstance(answer, str) else answer)

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
    """Make an answer of thinking, text, blocks and tool calls, in this order. The server adds missing ids and signatures."""
    content: list[Wire] = []
    if thinking is not None:
        content.append({"type": "thinking", "thinking": thinking})
    if text is not None:
        content.append({"type": "text", "text": text})
    content.extend(blocks)
    content.extend(_call(call) for call in _calls(tool_use))
    if stop_reason == "refusal" and stop_details is None:
        stop_details = {"type": "refusal", "category": None, "explanation": None}
    return Answer(
        blocks=tuple(content),
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
    """Answer with the user's last text. The same request always gets the same answer."""
    return make_answer(text=f"You said: {last_text(received.body)[:ECHO_CHARACTERS].strip() or 'nothing'}")


def last_text(body: Mapping[str, Any]) -> str:
    """Return the last text of a user message, in either wire format."""
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
