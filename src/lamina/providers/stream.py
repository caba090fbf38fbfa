"""Assembles a streamed answer from its events.

`StreamState` accumulates events of the Messages API and knows nothing about SDKs, threads or event loops. Other wire formats are
translated into these events first, so listeners see one kind of stream. Two thin readers, sync and async, pull events from an SDK's
stream, feed the state and call the listener.

This module enforces the safety rule: only a stream that ended with a stop reason becomes a Reply. Anything else raises StreamBroken
with the blocks received so far. If the input of a tool call is not a JSON object, it is kept under UNPARSED and the answer counts as
cut off (`stop_reason` None, the real one in `notes`), so the call is never executed. Usage in the events is cumulative, so it is
overwritten and never added up. It is counted once, and not at all for a broken stream.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from threading import Event
from types import TracebackType
from typing import Any, Protocol

import msgspec

from ..core.blocks import Wire, scrub
from ..core.errors import Aborted, InputError, StreamBroken
from ..core.reply import Reply, read_response
from ..language.text import Text
from . import OnEvent
from .faults import is_outside, read_fault, typed_error

# The key under which a tool input that is not a JSON object is kept as text.
UNPARSED = "lamina:unparsed"

# Far more than the longest answer of any model. A stream that exceeds this never ends.
MAX_EVENTS = 4_000_000
MAX_CHARACTERS = 64 << 20

_APPENDED = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class Translator(Protocol):
    """Turns the chunks of a server into events of the Messages API."""

    def feed(self, raw: Mapping[str, Any]) -> Iterable[Wire]: ...

    def close(self) -> Iterable[Wire]:
        """Return the final events after the stream ended without an error."""
        ...


class Untranslated:
    """A translator for servers that already send events of the Messages API."""

    def feed(self, raw: Mapping[str, Any]) -> Iterable[Wire]:
        return (dict(raw),)

    def close(self) -> Iterable[Wire]:
        return ()


class StreamState:
    def __init__(self) -> None:
        self._message: Wire = {}
        self._blocks: dict[int, Wire] = {}
        # Pieces are joined once at the end, because a long answer arrives in ten thousand of them.
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._events = 0
        self._characters = 0
        self.finished = False

    def feed(self, event: Mapping[str, Any]) -> None:
        """Add one event. Malformed or misplaced events raise StreamBroken; events of unknown types are ignored."""
        self._events += 1
        if self._events > MAX_EVENTS or self._characters > MAX_CHARACTERS:
            raise StreamBroken("The response exceeds the size limit; the server does not end it.", partial=self.partial())
        try:
            self._feed(event)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise _unreadable(error, self) from error

    def _feed(self, event: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self._message = {**event["message"], "content": []}
            case "content_block_start":
                self._blocks[int(event["index"])] = dict(event["content_block"])
                self._characters += len(repr(event))
            case "content_block_delta":
                self._delta(int(event["index"]), event["delta"])
            case "message_delta":
                self._merge(event)
            case "message_stop":
                self.finished = True
            case _:
                pass  # ping, content_block_stop, and events that later API versions add

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block, kind = self._blocks[index], delta["type"]
        if kind in _APPENDED:
            piece = str(delta[_APPENDED[kind]])
            self._pieces.setdefault((index, _APPENDED[kind]), []).append(piece)
            self._characters += len(piece)
            return
        self._characters += len(repr(delta))
        if kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        else:  # signature_delta, and complete fields in later API versions
            block.update({key: value for key, value in delta.items() if key != "type"})

    def _merge(self, event: Mapping[str, Any]) -> None:
        usage = {**(self._message.get("usage") or {}), **_given(event.get("usage"))}
        around = _given({key: value for key, value in event.items() if key not in ("type", "delta", "usage")})
        self._message = {**self._message, **around, **_given(event.get("delta")), "usage": usage}

    def partial(self) -> tuple[Wire, ...]:
        """Return the blocks received so far, in order. Do not execute any tool call among them."""
        return tuple(self._block(index) for index in sorted(self._blocks))

    def _block(self, index: int) -> Wire:
        block = dict(self._blocks[index])
        for field in ("text", "thinking"):
            if pieces := self._pieces.get((index, field)):
                block[field] = str(block.get(field) or "") + "".join(pieces)
        if pieces := self._pieces.get((index, "partial_json")):
            block["input"] = read_input("".join(pieces))
        return block

    def reply(self, *, request_id: str | None = None) -> Reply:
        """Return the complete answer. Raise StreamBroken if the stream ended without a stop reason."""
        blocks = self.partial()
        if not self.finished or self._message.get("stop_reason") is None:
            raise StreamBroken(
                "The response ended early, without a stop reason. You can retry the request.",
                partial=blocks,
                request_id=request_id,
            )
        try:
            reply = read_response({**self._message, "content": blocks})
        except InputError as error:
            raise StreamBroken(
                Text("The response is not readable ({error}). You can retry the request.", error=error), partial=blocks
            ) from error
        return withhold_unparsed(msgspec.structs.replace(reply, request_id=request_id or reply.request_id))


def read_input(text: str) -> Any:
    """Parse the input of a tool call. If it is not a JSON object, keep its text under UNPARSED."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_finite, parse_float=_finite)
        msgspec.json.encode(scrub(value))
    except (ValueError, RecursionError, OverflowError, TypeError):
        return {UNPARSED: text}
    return value if isinstance(value, dict) else {UNPARSED: text}


