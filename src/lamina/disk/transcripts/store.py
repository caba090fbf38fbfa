"""Transcripts: the log on disk, one JSONL file per conversation.

Owns the file of a session: one writer at a time (a lock held for the session's life), appends of whole lines, reading that
survives any damage, and the search for the place a resume may start at. Nothing is ever rewritten, so records of other programs
keep their bytes.

What survives a crash at any line: everything appended before; of the append under way a prefix of its lines, the last of which
may be torn and is then skipped by every reader. `append` does not wait for the disk; `sync` does.

A write that fails (disk full, read-only) does not end the session: the lines wait in memory, bounded, and go out in order
before the next ones; `trouble` says so in one sentence, and at the end what was lost, if it never came to that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ...core.errors import DiskError, InputError, LockHeld, NewerVersion
from ...core.log import Log, seeded
from ...core.record_lines import FORMAT, Envelope, read_record, write_record
from ...core.records import Attachment, Boundary, Checkpoint, Forked, Message, Newer, Record
from ..append import Appender
from ..crash_points import point
from ..faults import reporting
from ..locks.lock_file import LifeLock
from .jsonl import MAX_LINE, Health, objects_in, raw_lines_back, read_lines
from .resume import find_offset, find_resume_point, read_live_lines, records_in

# Lines waiting for a disk that does not take them; past this the oldest promise (nothing grows without bound) wins.
MAX_WAITING = 64 << 20
# A power loss may cost at most this much of a transcript; a fsync takes milliseconds and every turn would pay for it.
SYNC_SECONDS = 5.0
# A fork that is being copied, beside its lock.
FORK_NAME = "fork.jsonl"
# Lines of a fork that go out in one write.
FORK_BATCH = 500
# How a prompt snapshot of ours looks in its line.
SNAPSHOT_MARK = b'"kind":"snapshot"'


class TranscriptStore:
    """Where a session's records live: a file or, for servers that keep their own, memory."""

    path: Path | None = None

    def __init__(self, envelope: Envelope) -> None:
        self.health = Health()
        self.trouble: str | None = None
        self._envelope = envelope

    def append(self, records: Sequence[Record]) -> int:
        """Add records and return the offset of the first."""
        return self.append_lines(_encoded(records, self._envelope))

    def append_lines(self, lines: Sequence[bytes]) -> int:
        """Add lines, which may be no records of a conversation but for who lists transcripts."""
        raise NotImplementedError

    def read(self, start: int = 0) -> Iterator[Record]:
        """Read all records from `start` on, in file order."""
        raise NotImplementedError

    def lines_back(self) -> Iterator[tuple[int, bytes]]:
        """Read the lines as bytes with their offsets, last first."""
        raise NotImplementedError

    def _written_back(self) -> Iterator[tuple[int, bytes]]:
        """Read the lines that have an offset, last first."""
        return self.lines_back()

    def resume_point(self) -> tuple[int, Checkpoint | None]:
        return find_resume_point(self._written_back())

    def mentions(self, mark: bytes) -> bool:
        """Whether these bytes stand anywhere in it; no line is parsed."""
        return any(mark in line for _, line in self._written_back())

    def offset_of(self, uuids: Iterable[str]) -> int:
        """Return where the first of these records begins; 0 when one of them is not found."""
        return find_offset(self._written_back(), set(uuids))

    def sync(self, *, force: bool = False) -> None:
        """Wait for the disk, where there is one."""

    def close(self) -> None:
        """End the writing; memory goes with its owner."""


class InMemoryTranscript(TranscriptStore):
    """Records kept as lines, as a file would, so that both stores read back exactly what was written."""

    def __init__(self, envelope: Envelope, lines: Iterable[bytes] = ()) -> None:
        super().__init__(envelope)
        self._lines = list(lines)

    def append_lines(self, lines: Sequence[bytes]) -> int:
        first = len(self._lines)
        self._lines.extend(lines)
        return first

    def read(self, start: int = 0) -> Iterator[Record]:
        for line in self._lines[start:]:
            yield from (_own(record, self._envelope) for record in records_in(line))

    def lines_back(self) -> Iterator[tuple[int, bytes]]:
        return ((index, self._lines[index]) for index in range(len(self._lines) - 1, -1, -1))


