"""Recognizes requests to remember or forget something in a user's message, and extracts their subject.

The patterns (memory_requests.txt) are in English, German, French, Spanish, Chinese, Japanese and Korean. The request is at the start of a
message, or at its end in some languages.
"""

from __future__ import annotations

import re

from .patterns import read_patterns

_PATTERNS = read_patterns("memory_requests")
REMEMBER = _PATTERNS["remember"]
# Requests at the end of a message are searched only in this many last characters, so a long text costs no more than a short one.
_TAIL = 80


def _at_end(pattern: re.Pattern[str], text: str) -> int | None:
    """Return the position at which the pattern starts near the end of the text, or None."""
    base = max(0, len(text) - _TAIL)
    match = pattern.search(text[base:])
    return base + match.start() if match is not None else None


def asks_to_remember(text: str) -> bool:
    """Whether the text asks to remember something.

    "Remember our deploy day?" is a question, so it does not. "Could you remember that …?" is a request phrased as a question.
    """
    if _PATTERNS["request"].match(text):
        return True
    if _PATTERNS["question"].search(text[-_TAIL:]):
        return False
    return REMEMBER.match(text) is not None or _at_end(_PATTERNS["remember_last"], text) is not None


def to_remember(text: str) -> str:
    """Return the text to remember, without the request itself."""
    if first := REMEMBER.match(text):
        return (text[first.end() :].rstrip(" ?？") if _PATTERNS["request"].match(text) else text[first.end() :]).strip()
    return text[: _at_end(_PATTERNS["remember_last"], text)].strip()


def asks_to_forget(text: str) -> bool:
    return _PATTERNS["forget"].match(text) is not None or _at_end(_PATTERNS["forget_last"], text) is not None


def to_forget(text: str) -> str:
    """Return the text to forget, without the request itself."""
    if first := _PATTERNS["forget"].match(text):
        return _PATTERNS["known_by_you"].sub("", text[first.end() :]).strip()
    return text[: _at_end(_PATTERNS["forget_last"], text)].strip()


def asks_for_memory(text: str) -> bool:
    """Whether the text explicitly asks to remember or forget something."""
    return asks_to_remember(text) or asks_to_forget(text)
