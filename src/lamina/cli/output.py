"""The output of `-p`: text as it streams in, one JSON document, or one event per line (docs/events.md).

Owns standard output during a non-interactive turn. Invariants: every line of the two JSON formats is one document; a result
document always comes last, even if the turn failed or was stopped; no control sequence from the answer reaches a terminal.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never
from uuid import uuid4

from ..core.usage import Usage
from ..history.session_stats import SideCost
from ..language.text import Text
from ..providers.models import cost
from .console import document, printable
from .signals import SIGHUP, SIGPIPE, StopRequest

if TYPE_CHECKING:
    from ..agent.agent import Agent, TurnResult
    from ..core.reply import Reply
    from ..core.settings import Billing
    from .signals import StoppableProvider

Ending: TypeAlias = Literal["success", "error_max_turns", "error_during_execution"]

# Events of our own that no API stream has: the API reports a call in its answer, and a command's output in its result.
OURS = ("tool_call", "tool_output")

REFUSED = "The model declined to answer."
# Errors of a full disk or a file at its size limit.
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


class StdoutSink:
    """Standard output that may disappear: a pipe whose reader has closed it, or a terminal that was closed.

    Owns the writes to standard output while a turn runs. Invariants: a write never raises, since it is made inside the agent's
    loop, where an exception would lose the result of a tool that just ran. The first failing write requests a stop, and nothing
    more is written. Any thread may write, and texts are never interleaved.
    """

    def __init__(self, stop: StopRequest) -> None:
        self._stop = stop
        self.lock = threading.RLock()
        self.gone = False
        self.trouble = ""  # why writing failed, unless the reader closed the pipe

    def write(self, text: str) -> None:
        with self.lock:
            if self.gone:
                return
            try:
                sys.stdout.write(text)
                sys.stdout.flush()
            except (OSError, ValueError) as error:  # ValueError: closed
                self._lose(error)

    def _lose(self, error: OSError | ValueError) -> None:
        self.gone = True
        number = getattr(error, "errno", None)
        if number in _FULL:
            self.trouble = os.strerror(number).lower()
        # Discard what is still buffered; the interpreter's final flush would otherwise fail.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ is not None else nowhere)
        os.close(nowhere)
        self._stop.request(SIGPIPE if self.trouble or isinstance(error, BrokenPipeError) else SIGHUP)


def describe_retry(event: Mapping[str, Any]) -> Text:
    """Say why a call failed and when it is sent again."""
    return Text(
        "{error} Retry {attempt} of {most} in {seconds:.1f} s.",
        error=event["error"],
        attempt=event["attempt"],
        most=event["max_retries"],
        seconds=event["seconds"],
    )


def price(model: str, usage: Usage) -> float | None:
    """Return the cost in dollars; None if the model's prices are unknown."""
    return cost(model, usage).usd


class TurnTally:
    """Totals over the calls of a turn: usage and cost, those of agents and background calls by purpose, and denied tool calls."""

    def __init__(self) -> None:
        self.turns = 0
        self.usage = Usage()
        self.dollars: float | None = 0.0  # None once a model with unknown prices has answered
        self.last: Usage | None = None
        self.side: dict[str, SideCost] = {}
        self.denials: list[dict[str, Any]] = []
        self._calls: dict[str, dict[str, Any]] = {}

    def heard(self, event: Mapping[str, Any]) -> None:
        if event["type"] == "answer":
            self.turns += 1
            if (usage := event["reply"].usage) is not None:
                self.last = usage
                self.usage += usage
                dollars = price(event["reply"].model, usage)
                self.dollars = None if dollars is None or self.dollars is None else self.dollars + dollars
        elif event["type"] == "layer" and event["name"] == "fork":
            purpose = str(event["data"]["purpose"])
            self.side[purpose] = self.side.get(purpose, SideCost()) + SideCost.of_event(event["data"])
        elif event["type"] == "tool_call":
            self._calls[event["id"]] = {"tool_name": event["name"], "tool_use_id": event["id"], "tool_input": event["input"]}
        elif event["type"] == "tool_result" and event["facts"].get("denied"):
            self.denials.append(self._calls[event["id"]])

    def breakdown(self) -> dict[str, SideCost]:
        """Return the cost of the turn: the conversation, and its agents and background calls by purpose."""
        return {"conversation": SideCost(self.turns, self.usage, self.dollars), **self.side}


class TextOutput:
    """Writes the model's text as it streams in, starting a new line for each answer of the turn."""

    def __init__(self, sink: StdoutSink) -> None:
        self._sink = sink
        self._written = ""

    def begin(self, agent: Agent) -> None:
        """Text output has no preamble."""

    def event(self, event: dict[str, Any]) -> None:
        if event["type"] == "answer" and self._written and not self._written.endswith("\n"):
            self._write("\n")
        delta = event.get("delta")
        if isinstance(delta, Mapping) and delta.get("type") == "text_delta":
            self._write(str(delta["text"]))

    def end(self, ending: Ending, text: str) -> None:
        if not self._written and ending == "success":
            self._write(text)
        if not self._written.endswith("\n") and (self._written or ending == "success"):
            self._write("\n")

    def _write(self, text: str) -> None:
        """Strip control sequences for a terminal; files and pipes get the text unchanged."""
        if text:
            self._written = text
            self._sink.write(printable(text) if sys.stdout.isatty() else text)