class FileTranscript(TranscriptStore):
    def __init__(self, path: Path, envelope: Envelope, lock: LifeLock, appender: Appender | None) -> None:
        super().__init__(envelope)
        self.path = self._where = path
        self._lock = lock
        self._appender = appender
        self._waiting: list[bytes] = []
        self._synced = time.monotonic()
        self._unsynced = False
        self._file = _file_at(path)
        self._removed = False

    @classmethod
    def open(cls, path: Path, envelope: Envelope) -> FileTranscript | None:
        """Open for writing, creating the file; None when another live session is writing it."""
        lock = LifeLock.acquire(lock_path(path))
        if lock is None:
            return None
        try:
            return cls(path, envelope, lock, Appender.open(path))
        except BaseException:
            lock.close()
            raise

    @classmethod
    def fork(cls, path: Path, envelope: Envelope, source: Path, forked: Forked, health: Health) -> FileTranscript:
        """A new transcript that continues `source`. It gets its name when it is whole and locked: nobody ever sees a part of it."""
        lock = LifeLock.acquire(lock_path(path))
        if lock is None:
            raise LockHeld(str(path))
        # In the session's own directory, where nobody looks for transcripts.
        growing = lock_path(path).with_name(FORK_NAME)
        try:
            with Appender.open(growing) as appender:
                lines = read_live_lines(source, health)
                while batch := list(islice(lines, FORK_BATCH)):
                    appender.append(batch)
                appender.append([write_record(forked, envelope)])
                appender.sync()
            with reporting(path):
                point("fork.rename")
                os.replace(growing, path)
            return cls(path, envelope, lock, Appender.open(path))
        except BaseException:
            with suppress(OSError):
                point("fork.unlink")
                os.unlink(growing)
            lock.close()
            raise

    def append_lines(self, lines: Sequence[bytes]) -> int:
        return self._write([*self._waiting, *lines])

    def _write(self, lines: list[bytes]) -> int:
        if self._appender is None:
            raise ValueError("append to a closed transcript")
        try:
            if not self._lock.held:
                # A forked child: the file is its parent's to write.
                raise LockHeld(str(self._where), "the process this one was forked from")
            offset = self._appender.append(lines)
        except DiskError as error:
            self._keep(lines, error)
            return self._appender.end
        self._waiting, self.trouble = [], None
        self._unsynced = True
        return offset

    def _keep(self, lines: list[bytes], error: DiskError) -> None:
        lost = ""
        if sum(map(len, lines)) <= MAX_WAITING:
            self._waiting = lines
        else:
            lost = f", what came after them is not kept ({MAX_WAITING >> 20} MiB is the most that waits)"
        waiting = f"{len(self._waiting)} records wait in memory for the next write"
        self.trouble = f"{error} The conversation goes on; {waiting}{lost}."

    def read(self, start: int = 0) -> Iterator[Record]:
        health = self.health = Health()
        if self._removed or self._is_gone():
            raise DiskError(str(self._where), "was removed while it was in use", "what was said before is only in memory now")
        for line in read_lines(self._where, start=start, health=health):
            yield _own(read_record(line.value), self._envelope)
        for waiting in self._waiting:
            yield _own(read_record(msgspec.json.decode(waiting)), self._envelope)

    def lines_back(self) -> Iterator[tuple[int, bytes]]:
        yield from ((-1, line) for line in reversed(self._waiting))
        yield from self._written_back()

    def _written_back(self) -> Iterator[tuple[int, bytes]]:
        return raw_lines_back(self._where)

    def sync(self, *, force: bool = False) -> None:
        """Wait for the disk if there is something to wait for and the last time is long enough ago."""
        if self._waiting:
            self._write(self._waiting)
        if self._appender is None or not self._unsynced:
            return
        gone = not self._removed and self._is_gone()
        if not (force or gone or time.monotonic() - self._synced >= SYNC_SECONDS):
            return
        self._removed = self._removed or gone
        try:
            self._appender.sync()
        except DiskError as error:
            self.trouble = str(error)
        self._synced, self._unsynced = time.monotonic(), False

    def _is_gone(self) -> bool:
        """Whether another file, or none, stands where ours was: somebody removed the home of a live session."""
        return self._file != _file_at(self._where)

    def close(self) -> None:
        if self._appender is None:
            return
        self.sync(force=True)
        if self._waiting:
            self.trouble = (
                f"{self._where}: what was said last ({len(self._waiting)} records) could not be written and is lost; "
                "make room or let the directory be written, then say again what must be kept."
            )
        self._appender.close()
        self._appender = None
        self._lock.close()


