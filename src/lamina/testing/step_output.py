"""Renders a step of the script as bytes: a whole answer, an error, or part of an answer and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import msgspec

from ..core.blocks import Wire
from .api_json import Problem, chat_error, chunks, data, event, events, messages_error
from .received_request import Received
from .script import Answer, Broken, Cut, Interrupted, Status, Step
from .transport import Outgoing


def plain(status: int, value: Wire, number: int, *, headers: dict[str, str] | None = None) -> Outgoing:
    return Outgoing(status, {**_headers(number), **(headers or {})}, (msgspec.json.encode(value),), begins=status == 200)


def make_out(step: Step, whole: Wire | None, received: Received, number: int) -> Outgoing:
    if isinstance(step, Status):
        return _status(step, received, number)
    assert whole is not None
    streamed = bool(received.body.get("stream"))
    parts = tuple(_parts(whole, received)) if streamed else (msgspec.json.encode(whole),)
    kind = "text/event-stream; charset=utf-8" if streamed else "application/json"
    full = Outgoing(200, {**_headers(number), "content-type": kind}, parts, streamed)
    match step:
        case Answer():
            return _stopless(full) if step.stop_reason is None and streamed else full
        case Cut():
            return _cut(step, full)
        case Broken():
            return _broken(step, full)
        case Interrupted():
            return _interrupted(step, full, received)
        case _:
            assert_never(step)


def _parts(whole: Wire, received: Received) -> Iterator[bytes]:
    if received.wire == "messages":
        return events(whole)
    options = received.body.get("stream_options") or {}
    return chunks(whole, include_usage=bool(options.get("include_usage")))


def _headers(number: int) -> dict[str, str]:
    name = f"req_{number:08d}"
    return {"content-type": "application/json", "request-id": name, "x-request-id": name}


def _status(step: Status, received: Received, number: int) -> Outgoing:
    problem = Problem(step.status, step.message, step.kind)
    value = chat_error(problem) if received.wire == "chat" else messages_error(problem, f"req_{number:08d}")
    headers = {} if step.retry_after is None else {"retry-after": f"{step.retry_after:g}"}
    return plain(step.status, value, number, headers=headers)


def _stopless(full: Outgoing) -> Outgoing:
    """Return the stream without the final events, which carry the stop reason."""
    kept = [
        part for part in full.parts if not part.startswith((b"event: message_delta", b"event: message_stop", b"data: [DONE]"))
    ]
    return full._replace(parts=tuple(kept))


def _cut(step: Cut, full: Outgoing) -> Outgoing:
    ending = "" if step.how == "end" else step.how
    if step.after == 0:
        return full._replace(parts=(), silent=True, cut=ending or "close", begins=False)
    half = full.parts[0][: len(full.parts[0]) // 2]
    return full._replace(parts=full.parts[: step.after] if full.stream else (half,), cut=ending)


def _broken(step: Broken, full: Outgoing) -> Outgoing:
    match step.what:
        case "json" if full.stream:
            # Damage the second event, the first that a client cannot do without: its data ends in the middle of a string.
            return full._replace(parts=(full.parts[0], full.parts[1][:-8] + b"\n\n", *full.parts[2:]))
        case "json":
            return full._replace(parts=(full.parts[0][: len(full.parts[0]) // 2],))
        case "sse":
            return full._replace(parts=(b"event message_start\n{]: data\n\n<html>\n\n",))
        case "utf8":
            return full._replace(parts=(b'event: message_start\ndata: {"type": "\xff\xfe"}\n\n',))
        case "gzip":
            return full._replace(headers={**full.headers, "content-encoding": "gzip"}, parts=(b"not gzip at all",))
        case _:
            assert_never(step.what)


def _interrupted(step: Interrupted, full: Outgoing, received: Received) -> Outgoing:
    error = {"type": step.kind, "message": step.message}
    part = event("error", {"error": error}) if received.wire == "messages" else data({"error": error})
    return full._replace(parts=(*full.parts[: step.after], part))


def fill_ids(blocks: tuple[Wire, ...], number: int, kind: str) -> tuple[Wire, ...]:
    """Add an id to each tool call that has none."""
    return tuple(
        {"type": "tool_use", "id": f"{kind}_{number:06d}_{at}", **{key: value for key, value in block.items() if key != "type"}}
        if block["type"] == "tool_use" and "id" not in block
        else block
        for at, block in enumerate(blocks)
    )
