"""A memory as a section of a markdown file: a heading, a comment that renders as nothing, the body as it is.

    ## testing-db
    <!-- lamina {"description":"…","type":"feedback","modified":"2026-03-31T09:00:00.000Z"} -->

    Integration tests use a real database.

Owns this form. Invariant: what is written reads back the same, whatever the memory holds; headings in a body need no change, because
a section begins only where heading and comment stand together. A line of a body that begins like one of our comments gets a backslash.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ...memory.store.topic import one_line
from .values import Portable, apart, joined

_COMMENT_LINE = re.compile(r"^<!-- (?=\\*/?lamina\b)", re.MULTILINE)
_ESCAPED_LINE = re.compile(r"^<!-- \\(?=\\*/?lamina\b)", re.MULTILINE)
_HEADING_CHARS = 200


class Sections(NamedTuple):
    topics: tuple[Portable, ...]
    problems: tuple[str, ...]


def section(topic: Portable, level: int) -> str:
    """Without the line break at its end."""
    heading = one_line(topic.name, _HEADING_CHARS)
    extras = apart(topic, Portable(heading))
    # In a comment `-->` would end it, and some readers end it at `--`.
    data = msgspec.json.encode(extras).decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")
    body = _COMMENT_LINE.sub(r"<!-- \\", topic.body)
    return f"{'#' * level} {heading}\n<!-- lamina {data} -->" + (f"\n\n{body}" if body else "")


def written(topics: Sequence[Portable], level: int) -> str:
    return "\n\n".join(section(topic, level) for topic in topics)


def read(text: str, level: int) -> Sections:
    """All sections of ours in a text that ends with its last one."""
    start = re.compile(rf"^#{{{level}}} (?P<heading>[^\n]*)\n<!-- lamina (?P<data>\{{[^\n]*\}}) -->\r?$", re.MULTILINE)
    found = list(start.finditer(text))
    topics, problems = list[Portable](), list[str]()
    for number, head in enumerate(found):
        last = number + 1 == len(found)
        raw = text[head.end() : len(text) if last else found[number + 1].start()]
        body = _ESCAPED_LINE.sub("<!-- ", _between(raw if last else raw.removesuffix("\n\n")))
        plain = Portable(head["heading"].removesuffix("\r"), body=body)
        try:
            topics.append(joined(plain, msgspec.json.decode(head["data"])))
        except (msgspec.DecodeError, RecursionError):
            topics.append(plain)
            problems.append(f"{plain.name!a}: the comment below its heading is no JSON, so its type and date are not known")
    return Sections(tuple(topics), tuple(problems))


def _between(raw: str) -> str:
    """What stands behind the blank line; a person's editor may have put more or none."""
    return raw.removeprefix("\n\n") if raw.startswith("\n\n") else raw.lstrip("\r\n")
