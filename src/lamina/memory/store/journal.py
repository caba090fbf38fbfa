"""One line of a memory's journal: what it says, how it is made and read, and which change each line of a memory comes from (B4).

Owns the form of `.history/journal-NNNNNN.jsonl`, not the files. Invariants: a line names the content before and after by digest, so any
two lines can be held against each other; secrets are taken out of contents that came from outside; a row that is no line is none. Pure
but for the random id of a new line.
"""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from .contract import ChangeAction, ChangeReason, MemoryVersion
from .secrets import redact
from .topic import name_key


class JournalLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """As it stands in the file."""

    v: int
    id: str
    time: float
    file: str
    name: str
    action: ChangeAction
    digest: str = ""
    before: str = ""
    why: ChangeReason | None = None
    content: str | None = None


class JournalHead(msgspec.Struct):
    """What the journal says of a file: a line without decoding its content."""

    file: str
    name: str
    action: ChangeAction
    digest: str = ""
    before: str = ""
    content: msgspec.Raw = msgspec.Raw()

    @property
    def has_content(self) -> bool:
        return bytes(self.content) not in (b"", b"null")


class MemoryChange(NamedTuple):
    """One change about to be made to a file. None: no file."""

    file: str
    name: str
    action: ChangeAction
    old: bytes | None
    new: bytes | None
    why: ChangeReason | None


def digest_of(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def read_head(row: bytes) -> JournalHead | None:
    try:
        head = msgspec.json.decode(row, type=JournalHead)
    except msgspec.DecodeError:
        return None
    # The content is a view of its row, which would stay in memory with it.
    head.content = msgspec.Raw(b"true" if head.has_content else b"")
    return head


def fill_contents(lines: Iterable[JournalLine]) -> list[JournalLine]:
    """The lines of one segment, each with its content: a segment holds every content it needs, but only once."""
    contents: dict[str, str] = {}
    filled: list[JournalLine] = []
    for line in lines:
        if line.content is not None:
            contents[line.digest] = line.content
        elif line.digest in contents:
            line = msgspec.structs.replace(line, content=contents[line.digest])
        filled.append(line)
    return filled


def concerns(line: JournalLine | MemoryVersion, name: str) -> bool:
    """Whether a line speaks of the memory of this name or file."""
    return line.file == name or name_key(line.name) == name_key(name)


def unified_diff(file: str, old: str | None, new: str | None) -> str:
    rows = difflib.unified_diff(
        (old or "").splitlines(keepends=True), (new or "").splitlines(keepends=True), f"a/{file}", f"b/{file}"
    )
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def make_line(change: MemoryChange, now: float, *, before: str | None = None) -> JournalLine:
    text = None if change.new is None else change.new.decode("utf-8", "replace")
    # What a dream's undo puts back may have come from outside too.
    if text is not None and (change.why is None or change.why.dream is not None):
        text = redact(text).text
    return JournalLine(
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


def to_version(line: JournalLine) -> MemoryVersion:
    return MemoryVersion(line.id, line.time, line.name, line.action, line.why, line.digest, line.file, line.before)


# Blame


class BlamedLine(NamedTuple):
    text: str
    version: MemoryVersion | None


def blame(history: Iterable[tuple[MemoryVersion, str | None]], now: str) -> list[BlamedLine]:
    """Each line of `now`, the text as it stands, with the change after which it first stood there without interruption.

    `history` is oldest first. Where the journal no longer has a version, its lines belong to the next one it has; lines nobody recorded,
    because somebody edits the file right now, belong to none.
    """
    lines: list[BlamedLine] = []
    for version, text in history:
        if text is not None:
            lines = _carried(lines, text, version)
        elif not version.digest:
            lines = []
    return _carried(lines, now, None)


def _carried(old: list[BlamedLine], text: str, version: MemoryVersion | None) -> list[BlamedLine]:
    rows = text.splitlines()
    new = [BlamedLine(row, version) for row in rows]
    matcher = difflib.SequenceMatcher(None, [line.text for line in old], rows, autojunk=False)
    for block in matcher.get_matching_blocks():
        new[block.b : block.b + block.size] = old[block.a : block.a + block.size]
    return new
