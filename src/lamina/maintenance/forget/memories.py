"""Remove a subject from a memory directory (B11): which files are removed or changed, and the new content of its journal.

Computes the changes without making them. A memory with the subject in its name, description or file name is removed as a whole,
with all its journal lines. Any other memory loses the parts that contain the subject, and is removed if nothing is left. The
journal's contents follow the same rule, and its digests are updated to match. Pending changes with the subject are removed, and
so are copies kept by dreams, so that no undo restores it. Caches are removed, and so is the git copy that
earlier versions kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError
from ...core.front_matter import read_front_matter
from ...disk.database import is_database
from ...disk.files import read
from ...disk.regular_file import FileStamp, open_regular, stamp_of
from ...language.text import Text
from ...memory.store.index import read_entries
from ...memory.store.journal import JournalLine, digest_of
from ...memory.store.topic import INDEX, fold_name, read_topic
from ..kept_files import MemoryRoot, memory_kind, regular_files
from .redaction import MARK, RedactedValue, encoded, redact_json, redact_markdown, redact_text
from .subject import COPIED_CHARS, Subject

# Files in a memory directory are small; journal segments are the largest.
MOST_BYTES = 64 << 20
_MARKERS = "-*+> \t"


class ForgetChange(NamedTuple):
    """The change to one file. `new` is None if it is removed; `trash` counts the places in memories that were already removed."""

    path: Path
    kind: str
    places: int
    before: FileStamp
    new: bytes | None
    trash: int = 0


class MemoryChanges(NamedTuple):
    """The changes in the order to make them, and the files that could not be read."""

    files: list[ForgetChange]
    unread: dict[Path, DiskError | OSError]


class _MemoryText(NamedTuple):
    path: Path
    name: str  # relative to the memory directory
    kind: str
    is_topic: bool
    seen: FileStamp
    text: str

    def changed(self, places: int, new: str | None) -> ForgetChange:
        return ForgetChange(self.path, self.kind, places, self.seen, None if new is None else _bytes(new))


def changes(root: MemoryRoot, subject: Subject) -> MemoryChanges:
    """Return what to change: files that others point at come last, the journal last of all."""
    unread = dict[Path, DiskError | OSError]()
    read_files = _read_all(root, unread)
    gone = {one.name for one in read_files if one.is_topic and _is_gone(one, subject)}
    found = [change for one in read_files if (change := _change(one, subject, gone)) is not None]
    segments = [one for one in read_files if one.kind == "history"]
    found += _journal(segments, subject, gone, {one.name for one in read_files})
    if found:
        touched = {change.path for change in found}
        found += [one.changed(0, None) for one in read_files if one.kind == "caches" and one.path not in touched]
    order = ("dreams", "inbox", "daily logs", "caches", "indexes", "history")
    return MemoryChanges(sorted(found, key=lambda change: order.index(change.kind) if change.kind in order else 3.5), unread)


def copied_lines_of(roots: Iterable[MemoryRoot], subject: Subject, pause: Callable[[], None] = lambda: None) -> set[str]:
    """Return the longer lines of memories that are removed as a whole, so that copies of them can be removed too."""
    found: set[str] = set()
    for root in roots:
        pause()
        found |= _copied_lines(root, subject)
    return found


def _copied_lines(root: MemoryRoot, subject: Subject) -> set[str]:
    found: set[str] = set()
    for one in _read_all(root, {}):
        if one.is_topic and about(one.name, one.text, subject):
            found |= _lines(one.text)
        for line in _decoded(one.text) if one.kind == "history" else ():
            if (
                isinstance(line, JournalLine)
                and line.content
                and (subject.holds(line.name) or about(line.file, line.content, subject))
            ):
                found |= _lines(line.content)
    return found


def _lines(text: str) -> set[str]:
    rows = {row for line in read_front_matter(text).body.splitlines() for row in (line.strip(), line.strip().lstrip(_MARKERS))}
    return {row for row in rows if len(row) >= COPIED_CHARS}


def about(file: str, text: str, subject: Subject) -> bool:
    """Return whether a memory is about the subject and is therefore removed as a whole."""
    topic = read_topic(file, text, 0)
    return any(subject.holds(field) for field in (topic.name, topic.description, file.removesuffix(".md")))


def _read_all(root: MemoryRoot, unread: dict[Path, DiskError | OSError]) -> list[_MemoryText]:
    """Read the files of a memory directory; an error with one of them goes to `unread`."""
    found = []
    for path in regular_files(root.path, skip={root.path / "team", root.path / ".history" / "git"}):
        try:
            kind, state, data = memory_kind(root, path), stamp_of(path, follow=False), _data(root, path)
        except (DiskError, OSError) as error:
            unread[path] = error
            continue
        if state is not None and data is not None:
            name, text = path.relative_to(root.path).as_posix(), data.decode("utf-8", "surrogateescape")
            found.append(_MemoryText(path, name, kind, kind == root.kind, state, text))
    return found


def _data(root: MemoryRoot, path: Path) -> bytes | None:
    # They hold texts in pieces or as numbers, which no search would find, and are removed with the other caches.
    if is_database(path) or path.name.startswith("vectors-"):
        return b""
    if root.shared:  # a team's files may belong to others
        with open_regular(path) as file:
            data: bytes | None = file.read(MOST_BYTES + 1)
    else:
        data = read(path, MOST_BYTES + 1)
    if data is not None and len(data) > MOST_BYTES:
        raise DiskError(str(path), Text("is larger than {limit} MiB", limit=MOST_BYTES >> 20), "check it by hand")
    return data


def _is_gone(one: _MemoryText, subject: Subject) -> bool:
    if one.path.suffix != ".md" or not subject.holds(one.text + one.path.name):
        return False
    return about(one.name, one.text, subject) or _cleaned_topic(one.text, subject) is None


def _change(one: _MemoryText, subject: Subject, gone: set[str]) -> ForgetChange | None:
    if one.name in gone:
        return one.changed(max(1, len(subject.spans(one.text))), None)
    if one.kind == "indexes":
        new = _index(one.text, subject, {fold_name(file) for file in gone})
        return one.changed(new.places, new.value) if new.value != one.text else None
    if one.kind == "history" or not subject.holds(one.text):
        return None
    text: str | None
    if one.kind in ("dreams", "inbox", "caches") or one.text.startswith("SQLite format 3"):
        text = None
    elif one.path.suffix in (".json", ".jsonl"):
        text = "\n".join(_json_line(line, subject) if subject.holds(line) else line for line in one.text.split("\n"))
    else:
        text = _cleaned_topic(one.text, subject) if one.is_topic else redact_markdown(one.text, subject).value
    return one.changed(len(subject.spans(one.text)), text)


def _cleaned_topic(text: str, subject: Subject) -> str | None:
    """Return the memory without the subject; None if only front matter would be left."""
    matter = read_front_matter(text)
    if matter.head is None:
        body = redact_markdown(text, subject).value
        return body if body.strip() or not text.strip() else None
    head = text[: len(text) - len(matter.body)]
    body = redact_markdown(matter.body, subject).value
    if matter.body.strip() and not body.strip():
        return None
    return "".join(_head_lines(head, subject)) + body


def _head_lines(head: str, subject: Subject) -> Iterator[str]:
    """Yield the lines of front matter. A value with the subject keeps its key, so that the rest stays readable."""
    for line in head.splitlines(keepends=True):
        key, colon, _ = line.partition(":")
        if not subject.holds(line):
            yield line
        elif colon and not subject.holds(key):
            yield f'{key}: "{MARK}"\n'


def _index(text: str, subject: Subject, gone: set[str]) -> RedactedValue[str]:
    lines = text.split("\n")
    kept = [
        line
        for line in lines
        if not subject.holds(line) and not any(fold_name(entry.file) in gone for entry in read_entries(line))
    ]
    return RedactedValue("\n".join(kept), len(lines) - len(kept))


def _json_line(line: str, subject: Subject) -> str:
    try:
        return encoded(redact_json(json.loads(line), subject, free=True).value).decode("utf-8", "surrogateescape")
    except (ValueError, RecursionError):
        return redact_text(line, subject).value


# The journal


def _journal(segments: list[_MemoryText], subject: Subject, gone: set[str], there: set[str]) -> list[ForgetChange]:
    every = [line for one in segments for line in _decoded(one.text)]
    fates = _fates([line for line in every if isinstance(line, JournalLine)], subject, gone)
    found = []
    for one in segments:
        kept, places, trash = list[bytes](), 0, 0
        for line in _decoded(one.text):
            new = _rewritten(line, subject, gone, fates)
            places += new != line
            trash += new != line and isinstance(line, JournalLine) and line.file not in there
            if new is not None:
                kept.append(msgspec.json.encode(new) if isinstance(new, JournalLine) else _bytes(new))
        if places:
            found.append(ForgetChange(one.path, one.kind, places, one.seen, b"".join(row + b"\n" for row in kept), trash))
    return found


def _decoded(text: str) -> Iterable[JournalLine | str]:
    """Yield the journal's lines, leaving unreadable ones as text."""
    for row in text.split("\n"):
        if row:
            try:
                yield msgspec.json.decode(row.encode("utf-8", "surrogateescape"), type=JournalLine)
            except UNDECODABLE:
                yield row


