"""One line of a memory's journal: what it says, how it is made and how it is read (B4).

Owns the form of `.history/journal-NNNNNN.jsonl`, not the files. Invariants: a line names the content before and after by digest, so any
two lines can be held against each other; secrets are taken out of contents that came from outside; a row that is no line is none. Pure
but for the random id of a new line.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from .contract import Action, Version, Why
from .secrets import redact
from .topic import same_name


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """As it stands in the file."""

    v: int
    id: str
    time: float
    file: str
    name: str
    action: Action
    digest: str = ""
    before: str = ""
    why: Why | None = None
    content: str | None = None


class Head(msgspec.Struct):
    """A line without decoding its content."""

    file: str
    name: str
    action: Action
    digest: str = ""
    before: str = ""
    content: msgspec.Raw = msgspec.Raw()


class Last(NamedTuple):
    """What the journal says of a file."""

    file: str
    name: str
    action: Action
    digest: str
    before: str


class Change(NamedTuple):
    """One change about to be made to a file. None: no file."""

    file: str
    name: str
    action: Action
    old: bytes | None
    new: bytes | None
    why: Why | None


def digest_of(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def head_of(row: bytes) -> Head | None:
    try:
        return msgspec.json.decode(row, type=Head)
    except msgspec.DecodeError:
        return None


def unhappened(newest: Last | Line, there: str) -> bool:
    """Whether the newest change did not reach its file, whose digest is `there`: its writer was stopped, or had no room on the disk."""
    return there == newest.before != newest.digest


def last_of(head: Head) -> Last:
    return Last(head.file, head.name, head.action, head.digest, head.before)


def with_contents(lines: Iterator[Line]) -> list[Line]:
    """The lines of one segment, each with its content: a segment holds every content it needs, but only once."""
    contents: dict[str, str] = {}
    filled: list[Line] = []
    for line in lines:
        if line.content is not None:
            contents[line.digest] = line.content
        elif line.digest in contents:
            line = msgspec.structs.replace(line, content=contents[line.digest])
        filled.append(line)
    return filled


def is_of(line: Line | Version, name: str) -> bool:
    """Whether a line speaks of the memory of this name or file."""
    return line.file == name or same_name(line.name) == same_name(name)


def unified(file: str, old: str | None, new: str | None) -> str:
    rows = difflib.unified_diff(
        (old or "").splitlines(keepends=True), (new or "").splitlines(keepends=True), f"a/{file}", f"b/{file}"
    )
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def line_for(change: Change, now: float, *, before: str | None = None) -> Line:
    text = None if change.new is None else change.new.decode("utf-8", "replace")
    # What a dream's undo puts back may have come from outside too.
    if text is not None and (change.why is None or change.why.dream is not None):
        text = redact(text).text
    return Line(
        v=1,
        id=os.urandom(6).hex(),
        time=now,
        file=change.file,
        name=change.name,
        action=change.action,
        digest=digest_of(change.new),
        before=digest_of(change.old) if before is None else before,
        why=change.why,
        content=text,
    )


def version_of(line: Line) -> Version:
    return Version(line.id, line.time, line.name, line.action, line.why, line.digest, line.file, line.before)
