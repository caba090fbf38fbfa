"""`MessagesServer`: the Messages API and the Chat Completions API on loopback, with a prompt cache, scripted answers and faults.

Every request is validated like in the real API, answered by the script (or by an echo), billed by the cache model, and stored in
`requests`. Time stands still until the test advances `clock`. Nothing is stored outside the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from types import TracebackType
from typing import Literal, Unpack

import msgspec

from ..core.blocks import Wire
from .received_request import Announced, Breaks, Received
from .request_handler import respond
from .script import Answer, Broken, Cut, Interrupted, Queued, Status, Step, ToolCall, make_answer
from .server_state import ServerState
from .transport import HOST, Transport

# Functions called with every server that starts, so that the pytest plugin sees servers that a test creates itself.
on_start: list[Callable[[MessagesServer], None]] = []


class MessagesServer(ServerState):
    """A model API on loopback, for tests. Use it as a context manager, or call `start` and `close`."""

    @cached_property
    def _transport(self) -> Transport:
        return Transport(lambda incoming: respond(self, incoming), lambda: self.body_limit, self.closing)

    def start(self) -> MessagesServer:
        """Start listening on a free port and return the server."""
        self._transport.open()
        for notify in list(on_start):
            notify(self)
        return self

    def close(self) -> None:
        """Stop the server and close its connections."""
        self._transport.close()

    def __enter__(self) -> MessagesServer:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The base_url for the Anthropic SDK."""
        return f"http://{HOST}:{self._transport.port}"

    @property
    def openai_url(self) -> str:
        """The base_url for the OpenAI SDK."""
        return f"{self.url}/v1"

    @property
    def window(self) -> int:
        """Maximum number of tokens in a prompt; a shorthand for `limits.window`."""
        return self.limits.window

    @window.setter
    def window(self, tokens: int) -> None:
        self.limits = msgspec.structs.replace(self.limits, window=tokens)

    def reply(
        self,
        *blocks: Wire,
        text: str | None = None,
        thinking: str | None = None,
        tool_use: ToolCall | Sequence[ToolCall] | None = None,
        stop_reason: str | None = "auto",
        stop_sequence: str | None = None,
        stop_details: Wire | None = None,
        output_tokens: int | None = None,
        **queued: Unpack[Queued],
    ) -> None:
        """Queue an answer for the conversation, or for the next fork of a kind (`fork="notes"`).

        With `stop_reason=None`, the answer has no stop reason.
        """
        answer = make_answer(
            *blocks,
            text=text,
            thinking=thinking,
            tool_use=tool_use,
            stop_reason=stop_reason,
            stop_sequence=stop_sequence,
            stop_details=stop_details,
            output_tokens=output_tokens,
        )
        self.script.add(answer, **queued)

    def fail(
        self, status: int, *, kind: str = "", message: str = "", retry_after: float | None = None, **queued: Unpack[Queued]
    ) -> None:
        """Queue an HTTP error."""
        self.script.add(Status(status=status, kind=kind, message=message, retry_after=retry_after), **queued)

    def cut(
        self,
        answer: Answer | str = "An answer that does not arrive whole.",
        *,
        after: int = 0,
        how: Literal["reset", "close", "end"] = "reset",
        **queued: Unpack[Queued],
    ) -> None:
        """Queue an answer that stops before its first byte (`after=0`) or after `after` events."""
        self.script.add(Cut(answer=_whole(answer), after=after, how=how), **queued)

    def garble(self, what: Literal["json", "sse", "utf8", "gzip"], **queued: Unpack[Queued]) -> None:
        """Queue an answer whose body does not match its headers."""
        self.script.add(Broken(answer=_whole("An unreadable answer."), what=what), **queued)

    def interrupt(
        self,
        answer: Answer | str = "An answer that is interrupted.",
        *,
        after: int = 1,
        kind: str = "overloaded_error",
        message: str = "Overloaded",
        **queued: Unpack[Queued],
    ) -> None:
        """Queue a stream in which an error event follows `after` regular ones."""
        self.script.add(Interrupted(answer=_whole(answer), after=after, kind=kind, message=message), **queued)

    def answer_with(self, function: Callable[[Received], Step | str | None] | None) -> None:
        """Set the function that answers if no queued step matches. It returns a step, a text, or None for the echo.

        It is called for forks too (`received.fork` names them), in the thread that serves the request.
        """
        self.script.answer = function

    def announce_break(self, reason: str, *, decision: str = "", session: str | None = None) -> None:
        """Announce that the next request of the session (or of any, if None) need not start with the previous one."""
        self.announcements.add(Announced(reason, decision), session)

    def follow(
        self,
        *,
        breaks: Breaks | None = None,
        decisions: Callable[[], int] | None = None,
        session: str | None = None,
    ) -> None:
        """Read announcements from the program under test whenever a request arrives.

        `breaks()` returns the number of breaks so far, such as `session.status.cache_breaks`, or all break records (any objects with a
        `reason`). `decisions()` returns the number of decisions that the layers have made.
        """
        if breaks is not None:
            self.announcements.follow(breaks, session)
        if decisions is not None:
            self.announcements.follow_decisions(decisions)


def _whole(answer: Answer | str) -> Answer:
    return make_answer(text=answer) if isinstance(answer, str) else answer
