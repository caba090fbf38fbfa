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
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ..core.checkpoint import seeded
from ..core.errors import DiskError, InputError, LockHeld, NewerVersion
from ..core.log import Log
from ..core.record_lines import FORMAT, Envelope, read_record, write_record
from ..core.records import Attachment, Boundary, Checkpoint, Forked, Message, Newer, Record
from .append import Appender
from .crash_points import point
from .faults import reporting
from .jsonl import MAX_LINE, Health, objects_in, raw_lines_back, read_lines
from .lock import LifeLock
from .resume import live_lines, offset_in, records_in, resume_in

# Lines waiting for a disk that does not take them; past this the oldest promise (nothing grows without bound) wins.
MAX_WAITING = 64 << 20
# A power loss may cost at most this much of a transcript; a fsync takes milliseconds and every turn would pay for it.
SYNC_SECONDS = 5.0
# Lines of a fork that go out in one write.
FORK_BATCH = 500
# How a prompt snapshot of ours looks in its line.
SNAPSHOT_MARK = b'"kind":"snapshot"'


class Store(Protocol):
    """Where a session's records live: a file or, for servers that keep their own, memory."""

    path: Path | None
    health: Health
    trouble: str | None

    def append(self, records: Sequence[Record]) -> int:
        """Add records; the offset of the first is returned."""

    def append_lines(self, lines: Sequence[bytes]) -> None:
        """Add lines that are no records of a conversation, for who lists transcripts."""

    def read(self, start: int = 0) -> Iterator[Record]:
        """All records from `start` on, in file order."""

    def lines_back(self) -> Iterator[tuple[int, bytes]]:
        """The lines as bytes with their offsets, last first."""

    def resume_point(self) -> tuple[int, Checkpoint | None]: ...

    def mentions(self, mark: bytes) -> bool:
        """Whether these bytes stand anywhere in it; no line is parsed."""

    def offset_of(self, uuids: Iterable[str]) -> int:
        """Where the first of these records begins; 0 when one of them is not found."""

    def sync(self, *, force: bool = False) -> None: ...

    def close(self) -> None: ...


class MemoryStore:
    """Records kept as lines, as a file would, so that both stores read back exactly what was written."""

    def __init__(self, envelope: Envelope, lines: Iterable[bytes] = ()) -> None:
        self.path: Path | None = None
        self.health = Health()
        self.trouble: str | None = None
        self._envelope = envelope
        self._lines = list(lines)

    def append(self, records: Sequence[Record]) -> int:
        first = len(self._lines)
        self._lines.extend(_encoded(records, self._envelope))
        return first

    def append_lines(self, lines: Sequence[bytes]) -> None:
        self._lines.extend(lines)

    def read(self, start: int = 0) -> Iterator[Record]:
        for line in self._lines[start:]:
            yield from (_own(record, self._envelope) for record in records_in(line))

    def resume_point(self) -> tuple[int, Checkpoint | None]:
        return resume_in(self.lines_back())

    def mentions(self, mark: bytes) -> bool:
        return any(mark in line for line in self._lines)

    def offset_of(self, uuids: Iterable[str]) -> int:
        return offset_in(self.lines_back(), set(uuids))

    def lines_back(self) -> Iterator[tuple[int, bytes]]:
        return ((index, self._lines[index]) for index in range(len(self._lines) - 1, -1, -1))

    def sync(self, *, force: bool = False) -> None:
        """Memory has nothing to wait for."""

    def close(self) -> None:
        """Memory goes with its owner."""