def _encoded(records: Sequence[Record], envelope: Envelope) -> list[bytes]:
    """Records as lines that every reader will take."""
    lines = [write_record(record, envelope) for record in records]
    if any(len(line) > MAX_LINE for line in lines):
        raise InputError("record", f"is larger than {MAX_LINE >> 20} MiB", "hand over a part of it, or the name of a file")
    return lines


def _own(record: Record, envelope: Envelope) -> Record:
    """To everybody else a subagent's records are a side conversation; to its own session they are the conversation."""
    if envelope.sidechain and isinstance(record, Message | Attachment | Boundary) and record.sidechain:
        return msgspec.structs.replace(record, sidechain=False)
    return record


def _file_at(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def lock_path(path: Path) -> Path:
    """Beside the session's other files, so that the directory of transcripts holds transcripts only."""
    return path.with_suffix("") / "writer.lock"


class RecordSource(Protocol):
    """Where records can be read from both ends: a store, or a file that somebody else may be writing."""

    def lines_back(self) -> Iterator[tuple[int, bytes]]: ...

    def read(self, start: int = 0) -> Iterator[Record]: ...


class TranscriptReader:
    """A transcript that is only looked at."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines_back(self) -> Iterator[tuple[int, bytes]]:
        return raw_lines_back(self._path)

    def read(self, start: int = 0) -> Iterator[Record]:
        return read_transcript(self._path, start=start)


def read_transcript(path: Path, *, start: int = 0, health: Health | None = None) -> Iterator[Record]:
    """Read all records of a transcript without locking it."""
    for line in read_lines(path, start=start, health=health):
        yield read_record(line.value)


class LiveTranscript(NamedTuple):
    """The part of a store that a conversation needs: its log, where it begins, and what the checkpoint there knew."""

    log: Log
    start: int
    state: dict[str, Any]


def load_live(store: TranscriptStore) -> LiveTranscript:
    """Read as little as the last checkpoint allows."""
    start, checkpoint = store.resume_point()
    state = checkpoint.state if checkpoint is not None else {}
    log = Log.load(lambda: store.read(start), lambda: seeded(state))
    if start and not (_is_enough(log) and (checkpoint is not None or _has_prompt(log, store))):
        return LiveTranscript(Log.load(store.read), 0, {})
    return LiveTranscript(log, start, state)


def _is_enough(log: Log) -> bool:
    """Whether a log that was not read from the top holds all of its conversation: nothing in it refers to what lies before, the
    conversation goes on from the last boundary (a rewind may have led to before it), and what that kept is there."""
    boundaries = [decision for decision in log.decisions.values() if isinstance(decision, Boundary)]
    if log.tree.bridged or not boundaries or boundaries[-1].uuid not in log.tree.members:
        return False
    return all(uuid in log.tree.nodes for uuid in boundaries[-1].kept)


def _has_prompt(log: Log, store: TranscriptStore) -> bool:
    """A compaction that was cut off before its checkpoint may leave the prompt behind; other programs record none at all."""
    return log.view.snapshot is not None or not store.mentions(SNAPSHOT_MARK)


class TranscriptOrigin(msgspec.Struct, frozen=True):
    """The program that wrote a transcript last."""

    ours: bool
    newer: int | None = None  # format of a record from a newer version, anywhere in the tail


def read_origin(path: Path) -> TranscriptOrigin:
    """Find who wrote last, from the end of the file; an empty one is ours to write."""
    for _, line in raw_lines_back(path):
        for value in reversed(objects_in(line)):
            record = read_record(value)
            return TranscriptOrigin("lamina" in value, record.found if isinstance(record, Newer) else None)
    return TranscriptOrigin(ours=True)


def refuse_newer(path: Path) -> None:
    found = read_origin(path).newer
    if found is not None:
        raise NewerVersion(str(path), found, FORMAT)
