"""Front matter: the block between two `---` lines at the top of a Markdown file.

Invariants: every value is a string, a list or a mapping, whatever it looks like (`no` and `2026-03-31` stay strings). Reading
constructs no objects, follows no references and executes nothing. The work is bounded for any file. An invalid block is not treated
as front matter, and `problem` explains why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

Value: TypeAlias = "str | list[Value] | dict[str, Value]"

# Enough for names, a description and a list of globs. More is a mistake or an attack, and this much is read in well under a
# millisecond.
MOST_BYTES = 4_096
# A mapping, a mapping inside it (`metadata:`), and a list inside that.
DEEPEST = 3

_FIRST = re.compile(r"\ufeff?---[ \t]*\r?\n")
_LAST = re.compile(r"^---[ \t]*\r?$\n?", re.MULTILINE)
# `key: value` lines that mean the same to every reader: most memories have no others. The YAML reader takes ten times as long.
_SIMPLE = re.compile(r"(?:[A-Za-z_]+: [^\W\d_][\w ,;()/+=.'’—–，。、；：（）！？「」《》-]*\n)+")


class Split(msgspec.Struct, frozen=True):
    """A text split at its front matter. `head` is the text between the two lines; if it is None, `body` is the whole text."""

    head: str | None
    body: str
    problem: str | None = None


class FrontMatter(msgspec.Struct, frozen=True):
    """Parsed front matter. `head` is the raw block, for callers that must preserve unknown fields.

    Without a valid block, `body` is the whole text.
    """

    fields: dict[str, Value]
    head: str | None
    body: str
    problem: str | None = None


class _Unreadable(Exception):
    """The reason why a block is invalid, worded to follow "The front matter …"."""


def split_front_matter(text: str) -> Split:
    first = _FIRST.match(text)
    if first is None:
        return Split(None, text)
    # Each character takes at least one byte, so a block that ends further away is too long in any case.
    last = _LAST.search(text, first.end(), first.end() + MOST_BYTES + len("---\r\n") + 1)
    if last is None:
        return Split(None, text, f"has no closing line --- within {MOST_BYTES:,} bytes")
    head = text[first.end() : last.start()]
    if len(head.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        return Split(None, text, f"is longer than {MOST_BYTES:,} bytes")
    return Split(head, text[last.end() :])


def read_front_matter(text: str, *, deepest: int = DEEPEST) -> FrontMatter:
    split = split_front_matter(text)
    head, body, problem = split.head, split.body, split.problem
    if head is None:
        return FrontMatter({}, None, text, problem)
    try:
        return FrontMatter(_fields(head, deepest), head, body)
    except _Unreadable as refused:
        return FrontMatter({}, None, text, str(refused))


def simple_fields(head: str) -> dict[str, str] | None:
    """Return the fields of a block of plain `key: value` lines with different keys; None for any other block."""
    if _SIMPLE.fullmatch(head) is None:
        return None
    lines = [line.split(": ", 1) for line in head.splitlines()]
    fields = {key: value.rstrip(" ") for key, value in lines}
    return fields if len(fields) == len(lines) else None


def _fields(head: str, deepest: int) -> dict[str, Value]:
    if (simple := simple_fields(head)) is not None:
        return {**simple}
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        events: Iterator[Any] = iter(yaml.parse(head, Loader=loader))
        next(events)  # the stream's start
        if isinstance(next(events), yaml.StreamEndEvent):
            return {}
        value = _value(next(events), events, deepest, deepest)
        next(events)  # the document's end
        if not isinstance(next(events), yaml.StreamEndEvent):
            raise _Unreadable("contains more than one YAML document")
    except yaml.YAMLError as fault:
        raise _Unreadable(f"is not valid YAML{_place(fault)}") from None
    except UnicodeError:
        raise _Unreadable("contains an invalid character") from None
    if not isinstance(value, dict):
        raise _Unreadable("is not made of `key: value` lines")
    return value


def _place(fault: Exception) -> str:
    mark = getattr(fault, "problem_mark", None)
    # The mark counts from 0, and the opening `---` is the first line of the file.
    return f" at line {mark.line + 2}" if mark is not None else ""


def _value(event: Any, events: Iterator[Any], left: int, deepest: int) -> Value:
    import yaml

    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        raise _Unreadable("uses an anchor or an alias; put quotes around a value that starts with & or *")
    if getattr(event, "tag", None) is not None:
        raise _Unreadable("uses a tag; put quotes around a value that starts with !")
    if isinstance(event, yaml.ScalarEvent):
        return str(event.value)
    if not left:
        raise _Unreadable(f"is nested more than {deepest} levels deep")
    if isinstance(event, yaml.SequenceStartEvent):
        return [_value(item, events, left - 1, deepest) for item in _until(events, yaml.SequenceEndEvent)]
    fields: dict[str, Value] = {}
    for item in _until(events, yaml.MappingEndEvent):
        key = _value(item, events, left - 1, deepest)
        if not isinstance(key, str):
            raise _Unreadable("has a key that is not a string")
        if key in fields:
            raise _Unreadable(f"has the key {key[:40]!r} twice")
        fields[key] = _value(next(events), events, left - 1, deepest)
    return fields


def _until(events: Iterator[Any], end: type) -> Iterator[Any]:
    """Yield the events up to the end of this list or mapping; nested values consume theirs from the same iterator."""
    for event in events:
        if isinstance(event, end):
            return
        yield event