def _finite(number: str) -> float:
    """Parse a finite number. NaN and numbers too large for a float would become null in the next request."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a JSON number")
    return value


def withhold_unparsed(reply: Reply) -> Reply:
    """Treat an answer with an invalid tool input as cut off, so that none of its calls is executed."""
    bad = [call.id for call in reply.tool_uses if isinstance(call.input, dict) and UNPARSED in call.input]
    if not bad:
        return reply
    notes = {**reply.notes, "unparsed_input": bad, "stop_reason": reply.stop_reason}
    return msgspec.structs.replace(reply, stop_reason=None, notes=notes)


def _given(values: Mapping[str, Any] | None) -> Wire:
    return {key: value for key, value in (values or {}).items() if value is not None}


class _Typed:
    """A context manager that turns errors of the SDK or the network into Lamina's errors, or StreamBroken after the first block."""

    def __init__(self, state: StreamState, who: str) -> None:
        self._state = state
        self._who = who

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or not is_outside(error):
            return
        typed = typed_error(read_fault(error), who=self._who, now=time.time())
        partial = self._state.partial()
        if not partial:
            raise typed from error
        raise StreamBroken(
            Text("The response from {who} was interrupted. {typed} You can retry the request.", who=self._who, typed=typed),
            partial=partial,
            request_id=typed.request_id,
        ) from error


def read_stream(
    open_stream: Callable[[], Any],
    *,
    translator: Translator,
    who: str,
    on_event: OnEvent | None = None,
    abort: Event | None = None,
) -> Reply:
    """Open an SDK's stream and read it to its end, or to the first event after an abort.

    Closing the connection tells the server to stop.
    """
    state = StreamState()
    typed = _Typed(state, who)
    with typed:
        stream = open_stream()
    try:
        chunks = iter(stream)
        while True:
            with typed:
                chunk = next(chunks, None)
            if abort is not None and abort.is_set():
                raise Aborted
            if chunk is None:
                break
            _tell(state, translated(translator, chunk, state), on_event)
        _tell(state, translator.close(), on_event)
    finally:
        stream.close()
    return state.reply(request_id=_request_id(stream))


async def read_stream_async(
    open_stream: Callable[[], Awaitable[Any]], *, translator: Translator, who: str, on_event: OnEvent | None = None
) -> Reply:
    """Read an SDK's stream in an event loop, like `read_stream`."""
    state = StreamState()
    typed = _Typed(state, who)
    with typed:
        stream = await open_stream()
    try:
        chunks = stream.__aiter__()
        while True:
            with typed:
                chunk = await anext(chunks, None)
            if chunk is None:
                break
            _tell(state, translated(translator, chunk, state), on_event)
        _tell(state, translator.close(), on_event)
    finally:
        await stream.close()
    return state.reply(request_id=_request_id(stream))


def translated(translator: Translator, chunk: object, state: StreamState) -> Iterable[Wire]:
    """Return the events of one chunk. SDK objects are not validated and may contain anything, so their warnings are off."""
    dump = getattr(chunk, "model_dump", None)
    raw = dump(mode="json", exclude_none=True, warnings=False) if callable(dump) else chunk
    try:
        if not isinstance(raw, Mapping):
            raise TypeError(f"a {type(chunk).__name__}, not an object")
        return list(translator.feed(raw))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _unreadable(error, state) from error


def _unreadable(error: Exception, state: StreamState) -> StreamBroken:
    what = f"{type(error).__name__}: {error}"
    return StreamBroken(
        Text("The stream contains invalid data ({what}). You can retry the request.", what=what), partial=state.partial()
    )


def _tell(state: StreamState, events: Iterable[Wire], on_event: OnEvent | None) -> None:
    for event in events:
        state.feed(event)
        if on_event is not None:
            on_event(event)


def _request_id(stream: object) -> str | None:
    headers = getattr(getattr(stream, "response", None), "headers", None) or {}
    ident = headers.get("request-id") or headers.get("x-request-id")
    return ident if isinstance(ident, str) else None
