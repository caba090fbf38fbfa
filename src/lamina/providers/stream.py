"""A streamed answer, put together from its events.

`StreamState` is the one accumulator: it knows the events of the Messages API and nothing of SDKs, threads or loops. What another
wire format sends is translated into these events first, so listeners see one kind of stream. Two thin readers, sync and async,
pull events from an SDK's stream, feed the state and tell the listener.

The safety rule lives here: only a stream that ended with a stop reason becomes a Reply. Anything else is a StreamBroken that
carries the blocks received so far. A tool call whose input is no JSON object is kept under UNPARSED, and its answer counts as cut
off (`stop_reason` None, the real one in `notes`), so it is never executed. Usage is cumulative in the events and overwritten,
never added up: it is counted once, and not at all for a broken stream.
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
from . import OnEvent
from .faults import is_outside, read_fault, typed_error

# The key under which a tool input that is no JSON object is kept as the text it came as.
UNPARSED = "lamina:unparsed"

# Far more than the longest answer any model gives: what goes on beyond it is a server that never ends (Z7).
MAX_EVENTS = 4_000_000
MAX_CHARACTERS = 64 << 20

_APPENDED = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class Translator(Protocol):
    """Turns a server's own chunks into events of the Messages API."""

    def feed(self, raw: Mapping[str, Any]) -> Iterable[Wire]: ...

    def close(self) -> Iterable[Wire]:
        """The stream ended without an error."""
        ...


class Untranslated:
    """The Messages API itself."""

    def feed(self, raw: Mapping[str, Any]) -> Iterable[Wire]:
        return (dict(raw),)

    def close(self) -> Iterable[Wire]:
        return ()


class StreamState:
    def __init__(self) -> None:
        self._message: Wire = {}
        self._blocks: dict[int, Wire] = {}
        # Pieces are joined once at the end: a long answer arrives in ten thousand of them.
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._events = 0
        self._characters = 0
        self.finished = False

    def feed(self, event: Mapping[str, Any]) -> None:
        """One event; an event of a kind or order nobody knows is a broken stream, an unknown kind of event is none of ours."""
        self._events += 1
        if self._events > MAX_EVENTS or self._characters > MAX_CHARACTERS:
            raise StreamBroken("The answer is longer than any model's; the server does not end it.", partial=self.partial())
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
                pass  # ping, content_block_stop, and what later versions add

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
        else:  # signature_delta and whole fields that later versions send at once
            block.update({key: value for key, value in delta.items() if key != "type"})

    def _merge(self, event: Mapping[str, Any]) -> None:
        usage = {**(self._message.get("usage") or {}), **_given(event.get("usage"))}
        around = _given({key: value for key, value in event.items() if key not in ("type", "delta", "usage")})
        self._message = {**self._message, **around, **_given(event.get("delta")), "usage": usage}

    def partial(self) -> tuple[Wire, ...]:
        """The blocks received so far, in order; nothing in them may be executed."""
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
        """The whole answer; StreamBroken when the stream ended before it said why it stopped."""
        blocks = self.partial()
        if not self.finished or self._message.get("stop_reason") is None:
            raise StreamBroken(
                "The answer stopped half way, without a stop reason; the request can be sent again.",
                partial=blocks,
                request_id=request_id,
            )
        try:
            reply = read_response({**self._message, "content": blocks})
        except InputError as error:
            raise StreamBroken(f"The answer can't be read ({error}); the request can be sent again.", partial=blocks) from error
        return withhold_unparsed(msgspec.structs.replace(reply, request_id=request_id or reply.request_id))


def read_input(text: str) -> Any:
    """A tool's input; what is no JSON object is kept as the text it is."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_finite, parse_float=_finite)
        msgspec.json.encode(scrub(value))
    except (ValueError, RecursionError, OverflowError, TypeError):
        return {UNPARSED: text}
    return value if isinstance(value, dict) else {UNPARSED: text}


def _finite(number: str) -> float:
    """NaN and what is too large for a float would become null in the next request."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is no JSON number")
    return value


def withhold_unparsed(reply: Reply) -> Reply:
    """An answer with a tool input nobody can read counts as cut off: none of its calls may run."""
    bad = [call.id for call in reply.tool_uses if isinstance(call.input, dict) and UNPARSED in call.input]
    if not bad:
        return reply
    notes = {**reply.notes, "unparsed_input": bad, "stop_reason": reply.stop_reason}
    return msgspec.structs.replace(reply, stop_reason=None, notes=notes)


def _given(values: Mapping[str, Any] | None) -> Wire:
    return {key: value for key, value in (values or {}).items() if value is not None}


class _Typed:
    """Inside this, a fault of the SDK or the network becomes one of our errors; with blocks received, a broken stream."""

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
            f"The answer from {self._who} stopped half way ({typed}); the request can be sent again.",
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
    """Open an SDK's stream and read it to its end, or to the first event after an abort: the server is told by the closed
    connection."""
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
    """`read_stream` on an event loop."""
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
    """The events of one chunk. The SDKs build their objects unchecked: anything may be in them, and they must not warn of it."""
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
        f"The stream holds what nobody can read ({what}); the request can be sent again.", partial=state.partial()
    )


def _tell(state: StreamState, events: Iterable[Wire], on_event: OnEvent | None) -> None:
    for event in events:
        state.feed(event)
        if on_event is not None:
            on_event(event)


def _request_id(stream: object) -> str | None:
    headers = getattr(getattr(stream, "response", None), "headers", None) or {}
    found = headers.get("request-id") or headers.get("x-request-id")
    return found if isinstance(found, str) else None