def _fates(lines: list[JournalLine], subject: Subject, gone: set[str]) -> dict[str, str | None]:
    """Map each changed digest to the digest of the new content; None if the content is removed."""
    fates: dict[str, str | None] = {}
    for line in lines:
        if line.content is None or line.file == INDEX:
            continue
        if line.file in gone or subject.holds(line.name) or about(line.file, line.content, subject):
            fates[line.digest] = None
        elif subject.holds(line.content):
            text = _cleaned_topic(line.content, subject)
            fates[line.digest] = None if text is None else digest_of(_bytes(text))
    return fates


def _rewritten(
    line: JournalLine | str, subject: Subject, gone: set[str], fates: dict[str, str | None]
) -> JournalLine | str | None:
    if isinstance(line, str):
        return None if subject.holds(line) else line
    dropped = bool(line.digest) and fates.get(line.digest, "") is None
    if line.file == INDEX:  # the lines of a change set belong together, so none of them goes
        content = None if line.content is None else _index(line.content, subject, {fold_name(file) for file in gone}).value
        return msgspec.structs.replace(line, content=content) if content != line.content else line
    if line.file in gone or subject.holds(line.name) or subject.holds(line.file) or dropped:
        return None
    why = line.why
    if why is not None and subject.holds(why.why):
        why = msgspec.structs.replace(why, why=redact_text(why.why, subject).value)
    content = line.content
    if content is not None and subject.holds(content):
        content = _cleaned_topic(content, subject)
    digest = fates.get(line.digest, line.digest) or ""
    before = fates.get(line.before, line.before) or ""
    was = "" if subject.holds(line.was) else line.was
    if (why, content, digest, before, was) == (line.why, line.content, line.digest, line.before, line.was):
        return line
    return msgspec.structs.replace(line, why=why, content=content, digest=digest, before=before, was=was)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
