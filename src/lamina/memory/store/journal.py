"""Journal lines of a memory: their format, how they are built and read, and which change each line of a memory comes from.

It owns the format of `.history/journal-NNNNNN.jsonl`, not the files. Invariants: a line names the content before and after
by digest, so any two lines can be compared. A memory keeps its identity whatever its name and file; a line of an older
version has none, and then its file counts. Secrets are removed from contents that came from outside. An invalid row counts
as no line. Pure, except for the random id of a new line.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from ...core.decoding import UNDECODABLE
from .contract import ChangeAction, ChangeReason, MemoryVersion
from .secrets import redact
from .topic import INDEX, name_key


class JournalLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line as stored in the file. `part`: more lines of the same change set follow. `mtime_ns` is the file's time before the change."""

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
    memory: str = ""
    was: str = ""
    part: bool = False
    mtime_ns: int = 0


class JournalHead(msgspec.Struct):
    """The state of a file according to the journal: a line whose content is not decoded."""

    file: str
    name: str
    action: ChangeAction
    digest: str = ""
    before: str = ""
    content: msgspec.Raw = msgspec.Raw()
    memory: str = ""
    was: str = ""
    part: bool = False

    @property
    def has_content(self) -> bool:
        return bytes(self.content) not in (b"", b"null")


class MemoryChange(NamedTuple):
    """One change about to be made to a file. None means no file. Without `memory`, the journal finds the identity itself."""

    file: str
    name: str
    action: ChangeAction
    old: bytes | None
    new: bytes | None
    why: ChangeReason | None
    memory: str = ""
    was: str = ""


def digest_of(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


def read_head(row: bytes) -> JournalHead | None:
    try:
        head = msgspec.json.decode(row, type=JournalHead)
    except UNDECODABLE:
        return None
    # The content is a view of its row and would keep the row in memory.
    head.content = msgspec.Raw(b"true" if head.has_content else b"")
    return head


def fill_contents(lines: Iterable[JournalLine]) -> list[JournalLine]:
    """Return the lines of one segment with their contents. A segment stores every content it needs only once."""
    contents: dict[str, str] = {}
    filled: list[JournalLine] = []
    for line in lines:
        if line.content is not None:
            contents[line.digest] = line.content
        elif line.digest in contents:
            line = msgspec.structs.replace(line, content=contents[line.digest])
        filled.append(line)
    return filled


def with_identities(lines: Iterable[JournalLine]) -> Iterator[JournalLine]:
    """Yield the lines, oldest first, each with the identity of its memory."""
    owners: dict[str, str] = {}
    for line in lines:
        owners[line.file] = line.memory or owners.get(line.file) or line.file
        yield line if line.memory else msgspec.structs.replace(line, memory=owners[line.file])


def concerns(line: JournalLine | MemoryVersion, name: str) -> bool:
    """Tell whether a line is about the memory with this name or file."""
    return line.file == name or name_key(line.name) == name_key(name)


def unified_diff(file: str, old: str | None, new: str | None) -> str:
    rows = difflib.unified_diff(
        (old or "").splitlines(keepends=True), (new or "").splitlines(keepends=True), f"a/{file}", f"b/{file}"
    )
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def make_line(change: MemoryChange, now: float, *, before: str | None = None, mtime_ns: int = 0) -> JournalLine:
    text = None if change.new is None else change.new.decode("utf-8", "replace")
    if text is not None and change.why is None:
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
        memory=change.memory,
        was=change.was,
        mtime_ns=mtime_ns,
    )


def make_index_line(action: ChangeAction, why: ChangeReason, before: bytes | None, data: bytes | None, now: float) -> JournalLine:
    """Return a line about the index within a change set. What the user wrote into it may hold secrets, and bytes that are no text."""
    text = None if data is None else redact(_SURROGATES.sub(_escape_byte, data.decode("utf-8", "surrogateescape"))).text
    line = JournalLine(1, os.urandom(6).hex(), now, INDEX, INDEX, action, digest_of(data), digest_of(before), why, text)
    return msgspec.structs.replace(line, part=action != "end")


_SURROGATES, _ESCAPED = re.compile("[\udc80-\udcff]"), re.compile("\0([89a-f][0-9a-f])")


def _escape_byte(match: re.Match[str]) -> str:
    return f"\0{ord(match[0]) - 0xDC00:02x}"


def unescape_bytes(content: str) -> str:
    """Return the content of a line about the index, with bytes that are no text as surrogates."""
    return _ESCAPED.sub(lambda match: chr(0xDC00 + int(match[1], 16)), content)


def to_version(line: JournalLine) -> MemoryVersion:
    return MemoryVersion(
        line.id, line.time, line.name, line.action, line.why, line.digest, line.file, line.before, line.memory, line.was
    )


def find_trash(versions: list[MemoryVersion]) -> list[MemoryVersion]:
    """Return the removals, newest first, that have not been restored since."""
    last: dict[str, MemoryVersion] = {}
    for version in versions:
        last.setdefault(f"{version.file.startswith('team/')} {version.memory}", version)
    return [version for version in last.values() if version.action == "remove"]


# Blame


class BlamedLine(NamedTuple):
    text: str
    version: MemoryVersion | None


def blame(history: Iterable[tuple[MemoryVersion, str | None]], now: str) -> list[BlamedLine]:
    """Return each line of `now`, the current text, with the change that introduced it (without interruption since).

    `history` is oldest first. If the journal no longer has a version, its lines belong to the next version it has.
    Unrecorded lines, for example while someone edits the file, belong to no version.
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
