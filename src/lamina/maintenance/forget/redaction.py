"""Redact a subject in plain text, Markdown and JSON values (B11). Pure and idempotent.

In plain text the line with the subject becomes `[removed]`; in a very long line only the sentence, and in a text without blanks
(a path, a branch) only the words themselves. In Markdown the paragraph, the list item with its children, or the section under a
heading is removed. In JSON every string and key is redacted, except the structural ones: ids, types, roles. A thinking block
that changed loses its signature, which would be invalid; readers skip such a block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Generic, NamedTuple, TypeVar

from .subject import Subject, TextSpan, merge_spans

T = TypeVar("T")

MARK = "[removed]"
# In a longer line (a minified file, a long paragraph) only the sentence is redacted.
LONG_LINE = 1_000
# How far to search for the sentence's ends.
SENTENCE = 300

_LINE_END = re.compile(r"\n|\\+[nr]")
_SENTENCE_END = re.compile(r"[.!?;](?=\s)|[。！？；]|\n")
_HEADING = re.compile(r"(#{1,6})\s")
_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s|\s*\|")
# Structural keys of records. Inside tool inputs and results they are ordinary words.
# fmt: off
_HOLDING = frozenset({
    "uuid", "parentUuid", "logicalParentUuid", "leafUuid", "sessionId", "id", "ids", "uuids", "allUuids", "kept", "tool_use_id",
    "toolUseId", "toolUseID", "parentToolUseID", "agentId", "requestId", "promptId", "messageId", "message_id", "type",
    "subtype", "role", "timestamp", "version", "signature", "media_type", "model", "kind", "stop_reason",
    "sourceToolAssistantUUID", "digest", "sha256", "boundary", "target", "parent", "headUuid", "anchorUuid", "tailUuid",
    "compactedToolIds", "clearedAttachmentUUIDs", "renderedRole", "userType", "entrypoint", "snapshotMessageId",
})
# fmt: on


class RedactedValue(NamedTuple, Generic[T]):
    """A redacted value and the number of places where the subject was found."""

    value: T
    places: int


def redact_text(text: str, subject: Subject) -> RedactedValue[str]:
    found = subject.spans(text)
    if not found:
        return RedactedValue(text, 0)
    wider = found if not any(map(str.isspace, text)) else merge_spans(_widened(text, span) for span in found)
    return RedactedValue(_replaced(text, wider), len(found))


def _replaced(text: str, spans: Iterable[TextSpan]) -> str:
    parts, at = list[str](), 0
    for span in spans:
        parts += [text[at : span.start], MARK]
        at = span.end
    return "".join([*parts, text[at:]])


def _widened(text: str, span: TextSpan) -> TextSpan:
    start = _last_end(_LINE_END, text, max(0, span.start - LONG_LINE), span.start)
    stop = _LINE_END.search(text, span.end, span.end + LONG_LINE)
    end = stop.start() if stop is not None else min(len(text), span.end + LONG_LINE)
    if end - start <= LONG_LINE:
        return TextSpan(start, end)
    first = _last_end(_SENTENCE_END, text, max(start, span.start - SENTENCE), span.start)
    ending = _SENTENCE_END.search(text, span.end, min(end, span.end + SENTENCE))
    return TextSpan(first, ending.end() if ending is not None else min(end, span.end + SENTENCE))


def _last_end(pattern: re.Pattern[str], text: str, low: int, high: int) -> int:
    """Return the end of the last match before `high`, or `low` without a match."""
    return max((found.end() for found in pattern.finditer(text, low, high)), default=low)


def redact_markdown(text: str, subject: Subject) -> RedactedValue[str]:
    """Remove the parts of a Markdown text that contain the subject."""
    found = subject.spans(text)
    if not found:
        return RedactedValue(text, 0)
    lines = text.splitlines(keepends=True)
    gone: set[int] = set()
    at = 0
    for number, line in enumerate(lines):
        if any(span.start < at + len(line) and span.end > at for span in found):
            gone |= _part(lines, number)
        at += len(line)
    return RedactedValue("".join(line for number, line in enumerate(lines) if number not in gone), len(found))


def _part(lines: list[str], hit: int) -> set[int]:
    fenced = sum(_FENCE.match(line) is not None for line in lines[:hit]) % 2 == 1
    if fenced or not lines[hit].strip():
        return {hit}
    if heading := _HEADING.match(lines[hit]):
        ends = (
            number
            for number in range(hit + 1, len(lines))
            if (next_one := _HEADING.match(lines[number])) and len(next_one[1]) <= len(heading[1])
        )
        return set(range(hit, next(ends, len(lines))))
    first = hit
    if not _ITEM.match(lines[hit]):
        # Wrapped prose: the paragraph begins above.
        while first and lines[first - 1].strip() and not _starts(lines[first]):
            first -= 1
    return set(range(first, _end_of(lines, first, hit)))


def _starts(line: str) -> bool:
    return bool(_ITEM.match(line) or _HEADING.match(line) or _FENCE.match(line))


def _end_of(lines: list[str], first: int, hit: int) -> int:
    """Return the end of the part that begins at `first`, including wrapped lines and lines indented below an item."""
    deep = _indent(lines[first])
    number = hit + 1
    while number < len(lines) and lines[number].strip():
        below = _ITEM.match(lines[first]) is not None and _indent(lines[number]) > deep
        if _starts(lines[number]) and not below:
            break
        number += 1
    return number


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def redact_json(value: Any, subject: Subject, *, free: bool = False) -> RedactedValue[Any]:
    """Redact a JSON value; with `free`, no key is structural."""
    match value:
        case str():
            return _in_text(value, subject)
        case list():
            items = [redact_json(item, subject, free=free) for item in value]
            return RedactedValue([item.value for item in items], sum(item.places for item in items))
        case dict():
            return _in_object(value, subject, free)
        case _:
            return RedactedValue(value, 0)


def _in_text(text: str, subject: Subject) -> RedactedValue[str]:
    if text[:1] in ("{", "[") and subject.holds(text):
        with suppress(ValueError, RecursionError):
            inner = redact_json(json.loads(text), subject, free=True)
            if inner.places:
                return RedactedValue(json.dumps(inner.value, ensure_ascii=False), inner.places)
    return redact_text(text, subject)


def _in_object(value: dict[str, Any], subject: Subject, free: bool) -> RedactedValue[Any]:
    new: dict[str, Any] = {}
    places = 0
    for key, item in value.items():
        if _holds_together(value, key, free):
            new[key] = item
            continue
        named = redact_text(key, subject)
        inner = redact_json(item, subject, free=free or key in ("input", "toolUseResult"))
        unused, number = named.value, 2
        while unused in new:
            unused, number = f"{named.value} {number}", number + 1
        new[unused] = inner.value
        places += named.places + inner.places
    if places and value.get("type") == "thinking":
        new.pop("signature", None)
    return RedactedValue(new, places)


def _holds_together(value: dict[str, Any], key: str, free: bool) -> bool:
    if key == "data":
        return value.get("type") in ("base64", "redacted_thinking")
    if key == "name":
        return value.get("type") in ("tool_use", "server_tool_use") or "input_schema" in value
    return not free and key in _HOLDING


def encoded(value: Any) -> bytes:
    """Encode as one line of JSON; a lone surrogate, which UTF-8 cannot encode, stays an escape."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()
