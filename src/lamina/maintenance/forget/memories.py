"""A memory directory without a subject (B11): which files go, which change, and how its journal reads afterwards.

Decides only. A memory whose name, description or file name holds the subject goes as a whole, with every line the journal has
of it; of any other memory the parts that hold it go, and the rest of it if nothing is left. The journal's contents are treated
by the same rule, and its digests follow, so what stands there still fits what the journal says. Proposals that hold it go,
what dreams keep of it goes, so that no undo brings it back, caches go, git's copy goes as a whole: it is made again from the journal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError
from ...core.front_matter import read_front_matter
from ...disk.files import read
from ...disk.trees.rewrite import FileState, file_state
from ...memory.store.index import entries
from ...memory.store.journal import Line, digest_of
from ...memory.store.topic import folded, read_topic
from .files import Root, files, memory_kind
from .redaction import MARK, Cleaned, cleaned, encoded, in_json, without
from .subject import COPIED_CHARS, Subject

# Everything in a memory directory is small; the journal's segments are the largest.
MOST_BYTES = 64 << 20
_MARKERS = "-*+> \t"


class Change(NamedTuple):
    """What becomes of one file. `new` None: it goes. `trash`: how many of the places are of memories that were removed before."""

    path: Path
    kind: str
    places: int
    before: FileState
    new: bytes | None
    trash: int = 0


class _Read(NamedTuple):
    path: Path
    kind: str
    seen: FileState
    text: str


def changes(root: Root, subject: Subject) -> list[Change]:
    """In the order they are made: what others point at goes last, the journal last of all."""
    read_files = _read_all(root)
    gone = {_name(root, one.path) for one in read_files if one.kind == root.kind and _is_gone(root, one, subject)}
    found = [change for one in read_files if (change := _change(root, one, subject, gone)) is not None]
    segments = [one for one in read_files if one.kind == "history"]
    found += _journal(segments, subject, gone, {_name(root, one.path) for one in read_files})
    if found:
        touched = {change.path for change in found}
        found += [_whole(one, 0) for one in read_files if one.kind == "caches" and one.path not in touched]
    order = ("dreams", "inbox", "daily logs", "caches", "indexes", "history")
    return sorted(found, key=lambda change: order.index(change.kind) if change.kind in order else 3.5)


def copied_lines(root: Root, subject: Subject) -> set[str]:
    """The longer lines of memories that go as a whole: wherever else they were copied, they go too."""
    found: set[str] = set()
    for one in _read_all(root):
        if one.kind == root.kind and about(_name(root, one.path), one.text, subject):
            found |= _lines(one.text)
        elif one.kind == "history":
            for line in _decoded(one.text):
                if (
                    isinstance(line, Line)
                    and line.content
                    and (subject.holds(line.name) or about(line.file, line.content, subject))
                ):
                    found |= _lines(line.content)
    return found


def _lines(text: str) -> set[str]:
    rows = {row for line in read_front_matter(text).body.splitlines() for row in (line.strip(), line.strip().lstrip(_MARKERS))}
    return {row for row in rows if len(row) >= COPIED_CHARS}


def about(file: str, text: str, subject: Subject) -> bool:
    """Whether a memory is about the subject: it goes as a whole then."""
    topic = read_topic(file, text, 0)
    return any(subject.holds(said) for said in (topic.name, topic.description, file.removesuffix(".md")))


def _read_all(root: Root) -> list[_Read]:
    found = []
    for path in files(root.path, skip={root.path / "team", root.path / ".history" / "git"}):
        kind, state = memory_kind(root, path), file_state(path)
        data = None
        if state is not None and state.size <= MOST_BYTES:
            # What cannot be read is not changed; the last look at everything names it.
            with suppress(DiskError, OSError):
                data = read(path, MOST_BYTES) if not root.shared else path.read_bytes()
        if state is not None and data is not None:
            found.append(_Read(path, kind, state, data.decode("utf-8", "surrogateescape")))
    return found


def _name(root: Root, path: Path) -> str:
    return path.relative_to(root.path).as_posix()


def _is_gone(root: Root, one: _Read, subject: Subject) -> bool:
    if one.path.suffix != ".md" or not subject.holds(one.text + one.path.name):
        return False
    return about(_name(root, one.path), one.text, subject) or _cleaned_topic(one.text, subject) is None


def _change(root: Root, one: _Read, subject: Subject, gone: set[str]) -> Change | None:
    name = _name(root, one.path)
    if name in gone:
        return _whole(one, max(1, len(subject.spans(one.text))))
    if one.kind == "indexes":
        new = _index(one.text, subject, {folded(file) for file in gone})
        return Change(one.path, one.kind, new.places, one.seen, _bytes(new.text)) if new.text != one.text else None
    if one.kind == "history" or not subject.holds(one.text):
        return None
    places = len(subject.spans(one.text))
    if one.kind in ("dreams", "inbox", "caches") or one.text.startswith("SQLite format 3"):
        return _whole(one, places)
    text = _cleaned_topic(one.text, subject) if one.kind == root.kind else without(one.text, subject).text
    if one.path.suffix in (".json", ".jsonl"):
        text = _json_text(one.text, subject)
    return Change(one.path, one.kind, places, one.seen, None if text is None else _bytes(text))


def _whole(one: _Read, places: int) -> Change:
    return Change(one.path, one.kind, places, one.seen, None)


def _cleaned_topic(text: str, subject: Subject) -> str | None:
    """None when nothing but front matter is left of a body that said something."""
    matter = read_front_matter(text)
    if matter.head is None:
        body = without(text, subject).text
        return body if body.strip() or not text.strip() else None
    head = text[: len(text) - len(matter.body)]
    body = without(matter.body, subject).text
    if matter.body.strip() and not body.strip():
        return None
    return "".join(_head_lines(head, subject)) + body


def _head_lines(head: str, subject: Subject) -> Iterator[str]:
    """The lines of front matter; a value that holds the subject keeps its key, so that the rest can still be read."""
    for line in head.splitlines(keepends=True):
        key, colon, _ = line.partition(":")
        if not subject.holds(line):
            yield line
        elif colon and not subject.holds(key):
            yield f'{key}: "{MARK}"\n'


def _index(text: str, subject: Subject, gone: set[str]) -> Cleaned:
    kept, places = list[str](), 0
    for line in text.split("\n"):
        points_at_one = any(folded(entry.file) in gone for entry in entries(line))
        if points_at_one or subject.holds(line):
            places += 1
        else:
            kept.append(line)
    return Cleaned("\n".join(kept), places)


def _json_text(text: str, subject: Subject) -> str:
    rows = []
    for line in text.split("\n"):
        try:
            value = json.loads(line) if subject.holds(line) else None
        except (ValueError, RecursionError):
            rows.append(cleaned(line, subject).text)
            continue
        rows.append(
            line if value is None else encoded(in_json(value, subject, free=True).value).decode("utf-8", "surrogateescape")
        )
    return "\n".join(rows)


# The journal


def _journal(segments: list[_Read], subject: Subject, gone: set[str], there: set[str]) -> list[Change]:
    every = [line for one in segments for line in _decoded(one.text)]
    fates = _fates([line for line in every if isinstance(line, Line)], subject, gone)
    found = []
    for one in segments:
        kept, places, trash = list[bytes](), 0, 0
        for line in _decoded(one.text):
            new = _rewritten(line, subject, gone, fates)
            places += new != line
            trash += new != line and isinstance(line, Line) and line.file not in there
            if new is not None:
                kept.append(msgspec.json.encode(new) if isinstance(new, Line) else _bytes(new))
        if places:
            found.append(Change(one.path, one.kind, places, one.seen, b"".join(row + b"\n" for row in kept), trash))
    return found


def _decoded(text: str) -> Iterable[Line | str]:
    """A line that cannot be read stays as the text it is."""
    for row in text.split("\n"):
        if row:
            try:
                yield msgspec.json.decode(row.encode("utf-8", "surrogateescape"), type=Line)
            except msgspec.DecodeError:
                yield row


def _fates(lines: list[Line], subject: Subject, gone: set[str]) -> dict[str, str | None]:
    """Digest → the digest of what stands in its place; None: nothing does."""
    fates: dict[str, str | None] = {}
    for line in lines:
        if line.content is None:
            continue
        if line.file in gone or subject.holds(line.name) or about(line.file, line.content, subject):
            fates[line.digest] = None
        elif subject.holds(line.content):
            text = _cleaned_topic(line.content, subject)
            fates[line.digest] = None if text is None else digest_of(_bytes(text))
    return fates


def _rewritten(line: Line | str, subject: Subject, gone: set[str], fates: dict[str, str | None]) -> Line | str | None:
    if isinstance(line, str):
        return None if subject.holds(line) else line
    dropped = bool(line.digest) and fates.get(line.digest, "") is None
    if line.file in gone or subject.holds(line.name) or subject.holds(line.file) or dropped:
        return None
    why = line.why
    if why is not None and subject.holds(why.why):
        why = msgspec.structs.replace(why, why=cleaned(why.why, subject).text)
    content = line.content
    if content is not None and subject.holds(content):
        content = _cleaned_topic(content, subject)
    digest = fates.get(line.digest, line.digest) or ""
    before = fates.get(line.before, line.before) or ""
    if (why, content, digest, before) == (line.why, line.content, line.digest, line.before):
        return line
    return msgspec.structs.replace(line, why=why, content=content, digest=digest, before=before)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
