"""Tool results as the model sees them: escaped when they arrive (core/fence.py), and found again in the files they came from. Pure.

A model that has read an escaped tag repeats it in Edit and Write. Both look a line up by the text that was shown, so a file keeps its
own spelling.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any, NamedTuple

from .blocks import ToolResult, tool_result
from .fence import escape, escaped_places

_ESCAPED = re.compile("&lt;")
# How much longer an escaped character is.
_LONGER = len("&lt;") - 1
# Longer than any tag's name, including its attributes.
LONGEST_TAG = 80


def escape_result(block: ToolResult) -> ToolResult:
    """Return a tool result with every text in it escaped; the same object if nothing has to be."""
    content = _escape_value(block.content)
    return block if content is block.content else tool_result(block.tool_use_id, content, is_error=block.is_error)


def _escape_value(value: Any) -> Any:
    """Escape all strings in a JSON value. Unchanged values stay the same objects."""
    if isinstance(value, str):
        escaped = escape(value)
        return value if escaped == value else str(escaped)
    if isinstance(value, dict):
        parts = {key: _escape_value(item) for key, item in value.items()}
        return parts if any(parts[key] is not item for key, item in value.items()) else value
    if isinstance(value, list):
        items = [_escape_value(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


class TextSpan(NamedTuple):
    start: int
    end: int


def find_shown(text: str, shown: str) -> list[TextSpan]:
    """Find what was shown as `shown` in the text it was escaped from, left to right, without overlaps."""
    places = escaped_places(text)
    if not places:
        return []
    escaped = escape(text)
    longer = [place + _LONGER * count for count, place in enumerate(places)]  # the same places in the escaped text
    spans, start = list[TextSpan](), escaped.find(shown)
    while start >= 0:
        end = start + len(shown)
        spans.append(TextSpan(start - _LONGER * bisect_left(longer, start), end - _LONGER * bisect_left(longer, end)))
        start = escaped.find(shown, end)
    return spans


def unescape(text: str) -> str:
    """Return a text with the tags that `escape` has changed as they were."""

    def original(found: re.Match[str]) -> str:
        tag = f"<{text[found.end() : found.end() + LONGEST_TAG]}"
        return "<" if escape(tag) != tag else found[0]

    return _ESCAPED.sub(original, text)


def unescape_lines(text: str, before: str) -> str:
    """Return a text in which lines that were shown escaped are again as in the text `before`."""
    if "&lt;" not in text:
        return text
    originals = {str(escape(line)): line for line in before.splitlines() if escape(line) != line}
    return re.sub(r"[^\r\n]+", lambda found: originals.get(found[0], found[0]), text) if originals else text
