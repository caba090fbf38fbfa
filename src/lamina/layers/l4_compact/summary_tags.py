"""Find the summary in a model's answer: `<analysis>…</analysis><summary>…</summary>`, whatever the two parts quote. Pure.

Conversations about web pages, prompts or this project contain the same tags, and models quote them. The rules are:

- The summary ends at the last `</summary>`: text after it is noise, text before it may be content.
- The analysis ends where `</analysis>` is followed by `<summary>`, or `<summary>` by section 1. Tags before that do not count.
- The summary begins at the first `<summary>` after that. A later one begins it only if section 1 follows directly, no numbered
  section comes before it, and the earlier tag was closed or only mentioned.
- Missing tags are forgiven if the text has enough of the numbered sections.

Invariant: if in doubt the longer text is taken, so a quotation never cuts a part of the summary off. Every step takes linear time,
since a hostile tool result can provoke any answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

# An answer with missing tags is accepted only if it has at least this many of the numbered headings.
LEAST_HEADINGS = 4
# Most characters between the end of the analysis and the summary, such as "Here is the summary:".
SEAM = 300

# Models that write in Chinese or Japanese use wide digits and commas in headings.
_HEADING = re.compile(r"^[ \t]*+(?:#{1,4}[ \t]*+(?:\*\*)?|\*\*)[1-9１-９][ \t]?[.．、:：)]", re.MULTILINE)
_FIRST = re.compile(r"\s*+(?:```\w*+\s++)?+(?:#{1,4}[ \t]*+(?:\*\*)?|\*\*)[1１][ \t]?[.．、:：)]")
_TAG = re.compile(r"<\s*+(?P<end>/?+)\s*+(?P<name>summary|analysis)\s*+>", re.IGNORECASE)


class _Tag(NamedTuple):
    start: int
    end: int
    name: str
    closes: bool
    heads: bool  # section 1 follows


def find_summary(answer: str) -> str | None:
    """Return the text of the summary, or None if the answer has none. An empty summary is an empty string."""
    tags = [_tag(found, answer) for found in _TAG.finditer(answer)]
    headings = [found.start() for found in _HEADING.finditer(answer)]
    begin = _analysis_end(tags)
    rest = [tag for tag in tags if tag.name == "summary" and tag.start >= begin]
    end = next((tag.start for tag in reversed(rest) if tag.closes), None)
    start = _start([tag for tag in rest if end is None or tag.start < end], headings)
    if start is not None:
        count = _between(headings, start, len(answer) if end is None else end)
        enough = count >= LEAST_HEADINGS or (end is not None and _between(headings, begin, len(answer)) < LEAST_HEADINGS)
        if enough:
            return _unwrapped(answer[start:end].strip())
    return answer[begin:].strip() if _between(headings, begin, len(answer)) >= LEAST_HEADINGS else None


def _tag(found: re.Match[str], answer: str) -> _Tag:
    closes = bool(found["end"])
    heads = not closes and _FIRST.match(answer, found.end()) is not None
    return _Tag(found.start(), found.end(), found["name"].lower(), closes, heads)


def _between(headings: Sequence[int], start: int, end: int) -> int:
    return bisect_left(headings, end) - bisect_left(headings, start)


def _analysis_end(tags: Sequence[_Tag]) -> int:
    """Return where the analysis ends, or 0 if the answer does not begin with one."""
    if not tags or tags[0].name != "analysis" or tags[0].closes:
        return 0
    closed = [at for at, tag in enumerate(tags) if tag.name == "analysis" and tag.closes]
    seam = next((tags[at].end for at in closed if _is_seam(*tags[at : at + 2])), None)
    # Section 1 before the seam means that the analysis was never closed, and the seam is a quotation.
    first = next((tag.start for tag in tags if tag.heads), None)
    if seam is None and first is None:
        return tags[closed[0]].end if closed else 0
    return min(at for at in (seam, first) if at is not None)


def _is_seam(tag: _Tag, after: _Tag | None = None) -> bool:
    return after is not None and after.name == "summary" and not after.closes and after.start - tag.end <= SEAM


def _start(tags: Sequence[_Tag], headings: Sequence[int]) -> int | None:
    """Return where the text of the summary begins. `tags` are the summary tags before its end."""
    # The last closing tag is not among them, so an excess of opening tags means that one of them is only a mention.
    mentioned = sum(-1 if tag.closes else 1 for tag in tags) > 1
    start: int | None = None
    depth = 0
    for tag in tags:
        if tag.closes:
            depth = max(0, depth - 1)
            continue
        if start is None or (tag.heads and (mentioned or not depth) and not _between(headings, start, tag.start)):
            start, depth = tag.end, 0
        depth += 1
    return start


def _unwrapped(text: str) -> str:
    """Remove a code block around the whole text."""
    lines = text.split("\n")
    if len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1]).strip()
    return text
