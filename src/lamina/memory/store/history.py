"""The history of a memory directory: one journal line for each change, with author, reason and content.

It owns the files `.history/journal-NNNNNN.jsonl`; `journal` defines the lines. Invariants: the line of a change is durable
before the change itself, so every acknowledged change has one, and replacing a content never loses it. A content is stored
once in each segment that needs it, so dropping the oldest segment takes nothing from the others. At most 8 segments of about
2 MiB are kept. The last content of a removed memory stays here: this is the trash. Changes not made through us are noticed
at the next write and recorded as "outside". A memory has one identity in all its lines, under whatever name and file.

A crash while a line is appended loses at most that line. A crash after it leaves a line whose change did not happen; the
next write then adds a line "undone". Writers hold the store's guard; readers need none. Secrets are removed from contents
that came from outside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager

import msgspec

from ...core.decoding import UNDECODABLE
from ...disk.faults import AbsentIsFine
from ...disk.paths.memory_paths import GUARD as GUARD
from ...disk.temp_files import Durability
from ...disk.trees.rootdir import RootDir
from ...language.text import encodable
from .contract import ChangeAction, ChangeReason, MemoryVersion
from .journal import (
    JournalHead,
    JournalLine,
    MemoryChange,
    concerns,
    digest_of,
    fill_contents,
    make_index_line,
    make_line,
    read_head,
    to_version,
    unified_diff,
    with_identities,
)
from .topic import INDEX, name_key

HISTORY_DIRECTORY = ".history"
# A save holds the guard for a few milliseconds, so even dozens of processes that save at once get their turn within this time.
PATIENCE = 60.0
# A few hundred versions per segment: the first save of a process reads them in milliseconds.
SEGMENT_BYTES = 2 << 20
SEGMENTS = 8
# Contains the newest line of most journals, whose memories are a page long. If not, the whole journal is read.
_PEEK_BYTES = 32 << 10
SEGMENT_NAME = re.compile(r"journal-(\d{6})\.jsonl")


def hold_guard(root: RootDir) -> AbstractContextManager[object]:
    """Hold the one lock under which a memory directory is changed."""
    return root.guard(GUARD, timeout=PATIENCE)


class MemoryHistory:
    __slots__ = (
        "_begin",
        "_contained",
        "_durability",
        "_files",
        "_last",
        "_named",
        "_new",
        "_read",
        "_root",
        "_segment_digests",
        "_set",
        "is_open",
        "latest",
    )

    def __init__(self, root: RootDir, *, durability: Durability = "full") -> None:
        self._root = root
        self._durability: Durability = durability
        self._set: ChangeReason | None = None  # the change set that is being made
        self._begin: JournalLine | None = None  # its first line, until there is a change
        self._forget()

    def _forget(self) -> None:
        self._read: dict[int, int] = {}  # segment → position up to which it was read
        self._files: dict[int, tuple[int, int]] = {}  # its inode and size: `lamina forget` replaces the file
        self._last: dict[str, JournalHead] = {}
        self._named: dict[str, list[str]] = {}  # the files of the lines with a name, by its key, without those in `_new`
        self._new: list[JournalHead] = []
        self.latest: JournalHead | None = None  # the newest change at the last look
        self.is_open = False  # whether the journal ends within a change set
        self._contained: set[str] = set()  # digests whose content is in some segment
        self._segment_digests: set[str] = set()  # digests whose content is in the newest segment

    # Writing

    def record(self, change: MemoryChange, *, now: float) -> str:
        """Append the coming change, preceded by any change made outside, and return the new version's id. The caller holds
        the guard and has caught up with the journal."""
        change = change._replace(memory=change.memory or self.identity(change.file, change.name, change.old))
        if self._set is not None and change.why is not None:
            change = change._replace(why=msgspec.structs.replace(change.why, act=self._set.act))
        status = self._root.stat(change.was or change.file)
        lines = [*self._missing_content(change, now), make_line(change, now, mtime_ns=status.st_mtime_ns if status else 0)]
        return self._append(lines)

    def begin(self, why: ChangeReason, index: bytes | None, *, now: float) -> None:
        """Begin a change set: the coming lines are parts of it. A set without changes leaves no line."""
        self._set, self._begin = why, make_index_line("begin", why, None, index, now)

    def resume(self, why: ChangeReason) -> None:
        """Continue the unfinished set at the end of the journal, to undo it."""
        self._set, self._begin = why, None

    def rewrite_index(self, before: bytes | None, after: bytes, *, now: float) -> None:
        """Record that the set is about to rewrite the index."""
        assert self._set is not None
        self._append([make_index_line("index", self._set, before, after, now)])
        self.catch_up()

    def end(self, index: bytes | None, *, now: float) -> None:
        """End the change set: from now on it is made as a whole."""
        if self._set is not None and self.has_begun:
            self._append([make_index_line("end", self._set, None, index, now)])
            self.catch_up()

    def leave(self) -> None:
        """Leave the change set, whether it is finished or not."""
        self._set = self._begin = None

    @property
    def has_begun(self) -> bool:
        """Whether the set that is being made has a line."""
        return self._set is not None and self._begin is None

    def settle(self, content: bytes | None, *, now: float) -> None:
        """Record that the newest change did not happen. `content` is that of the newest line's file. If it is still as it was
        before that change, the writer was stopped or had no disk space, or the change was reverted outside; then a line is
        added. The guard is held, as in `record`.
        """
        newest = self.latest
        if newest is None or not digest_of(content) == newest.before != newest.digest:
            return
        change = MemoryChange(newest.file, newest.name, "undone", None, content, None, newest.memory, newest.was)
        self._append([make_line(change, now, before=newest.digest)])
        self.catch_up()

    def adopt(self, lines: Iterable[JournalLine]) -> int:
        """Import lines of another journal with their ids, times and contents; known ones are skipped. The guard is held."""
        ids = {line.id for line in self.lines()}
        new = [line for line in lines if line.id not in ids]
        for line in new:
            self.catch_up()
            self._append([msgspec.structs.replace(line, part=False)])
        return len(new)

    def _append(self, lines: list[JournalLine]) -> str:
        number, rows = self._room(), []
        if self._set is not None and lines[-1].action != "end":
            lines = [msgspec.structs.replace(line, part=True) for line in lines]
            lines, self._begin = [self._begin, *lines] if self._begin is not None else lines, None
        for line in lines:
            if line.digest in self._segment_digests:
                line = msgspec.structs.replace(line, content=None)
            elif line.content is not None:
                self._segment_digests.add(line.digest)
            rows.append(msgspec.json.encode(line, enc_hook=encodable))
        self._root.append(_path(number), rows, durability=self._durability)
        return lines[-1].id

    def _missing_content(self, change: MemoryChange, now: float) -> Iterator[JournalLine]:
        """Yield the old content if the journal lacks it: it was changed outside, or dropped with an old segment."""
        digest, last = digest_of(change.old), self.last(change.file)
        recorded = "" if last is None else last.digest
        if digest == recorded and (change.old is None or digest in self._contained):
            return
        action: ChangeAction = "keep" if digest == recorded else "outside"
        memory = change.memory if last is None else last.memory
        earlier = MemoryChange(change.file, change.name, action, None, change.old, None, memory)
        yield make_line(earlier, now, before=recorded)

    def _room(self) -> int:
        """Return the segment to append to. If it is full, start a new one and drop an old one."""
        numbers = sorted(self._files)
        newest = numbers[-1] if numbers else 1
        if numbers and self._files[newest][1] > SEGMENT_BYTES:
            newest += 1
            self._segment_digests = set()
            for number in numbers[: max(0, len(numbers) + 1 - SEGMENTS)]:
                self._root.unlink(_path(number))
            # The contents of a dropped segment are no longer known.
            self.catch_up()
            self._segment_digests = set()
        return newest

    # Reading

    def last(self, file: str) -> JournalHead | None:
        return self._last.get(file)

    def identity(self, file: str, name: str, data: bytes | None) -> str:
        """Return the identity of the memory in this file, which has this content, or which is about to be created.

        A memory that comes again after its removal, or whose file was renamed outside, keeps its identity. The journal was
        caught up with.
        """
        last = self.last(file)
        if data is not None and last is not None:
            return last.memory
        digest, key = digest_of(data), name_key(name)
        if data is None:
            # Only a new memory needs the names, so only it pays.
            for head in self._new:
                files = self._named.setdefault(name_key(head.name), [])
                if head.file not in files[-1:]:
                    files.append(head.file)
            self._new = []
            heads = [self._last[file] for file in dict.fromkeys(self._named.get(key, ()))]
            alike = [head for head in heads if name_key(head.name) == key]
        else:
            # A file that vanished right after it was written counts as never written.
            heads = list(self._last.values())
            alike = [head for head in heads if digest == (head.before if head.action == "undone" else head.digest)]
        gone = [head for head in alike if not head.digest or self._root.stat(head.file) is None]
        former = next((head for head in gone if head.file == file), gone[-1] if gone else None)
        return former.memory if former is not None else os.urandom(6).hex()

    def newest(self) -> JournalHead | None:
        """Return the newest line: the only change that a crash may have left half done, or the end of a finished set."""
        if not self._read and (newest := self._peek()) is not None:
            return newest
        self.catch_up()
        return self.latest

    def _peek(self) -> JournalHead | None:
        """Read the newest line only, which is all that opening a memory with a long history needs. None if all lines must be
        read."""
        number = max(self._segments(), default=0)
        status = self._root.stat(_path(number)) if number else None
        if status is None:
            return None
        start = max(0, status.st_size - _PEEK_BYTES)
        # Rows after the last line end are incomplete, and so is the first row unless it begins the file.
        rows = self._tail(number, start).split(b"\n")[:-1]
        return next(filter(None, map(read_head, reversed(rows[1:] if start else rows))), None)

    def catch_up(self) -> None:
        """Read the lines appended since the last look, by any process."""
        inodes = self._segments()
        # Only the newest segment grows. `lamina forget` replaces a file, which gives it another inode.
        old = {number: self._files[number] for number, inode in inodes.items() if self._files.get(number, (0, 0))[0] == inode}
        old.pop(max(inodes, default=0), None)
        stats = {number: stat for number in inodes.keys() - old if (stat := self._root.stat(_path(number))) is not None}
        files = old | {number: (stat.st_ino, stat.st_size) for number, stat in stats.items()}
        if any(number not in files or files[number][0] != inode for number, (inode, _) in self._files.items()):
            self._forget()
        self._files = files
        for number in sorted(files):
            if number not in self._read:
                self._segment_digests = set()
            start = self._read.get(number, 0)
            # Most segments never change again, so they are not opened again.
            data = self._tail(number, start) if files[number][1] != start else b""
            whole = data[: data.rfind(b"\n") + 1]
            self._read[number] = start + len(whole)
            for row in whole.split(b"\n"):
                self._take(row)

    def _take(self, row: bytes) -> None:
        if (head := read_head(row)) is None:
            return
        self.is_open = head.part
        if head.has_content:
            self._contained.add(head.digest)
            self._segment_digests.add(head.digest)
        if head.file == INDEX:
            return
        last = self.last(head.file)
        head.memory = head.memory or (last.memory if last is not None else head.file)
        self.latest = self._last[head.file] = head
        self._new.append(head)
        if head.was:
            # The former file is gone, or has its content again if the rename did not happen.
            digest = head.before if head.action == "undone" else ""
            self._last[head.was] = JournalHead(head.was, "", head.action, digest, memory=head.memory)

    def rows(self) -> Iterator[JournalLine]:
        """Yield all lines, oldest first, those about the index too; unreadable ones are skipped."""
        return with_identities(line for number in sorted(self._segments()) for line in self._lines_of(number))

    def lines(self) -> Iterator[JournalLine]:
        """Yield the changes of memories, oldest first."""
        return (line for line in self.rows() if line.file != INDEX)

    def unfinished(self) -> list[JournalLine]:
        """Return the lines of the change set that the journal ends with, from its `begin` on; empty if that is finished."""
        lines = list[JournalLine]()
        for row in self.rows() if self.is_open else ():
            lines = [row] if row.action == "begin" else [*lines, row] if lines and row.part else []
        return lines

    def contents(self, digests: Collection[str]) -> dict[str, str]:
        """Return the contents with these digests that the journal has."""
        return {row.digest: row.content for row in self.rows() if row.content is not None and row.digest in digests}

    def filled(self) -> list[JournalLine]:
        """Return all lines, oldest first, each with its content if any segment has it."""
        return fill_contents(self.lines())

    def _lines_of(self, number: int) -> Iterator[JournalLine]:
        for row in self._tail(number, 0).split(b"\n"):
            try:
                yield msgspec.json.decode(row, type=JournalLine)
            except UNDECODABLE:
                continue

    def versions(self, memory: str) -> list[tuple[MemoryVersion, str | None]]:
        """Return the changes of one memory, oldest first, with the text after each. The text is None if the journal lacks it
        or the memory was removed."""
        lines = list(self.lines())
        contents = {line.digest: line.content for line in lines if line.content is not None}
        return [(to_version(line), contents.get(line.digest)) for line in lines if line.memory == memory]

    def log(self, memory: str | None = None) -> list[MemoryVersion]:
        """Return the changes of the memory with this identity, or of all, newest first."""
        versions = [to_version(line) for line in self.lines() if memory is None or line.memory == memory]
        return versions[::-1]

    def find(self, name: str) -> str:
        """Return the identity of the memory that had this name or file last; empty if none had it."""
        return next((version.memory for version in self.log() if concerns(version, name)), "")

    def content(self, version_id: str) -> str | None:
        """Return the file as it was after this change; None if it was removed or the version is unknown."""
        digest = next((line.digest for line in self.lines() if line.id == version_id), "")
        return self.content_of(digest)

    def content_of(self, digest: str) -> str | None:
        return next(
            (line.content for line in self.lines() if digest and line.digest == digest and line.content is not None), None
        )

    def diff(self, version_id: str) -> str:
        """Return one change as a unified diff; empty if its contents are unknown."""
        line = next((line for line in self.lines() if line.id == version_id), None)
        if line is None:
            return ""
        if line.action == "rename":
            return f"rename from {line.was}\nrename to {line.file}\n"
        return unified_diff(line.file, self.content_of(line.before), self.content_of(line.digest))

    def _segments(self) -> dict[int, int]:
        """Return the numbers of the segments, with the inodes of their files."""
        inodes = self._root.inodes(HISTORY_DIRECTORY).items()
        return {int(match[1]): inode for name, inode in inodes if (match := SEGMENT_NAME.fullmatch(name))}

    def _tail(self, number: int, start: int) -> bytes:
        fd = -1
        with AbsentIsFine():
            fd = self._root.open_read(_path(number))
        if fd < 0:
            return b""
        with os.fdopen(fd, "rb") as file:
            file.seek(start)
            return file.read(max(0, os.fstat(fd).st_size - start))  # lines appended meanwhile are read next time


def _path(number: int) -> str:
    return f"{HISTORY_DIRECTORY}/journal-{number:06}.jsonl"
