"""Translates the chunks of a Chat Completions stream into events of the Messages API.

Servers differ: some send no call ids, no indices or no usage, send complete calls at once, or finish an answer with tool calls with
`stop`. Missing values are generated in a stable way. A stream without a finish reason is left unfinished, so it counts as broken.
The same code reads a complete response as a single chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..core.blocks import Wire
from ..core.usage import count_of

STOP_REASONS = {
    "stop": "end_turn",
    "eos": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}

TEXT = "text"
THINKING = "thinking"


class ChatStream:
    """A translator: feed it chunks, then close it. Both return events."""

    def __init__(self) -> None:
        self._id = ""
        self._started = False
        self._count = 0
        self._open: tuple[str, int] | None = None  # the text or thinking block being written
        self._calls: dict[int, int] = {}  # the server's index of a call → the index of its block
        self._ids: dict[int, str] = {}
        self._last_call = -1
        self._finish: str | None = None
        self._refused = False
        self._usage: Wire = {}

    def feed(self, raw: Mapping[str, Any]) -> Iterable[Wire]:
        events: list[Wire] = [] if self._started else [self._start(raw)]
        if isinstance(usage := raw.get("usage"), Mapping):
            self._usage = messages_usage(usage)
        for choice in list(raw.get("choices") or ())[:1]:
            delta = choice.get("delta") or choice.get("message") or {}
            events += self._text_events(delta)
            for position, call in enumerate(delta.get("tool_calls") or ()):
                events += self._call(call, position)
            self._finish = choice.get("finish_reason") or self._finish
        return events

    def close(self) -> Iterable[Wire]:
        if self._finish is None or self._finish == "error":
            return []
        stop = STOP_REASONS.get(self._finish, self._finish)
        if self._refused:
            stop = "refusal"
        elif stop in ("end_turn", "tool_use"):
            stop = "tool_use" if self._calls else "end_turn"
        ends = [*([self._open[1]] if self._open else ()), *self._calls.values()]
        return [
            *({"type": "content_block_stop", "index": index} for index in ends),
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": self._usage},
            {"type": "message_stop"},
        ]

    def _start(self, raw: Mapping[str, Any]) -> Wire:
        self._started = True
        self._id = str(raw.get("id") or "")
        message: Wire = {"id": self._id, "type": "message", "role": "assistant", "model": raw.get("model") or "", "content": []}
        return {"type": "message_start", "message": message}

    def _text_events(self, delta: Mapping[str, Any]) -> list[Wire]:
        events: list[Wire] = []
        thoughts = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thoughts, str) and thoughts:
            events += self._write(THINKING, thoughts)
        content = delta.get("content")
        for kind, text in _texts(content):
            events += self._write(kind, text)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refused = True
            events += self._write(TEXT, refusal)
        return events

    def _write(self, kind: str, text: str) -> list[Wire]:
        events: list[Wire] = []
        if self._open is None or self._open[0] != kind:
            if self._open is not None:
                events.append({"type": "content_block_stop", "index": self._open[1]})
            self._open = (kind, self._count)
            self._count += 1
            block = {"type": kind, kind: ""} | ({"signature": ""} if kind == THINKING else {})
            events.append({"type": "content_block_start", "index": self._open[1], "content_block": block})
        events.append({"type": "content_block_delta", "index": self._open[1], "delta": {"type": f"{kind}_delta", kind: text}})
        return events

    def _call(self, call: Mapping[str, Any], position: int) -> list[Wire]:
        function = call.get("function") or {}
        place = self._place(call, position)
        events: list[Wire] = []
        if place not in self._calls:
            self._ids[place] = str(call.get("id") or f"call_{self._id or 'answer'}_{place}")
            self._calls[place] = self._count
            self._count += 1
            block = {"type": "tool_use", "id": self._ids[place], "name": str(function.get("name") or ""), "input": {}}
            events.append({"type": "content_block_start", "index": self._calls[place], "content_block": block})
        self._last_call = place
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        if isinstance(arguments, str) and arguments:
            delta = {"type": "input_json_delta", "partial_json": arguments}
            events.append({"type": "content_block_delta", "index": self._calls[place], "delta": delta})
        return events

    def _place(self, call: Mapping[str, Any], position: int) -> int:
        """Return the call that a piece belongs to. A new id with a used index is a new call, since some servers always send 0."""
        index, ident = call.get("index"), call.get("id")
        if isinstance(index, int) and (not ident or self._ids.get(index, ident) == ident):
            return index
        for place, known in self._ids.items():
            if ident and known == ident:
                return place
        if not ident and self._last_call >= 0 and not (call.get("function") or {}).get("name"):
            return self._last_call
        return max([-1, *self._calls]) + 1


def _texts(content: object) -> list[tuple[str, str]]:
    """Return the texts of a delta. Some servers send a list of parts that includes thinking."""
    if isinstance(content, str):
        return [(TEXT, content)] if content else []
    found: list[tuple[str, str]] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            found.append((TEXT, part["text"]))
        elif isinstance(part, Mapping) and part.get("type") == THINKING:
            found += [(THINKING, text) for _, text in _texts(part.get(THINKING))]
    return found


def messages_usage(raw: Mapping[str, Any]) -> Wire:
    """Convert chat usage to the Messages API, where `input_tokens` does not include cached tokens."""
    details = raw.get("prompt_tokens_details")
    details = details if isinstance(details, Mapping) else {}
    prompt = count_of(raw.get("prompt_tokens"))
    read = min(prompt, count_of(details.get("cached_tokens")) or count_of(raw.get("prompt_cache_hit_tokens")))
    written = min(prompt - read, count_of(details.get("cache_write_tokens")))
    return {
        "input_tokens": prompt - read - written,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": count_of(raw.get("completion_tokens")),
    }
