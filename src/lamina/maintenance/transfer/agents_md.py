"""AGENTS.md: instructions in one Markdown file that many programs read.

An export writes a block of our own at the end and keeps all other bytes:

    <!-- lamina:memories -->
    ## name … (see `write_section`)
    <!-- /lamina:memories -->

An import reads that block, if there is one. Otherwise the file contains instructions: each `##` section becomes a memory, with
a notice that instruction files need no copy in memory (S8). A section is an order to the agent, so its type is `feedback` unless its
heading names another type. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...memory.store.topic import one_line
from .portable_topic import (
    Imported,
    PortableTopic,
    document,
    extras_beyond,
    in_comment,
    kind_of,
    make_description,
    parts,
    with_extras,
)

_BLOCK = re.compile(
    r"^<!-- lamina:memories -->\r?\n(?P<inside>.*?)^<!-- /lamina:memories -->[ \t\r]*$\n?", re.MULTILINE | re.DOTALL
)
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})")
_UNTITLED = "Instructions"
COPIES = "its sections are instructions, which sessions read from the file itself; a copy in memory can become outdated"
_COMMENT_LINE = re.compile(r"^<!-- (?=\\*/?lamina\b)", re.MULTILINE)
_ESCAPED_LINE = re.compile(r"^<!-- \\(?=\\*/?lamina\b)", re.MULTILINE)
_HEADING_CHARS = 200


def read_agents_md(text: str) -> Imported:
    block = _BLOCK.search(text)
    if block is not None:
        return read_sections(block["inside"].removesuffix("\n").removesuffix("\n"), 2)
    topics = tuple(_instructions(text))
    return Imported(topics, (f"AGENTS.md: {COPIES}",) if topics else ())


def _instructions(text: str) -> Iterator[PortableTopic]:
    """Yield the text before the first `##` section, named after the file's title, then the sections."""
    title, name, lines = "", "", list[str]()
    for heading, line in [*_lines(text), (2, "")]:
        if heading == 1 and not title and not name:
            title = line[2:].strip()
        elif heading == 2:
            body = "\n".join(lines).strip()
            if body:
                yield PortableTopic(name or title or _UNTITLED, make_description(body), kind_of(name) or "feedback", body)
            name, lines = line[3:].strip() or _UNTITLED, []
        else:
            lines.append(line)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its heading level, 0 for other lines and inside code blocks."""
    fence = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark["mark"].startswith(fence) else fence
        elif mark:
            fence = mark["mark"]
        heading = re.match(r"#{1,2} ", line) if not fence and not mark else None
        yield len(heading[0]) - 1 if heading else 0, line


def write_agents_md(topics: Sequence[PortableTopic], *, before: str = "") -> str:
    """Return the file with these memories as its block; without memories, the block is removed."""
    inside = "\n\n".join(write_section(topic, 2) for topic in topics)
    block = f"<!-- lamina:memories -->\n{inside}\n\n<!-- /lamina:memories -->\n" if topics else ""
    old = _BLOCK.search(before)
    if old is not None:
        return before[: old.start()] + block + before[old.end() :]
    if not before or not block:
        return before + block
    return before + ("\n" if before.endswith("\n") else "\n\n") + block


def write_section(topic: PortableTopic, level: int) -> str:
    """Return a memory as a section of a Markdown file, without a final newline: heading, invisible comment, body.

        ## testing-db
        <!-- lamina {"description":"…","type":"feedback","modified":"2026-03-31T09:00:00.000Z"} -->

        Integration tests use a real database.

    Invariant: every memory reads back unchanged. Headings in a body need no escaping, because a section begins only where a
    heading is followed by our comment. A body line that begins like one of our comments gets a backslash.
    """
    heading = one_line(topic.name, _HEADING_CHARS)
    data = in_comment(extras_beyond(topic, PortableTopic(heading)))
    body = _COMMENT_LINE.sub(r"<!-- \\", topic.body)
    return f"{'#' * level} {heading}\n<!-- lamina {data} -->" + (f"\n\n{body}" if body else "")


def read_sections(text: str, level: int) -> Imported:
    """Read all sections written by `write_section`; the text must end with the last one."""
    start = re.compile(rf"^#{{{level}}} (?P<heading>[^\n]*)\n<!-- lamina (?P<data>\{{[^\n]*\}}) -->\r?$", re.MULTILINE)
    topics, problems = list[PortableTopic](), list[str]()
    for head, raw in parts(start, f"{text}\n\n"):
        body = _ESCAPED_LINE.sub("<!-- ", _between(raw.removesuffix("\n\n")))
        plain = PortableTopic(head["heading"].removesuffix("\r"), body=body)
        extras = document(head["data"], "", strict=False)
        topics.append(with_extras(plain, extras))
        if extras is None:
            problems.append(f"{plain.name!a}: the comment below its heading is not valid JSON, so its type and date are unknown")
    return Imported(tuple(topics), tuple(problems))


def _between(raw: str) -> str:
    """Return the text after the blank line; an editor may have added or removed blank lines."""
    return raw.removeprefix("\n\n") if raw.startswith("\n\n") else raw.lstrip("\r\n")