class JsonOutput:
    """Writes one JSON document at the end; with `lines`, also one JSON event per line before it."""

    def __init__(
        self,
        sink: StdoutSink,
        provider: StoppableProvider,
        tally: TurnTally,
        *,
        lines: bool,
        partial: bool = False,
        billing: Billing = "list",
    ) -> None:
        self._sink = sink
        self._provider = provider
        self._tally = tally
        self._lines = lines
        self._partial = partial
        self._billing = billing
        self._session_id = ""
        self._began = time.monotonic()

    def begin(self, agent: Agent) -> None:
        self._session_id = agent.session.id
        init = {
            "cwd": str(agent.session.cwd),
            "model": self._provider.model,
            "tools": [tool.name for tool in agent.tools],
            "permissionMode": agent.mode,
        }
        self._event("system", subtype="init", **init)

    def event(self, event: dict[str, Any]) -> None:
        if event["type"] in ("answer", "tool_result"):
            self._message(event)
        elif event["type"] == "agent_event":
            # Messages of a subagent carry the id of the call that started it.
            if event["event"]["type"] in ("answer", "tool_result"):
                self._message(event["event"], event["call"])
        elif event["type"] == "layer":
            self._layer(event["name"], event["data"])
        elif event["type"] == "agent":
            told = {name: event[name] for name in ("id", "description", "background", "calls", "seconds", "summary")}
            self._event("system", subtype="agent", parent_tool_use_id=event["call"], **told)
        elif event["type"] == "retry":
            told = {name: event[name] for name in ("attempt", "max_retries", "error")}
            self._event("system", subtype="api_retry", retry_delay_ms=round(event["seconds"] * 1000), **told)
        elif event["type"] not in OURS and self._partial:
            self._event("stream_event", event=event, parent_tool_use_id=None)

    def _message(self, event: dict[str, Any], call: str | None = None) -> None:
        if event["type"] == "answer":
            self._event("assistant", message=self._answer(event["reply"]), parent_tool_use_id=call)
            return
        told = {"tool_use_id": event["id"], "content": event["content"], "is_error": event["is_error"]}
        self._event("user", message={"role": "user", "content": [{"type": "tool_result", **told}]}, parent_tool_use_id=call)

    def _layer(self, name: str, data: dict[str, Any]) -> None:
        """Report a layer's action. A compaction uses the event name that other programs already read."""
        if name == "compaction":
            names = {"trigger": "trigger", "pre_tokens": "tokens_before", "post_tokens": "tokens_after"}
            known = {name: data.get(own) for name, own in names.items()}
            self._event("system", subtype="compact_boundary", compact_metadata=known)
        else:
            self._event("system", subtype="layer", name=name, data=data)

    def _answer(self, reply: Reply) -> dict[str, Any]:
        return {
            "id": reply.id,
            "type": "message",
            "role": "assistant",
            "model": reply.model or self._provider.model,
            "content": [block.wire for block in reply.blocks],
            "stop_reason": reply.stop_reason,
            "usage": reply.usage.wire() if reply.usage is not None else {},
        }

    def end(self, ending: Ending, text: str) -> None:
        tally = self._tally
        costs = tally.breakdown()
        total = sum(costs.values(), SideCost())
        result = {
            "type": "result",
            "subtype": ending,
            "is_error": ending != "success",
            "result": text,
            "num_turns": tally.turns,
            "duration_ms": round((time.monotonic() - self._began) * 1000),
            "duration_api_ms": round(self._provider.seconds * 1000),
            "total_cost_usd": total.usd,
            "billing": self._billing,
            "usage": total.usage.wire(),
            "cost_breakdown": {
                name: {"calls": cost.calls, "usage": cost.usage.wire(), "cost_usd": cost.usd} for name, cost in costs.items()
            },
            "permission_denials": tally.denials,
        }
        self._write(result)

    def _event(self, kind: str, **fields: Any) -> None:
        if self._lines:
            self._write({"type": kind, **fields})

    def _write(self, value: dict[str, Any]) -> None:
        self._sink.write(document({**value, "session_id": self._session_id, "uuid": str(uuid4())}) + "\n")


def ending_of(answer: TurnResult) -> tuple[Ending, str]:
    """Return the result subtype of a finished turn, and its text."""
    match answer.ended:
        case "rounds":
            return "error_max_turns", answer.text or Text(
                "The turn was not finished after {n} model call.|The turn was not finished after {n} model calls.",
                n=answer.rounds,
            )
        case "refused":
            return "error_during_execution", answer.text or REFUSED
        case "answered" | "cut off" | "stopped":
            return "success", answer.text
        case _:
            assert_never(answer.ended)