class FileStore:
    def __init__(self, path: Path, envelope: Envelope, lock: LifeLock, appender: Appender | None) -> None:
        self.path: Path | None = path
        self.health = Health()
        self.trouble: str | None = None
        self._where = path
        self._envelope = envelope
        self._lock = lock
        self._appender = appender
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._synced = time.monotonic()
        self._unsynced = False
        self._file = _file_at(path)
        self._removed = False

    @classmethod
    def open(cls, path: Path, envelope: Envelope) -> FileStore | None:
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
    def fork(cls, path: Path, envelope: Envelope, source: Path, forked: Forked, health: Health) -> FileStore:
        """A new transcript that continues `source`. It gets its name when it is whole and locked: nobody ever sees a part of it."""
        lock = LifeLock.acquire(lock_path(path))
        if lock is None:
            raise LockHeld(str(path))
        # In the session's own directory, where nobody looks for transcripts.
        growing = lock_path(path).with_name("fork.jsonl")
        try:
            with Appender.open(growing) as appender:
                for batch in _batches(live_lines(source, health)):
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

    def append(self, records: Sequence[Record]) -> int:
        lines = _encoded(records, self._envelope)
        if self._waiting:
            lines = [*self._waiting, *lines]
        return self._write(lines)

    def append_lines(self, lines: Sequence[bytes]) -> None:
        self._write([*self._waiting, *lines])

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
        self._waiting, self._waiting_bytes, self.trouble = [], 0, None
        self._unsynced = True
        return offset

    def _keep(self, lines: list[bytes], error: DiskError) -> None:
        size = sum(map(len, lines))
        lost = ""
        if size <= MAX_WAITING:
            self._waiting, self._waiting_bytes = lines, size
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
        yield from raw_lines_back(self._where)

    def resume_point(self) -> tuple[int, Checkpoint | None]:
        return resume_in(raw_lines_back(self._where))

    def mentions(self, mark: bytes) -> bool:
        return any(mark in line for _, line in raw_lines_back(self._where))

    def offset_of(self, uuids: Iterable[str]) -> int:
        return offset_in(raw_lines_back(self._where), set(uuids))

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


class Readable(Protocol):
    """Where records can be read from both ends: a store, or a file that somebody else may be writing."""

    def lines_back(self) -> Iterator[tuple[int, bytes]]: ...

    def read(self, start: int = 0) -> Iterator[Record]: ...


class OnDisk:
    """A transcript that is only looked at."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines_back(self) -> Iterator[tuple[int, bytes]]:
        return raw_lines_back(self._path)

    def read(self, start: int = 0) -> Iterator[Record]:
        return read_transcript(self._path, start=start)


def read_transcript(path: Path, *, start: int = 0, health: Health | None = None) -> Iterator[Record]:
    """All records of a file nobody has to own."""
    for line in read_lines(path, start=start, health=health):
        yield read_record(line.value)


class Live(NamedTuple):
    """The part of a store that a conversation needs: its log, where it begins, and what the checkpoint there knew."""

    log: Log
    start: int
    state: dict[str, Any]


def load_live(store: Store) -> Live:
    """Read as little as the last checkpoint allows."""
    start, checkpoint = store.resume_point()
    state = checkpoint.state if checkpoint is not None else {}
    log = Log.load(lambda: store.read(start), lambda: seeded(state))
    if start and not (_is_enough(log) and (checkpoint is not None or _has_prompt(log, store))):
        return Live(Log.load(store.read), 0, {})
    return Live(log, start, state)


def _is_enough(log: Log) -> bool:
    """Whether a log that was not read from the top holds all of its conversation: nothing in it refers to what lies before, the
    conversation goes on from the last boundary (a rewind may have led to before it), and what that kept is there."""
    boundaries = [decision for decision in log.decisions.values() if isinstance(decision, Boundary)]
    if log.tree.bridged or not boundaries or boundaries[-1].uuid not in log.tree.members:
        return False
    return all(uuid in log.tree.nodes for uuid in boundaries[-1].kept)


def _has_prompt(log: Log, store: Store) -> bool:
    """A compaction that was cut off before its checkpoint may leave the prompt behind; other programs record none at all."""
    return log.view.snapshot is not None or not store.mentions(SNAPSHOT_MARK)


class Origin(msgspec.Struct, frozen=True):
    """Who wrote a transcript last."""

    ours: bool
    newer: int | None = None  # format of a record from a newer version, anywhere in the tail


def origin(path: Path) -> Origin:
    """Looks at the end of the file only; an empty one is ours to write."""
    for _, line in raw_lines_back(path):
        for value in reversed(objects_in(line)):
            record = read_record(value)
            return Origin("lamina" in value, record.found if isinstance(record, Newer) else None)
    return Origin(ours=True)


def refuse_newer(path: Path) -> None:
    found = origin(path).newer
    if found is not None:
        raise NewerVersion(str(path), found, FORMAT)


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for line in lines:
        batch.append(line)
        if len(batch) == FORK_BATCH:
            yield batch
            batch = []
    yield batch
