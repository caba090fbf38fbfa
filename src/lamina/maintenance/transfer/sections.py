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

from ...memory.store.topic import one_line
from .portable_topic import Imported, PortableTopic, document, extras_beyond, in_comment, parts, with_extras

_COMMENT_LINE = re.compile(r"^<!-- (?=\\*/?lamina\b)", re.MULTILINE)
_ESCAPED_LINE = re.compile(r"^<!-- \\(?=\\*/?lamina\b)", re.MULTILINE)
_HEADING_CHARS = 200


def section(topic: PortableTopic, level: int) -> str:
    """Without the line break at its end."""
    heading = one_line(topic.name, _HEADING_CHARS)
    data = in_comment(extras_beyond(topic, PortableTopic(heading)))
    body = _COMMENT_LINE.sub(r"<!-- \\", topic.body)
    return f"{'#' * level} {heading}\n<!-- lamina {data} -->" + (f"\n\n{body}" if body else "")


def read(text: str, level: int) -> Imported:
    """All sections of ours in a text that ends with its last one."""
    start = re.compile(rf"^#{{{level}}} (?P<heading>[^\n]*)\n<!-- lamina (?P<data>\{{[^\n]*\}}) -->\r?$", re.MULTILINE)
    topics, problems = list[PortableTopic](), list[str]()
    for head, raw in parts(start, f"{text}\n\n"):
        body = _ESCAPED_LINE.sub("<!-- ", _between(raw.removesuffix("\n\n")))
        plain = PortableTopic(head["heading"].removesuffix("\r"), body=body)
        extras = document(head["data"], "", strict=False)
        topics.append(with_extras(plain, extras))
        if extras is None:
            problems.append(f"{plain.name!a}: the comment below its heading is no JSON, so its type and date are not known")
    return Imported(tuple(topics), tuple(problems))


def _between(raw: str) -> str:
    """What stands behind the blank line; a person's editor may have put more or none."""
    return raw.removeprefix("\n\n") if raw.startswith("\n\n") else raw.lstrip("\r\n")
