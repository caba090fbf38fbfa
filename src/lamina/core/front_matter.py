"""Front matter: the block between two `---` lines at the top of a markdown file, read as plain texts.

Owns what counts as such a block. Invariants: every value is a text, a list or a mapping, whatever it looks like (`no` and
`2026-03-31` stay texts); nothing is constructed, followed or executed; the work is bounded whatever the file holds. A block that
cannot be read is no front matter, and `problem` says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import msgspec

Value: TypeAlias = "str | list[Value] | dict[str, Value]"

# Names, a description, a list of globs: a page of it is a mistake or an attack, and this much is read in a fraction of a millisecond.
MOST_BYTES = 4_096
# A mapping, one under it (`metadata:`), a list in that.
DEEPEST = 3

_FIRST = re.compile(r"\ufeff?---[ \t]*\r?\n")
_LAST = re.compile(r"^---[ \t]*\r?$\n?", re.MULTILINE)


class Split(NamedTuple):
    """`head` is what stands between the two lines; None: there is no block, and `body` is the whole text."""

    head: str | None
    body: str
    problem: str | None = None


class FrontMatter(msgspec.Struct, frozen=True):
    """`head` is the block as it stands, for who must keep what they don't know. Without a usable block `body` is the whole text."""

    fields: dict[str, Value]
    head: str | None
    body: str
    problem: str | None = None


class _Unreadable(Exception):
    """Its text ends the sentence "The front matter …"."""


def split_front_matter(text: str) -> Split:
    first = _FIRST.match(text)
    if first is None:
        return Split(None, text)
    # Each character is at least a byte: what ends further away is too long in any case.
    last = _LAST.search(text, first.end(), first.end() + MOST_BYTES + len("---\r\n") + 1)
    if last is None:
        return Split(None, text, f"has no closing line --- within {MOST_BYTES:,} bytes")
    head = text[first.end() : last.start()]
    if len(head.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        return Split(None, text, f"is longer than {MOST_BYTES:,} bytes")
    return Split(head, text[last.end() :])


def read_front_matter(text: str, *, deepest: int = DEEPEST) -> FrontMatter:
    head, body, problem = split_front_matter(text)
    if head is None:
        return FrontMatter({}, None, text, problem)
    try:
        return FrontMatter(_fields(head, deepest), head, body)
    except _Unreadable as refused:
        return FrontMatter({}, None, text, str(refused))


def _fields(head: str, deepest: int) -> dict[str, Value]:
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
            raise _Unreadable("holds more than one document")
    except yaml.YAMLError as fault:
        raise _Unreadable(f"is no YAML{_place(fault)}") from None
    except UnicodeError:
        raise _Unreadable("holds a character that no text can carry") from None
    if not isinstance(value, dict):
        raise _Unreadable("is no list of `key: value` lines")
    return value


def _place(fault: Exception) -> str:
    mark = getattr(fault, "problem_mark", None)
    # The opening line is the file's first.
    return f" at line {mark.line + 2}" if mark is not None else ""


def _value(event: Any, events: Iterator[Any], left: int, deepest: int) -> Value:
    import yaml

    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        raise _Unreadable("uses an anchor or an alias; put quotes around a value that begins with & or *")
    if getattr(event, "tag", None) is not None:
        raise _Unreadable("uses a tag; put quotes around a value that begins with !")
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
            raise _Unreadable("has a key that is no text")
        if key in fields:
            raise _Unreadable(f"has the key {key[:40]!r} twice")
        fields[key] = _value(next(events), events, left - 1, deepest)
    return fields


def _until(events: Iterator[Any], end: type) -> Iterator[Any]:
    """The events up to the one that ends this list or mapping; what is nested takes its own out of the same iterator."""
    for event in events:
        if isinstance(event, end):
            return
        yield event
