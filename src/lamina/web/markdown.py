"""The text of a memory or an answer as markup: paragraphs, lists, code, bold words. Links and images stay text: nothing is ever fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .html import Child, Html, join, tag

_INLINE = re.compile(r"`([^`\n]{1,400})`|\*\*([^*\n]{1,400})\*\*")
_BULLET = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_NUMBER = re.compile(r"\s*(\d{1,3})[.)]\s")
_BEGINS = re.compile(rf"{_BULLET.pattern}|\s*```")
_HEADING = re.compile(r"#{1,6}\s+")


def markdown(text: str) -> Html:
    """Return the text as blocks."""
    return join(_blocks(text.splitlines()))


def _blocks(lines: list[str]) -> Iterator[Html]:
    at = 0
    while at < len(lines):
        line, start = lines[at], at
        if line.lstrip().startswith("```"):
            at = next((n for n in range(at + 1, len(lines)) if lines[n].lstrip().startswith("```")), len(lines)) + 1
            yield tag("pre", None, tag("bdi", None, "\n".join(lines[start + 1 : at - 1])))
        elif _BULLET.match(line):
            number = _NUMBER.match(line)
            while at < len(lines) and _BULLET.match(lines[at]) and bool(_NUMBER.match(lines[at])) == bool(number):
                at += 1
            items = [tag("li", None, _inline(_BULLET.sub("", one, count=1))) for one in lines[start:at]]
            yield tag("ol", {"start": int(number[1])}, items) if number else tag("ul", None, items)
        elif line.strip():
            while at < len(lines) and lines[at].strip() and (at == start or not _BEGINS.match(lines[at])):
                at += 1
            yield tag("p", None, [(tag("br") if n else None, _row(one)) for n, one in enumerate(lines[start:at])])
        else:
            at += 1


def _row(line: str) -> Html:
    return tag("b", None, _inline(_HEADING.sub("", line))) if _HEADING.match(line) else _inline(line)


def _inline(line: str) -> Html:
    return tag("bdi", None, _spans(line))


def _spans(line: str) -> list[Child]:
    parts, at = list[Child](), 0
    for found in _INLINE.finditer(line):
        parts.append(line[at : found.start()])
        parts.append(tag("code", {"class": "mono"}, found[1]) if found[1] is not None else tag("b", None, _spans(found[2])))
        at = found.end()
    return [*parts, line[at:]]
