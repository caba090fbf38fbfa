"""Converts a caller's growing list of chat messages to the canonical form, each message once.

Callers pass the same list again and again, a little longer each time. Rows that are the same objects as last time keep their
converted messages, which are then the same objects too. So the cost grows only with the new rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

from ..core.blocks import Wire
from ..core.errors import InputError
from ..core.reply import plain
from .conversion import messages_from_chat


class Start(NamedTuple):
    """The start of an answer. The rows before and after it can be converted independently."""

    row: int
    message: int


class ChatRows:
    def __init__(self) -> None:
        self._rows: list[object] = []
        self._messages: list[Wire] = []
        self._starts: list[Start] = []

    def canonical(self, rows: Sequence[object]) -> list[Wire]:
        """Convert the rows. System messages keep their places."""
        same = _common(self._rows, rows)
        while self._starts and self._starts[-1].row >= same:
            self._starts.pop()
        row, message = self._starts.pop() if self._starts else Start(0, 0)
        new = [_plain(index, raw) for index, raw in enumerate(rows[row:], start=row)]
        fresh = messages_from_chat(new)
        answers = [index for index, raw in enumerate(new, start=row) if raw.get("role") == "assistant"]
        made = [index for index, one in enumerate(fresh, start=message) if one["role"] == "assistant"]
        self._starts += map(Start, answers, made)
        self._rows = list(rows)
        self._messages = [*self._messages[:message], *fresh]
        return self._messages


def _common(before: Sequence[object], now: Sequence[object]) -> int:
    """Return the number of leading rows that are the same objects."""
    for index, same in enumerate(map(is_, before, now)):
        if not same:
            return index
    return min(len(before), len(now))


def _plain(index: int, row: object) -> Mapping[str, Any]:
    """Return a row as a mapping. It may be a dict or an SDK object, as in `messages.append(response.choices[0].message)`."""
    where = f"messages[{index}]"
    raw = plain(row) if hasattr(row, "model_dump") else row
    if not isinstance(raw, Mapping):
        raise InputError(where, f"a message must be an object with a role and content, not {type(row).__name__}")
    content, calls = raw.get("content"), raw.get("tool_calls")
    if not (content is None or isinstance(content, str) or _objects(content)):
        raise InputError(f"{where}.content", "must be a string or a list of parts")
    if not (calls is None or (_objects(calls) and all(isinstance(call.get("function", {}), Mapping) for call in calls))):
        raise InputError(f"{where}.tool_calls", "must be a list of calls")
    return {**raw, "tool_calls": [_named(call, index, number) for number, call in enumerate(calls)]} if calls else raw


def _named(call: Mapping[str, Any], index: int, number: int) -> Mapping[str, Any]:
    """Add an id to a call without one. It is derived from the position, so it is the same each time the list is read."""
    return call if call.get("id") else {**call, "id": f"call_{index}_{number}"}


def _objects(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(part, Mapping) for part in value)
