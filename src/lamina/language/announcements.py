"""Tells whether a bare weekday, or "in two weeks", names one day: "the freeze is on Thursday", 周五之前, "la démo est jeudi".

Without such words around it, a bare weekday may recur ("we deploy on Friday") and "in two weeks" may be a duration. The words directly
before and after it decide, in English, German, French, Spanish, Chinese and Japanese. Pure.
"""

from __future__ import annotations

import re

# What stands directly before "on Thursday", "am Freitag", "jeudi" or "el jueves". A plural subject may recur, so "are" is not one.
_ONCE = re.compile(
    r"\b(?:is|be|due|starts|begins|ends|launches|ships|expires|closes|opens|lands|leaves|arrives|moves|live|ist|beginnt|startet|endet"
    r"|est|sera|commence|finit|(?:es|será|empieza|termina) el)\s+$"
    r"|(?:定[在于]|[改延]到|改在|推迟到|提前到|安排在|截止到?|は)$",
    re.IGNORECASE,
)
# What stands directly after "am Donnerstag" that begins a clause.
_BEGINS = re.compile(r"(?:^|[.,;:!?])\s*$")
_ONCE_AFTER = re.compile(r"\s+(?:is|ist|beginnt|startet|endet)\b", re.IGNORECASE)
# A deadline: what stands directly after 周五.
_DEADLINE = re.compile(r"[之以]?前")
# 两周后 is a date at the beginning of a clause or after one of these, and a duration after anything else: 合并两天后.
_CLAUSE = re.compile(r"(?:^|[，。；：,;:、\s]|[在于是]|我们|还有|预计|计划|再过)$")
_RECURS = re.compile(
    r"\b(?:stand-?ups?|retros?|retrospectives?|syncs?|plannings?|windows?|day|shifts?|on-?call|office hours|rota)\b"
    r"|[站例周早晨]会|值班|[只都]|一般|通常|固定",
    re.IGNORECASE,
)
# Characters that are looked at on each side.
_AROUND = 40


def is_announced(text: str, start: int, end: int, *, after_count: bool) -> bool:
    """Return whether the phrase from `start` to `end` names one day. `after_count` is true for 两周后."""
    begin = max(text.rfind("\n", 0, start) + 1, start - _AROUND)
    before, after = text[begin:start], text[end : end + _AROUND].partition("\n")[0]
    if after_count:
        return _CLAUSE.search(before) is not None
    if _RECURS.search(before + after):
        return False
    once = _ONCE.search(before) is not None or (_BEGINS.search(before) is not None and _ONCE_AFTER.match(after) is not None)
    return once or (not text[start:end].isascii() and _DEADLINE.match(after) is not None)
