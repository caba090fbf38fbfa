"""The part of a text that matches a query, for the results of a search on any surface."""

from __future__ import annotations

import re

from ..language.terms import highlights

# Characters in front of the first matching word of a long text.
LEAD_CHARS = 20


def matches(text: str, query: str, *, exact: bool = False) -> list[tuple[int, int]]:
    """Return where a text matches: the words of the query, or with `exact` the query itself, on one line."""
    if not exact:
        return highlights(text, query)
    return [found.span() for found in re.finditer(re.escape(" ".join(query.split())), text, re.IGNORECASE)]


def excerpt_range(line: str, query: str, most: int, *, exact: bool = False) -> tuple[int, int]:
    """Return where the part of at most `most` characters with the most matches begins and ends. It begins with a whole word."""
    if len(line) <= most:
        return 0, len(line)
    starts = [start for start, _ in matches(line, query, exact=exact)]
    best = max(starts, key=lambda start: (sum(start <= at < start + most for at in starts), -start), default=0)
    begin = max(0, min(best - LEAD_CHARS, len(line) - most))
    begin = line.find(" ", begin, best) + 1 or begin if begin else 0
    return begin, begin + most
