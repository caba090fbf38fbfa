"""Tells whether a bare weekday, or "in two weeks", names one day: "the freeze is on Thursday", 周五之前, "la démo est jeudi".

Without such words around it, a bare weekday may recur ("we deploy on Friday") and "in two weeks" may be a duration. The words directly
before and after it (announcements.txt) decide, in English, German, French, Spanish, Chinese and Japanese. Pure.
"""

from __future__ import annotations

from .patterns import read_patterns

_PATTERNS = read_patterns("announcements")
# Characters that are looked at on each side.
_AROUND = 40


def is_announced(text: str, start: int, end: int, *, after_count: bool) -> bool:
    """Return whether the phrase from `start` to `end` names one day. `after_count` is true for 两周后."""
    begin = max(text.rfind("\n", 0, start) + 1, start - _AROUND)
    before, after = text[begin:start], text[end : end + _AROUND].partition("\n")[0]
    if after_count:
        return _PATTERNS["clause"].search(before) is not None
    if _PATTERNS["recurs"].search(before + after):
        return False
    if _PATTERNS["once"].search(before) is not None:
        return True
    if _PATTERNS["begins"].search(before) is not None and _PATTERNS["once_after"].match(after) is not None:
        return True
    return not text[start:end].isascii() and _PATTERNS["deadline"].match(after) is not None
