"""Transcripts: the log on disk, one JSONL file per conversation.

Owns the file of a session: one writer at a time (a lock held for the session's lifetime), appends of whole lines, reading that
copes with any damage, and the search for the offset where a resume may start. Nothing is ever rewritten, so records of other
programs keep their bytes.

After a crash at any line, everything appended before survives. Of the current append, a prefix of its lines survives; the last of
them may be torn, and every reader skips it. `append` does not wait for the disk; `sync` does.

A failed write (disk full, read-only) does not end the session. The lines wait in memory, up to a limit, and are written in order
before the next ones. `trouble` is a message about that, and on close, about lines that were lost.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DiskError, InputError, LockHeld, NewerVersion, UsageError
from ...core.log import Log, moved_by, seeded
from ...core.record_lines import EMPTY, FORMAT, Envelope, read_record, write_record
from ...core.records import Attachment, Boundary, Checkpoint, Forked, Message, Newer, Record
from ...language.text import Text, message
from ...language.wording import plural
from ..append import Appender
from ..crash_points import point
from ..faults import reporting
from ..files import remove
from ..locks.lock_file import LifeLock
from ..regular_file import stamp, stamp_of
from . import resume
from .jsonl import MAX_LINE, Health, objects_in, parse_line, raw_lines, raw_lines_back, read_lines
from .resume import find_offset, find_resume_point, records_in

# Maximum size of the lines that wait in memory for a failing disk. Beyond it, new lines are dropped: memory must stay bounded.
MAX_WAITING = 64 << 20
# A power loss may cost at most this much of a transcript. An fsync takes milliseconds, too long for every turn.
SYNC_SECONDS = 5.0
# An unfinished copy of a fork, next to its lock.
FORK_NAME = "fork.jsonl"
# Lines of a fork per write.
FORK_BATCH = 500
# Marks a line with a prompt snapshot of ours.
SNAPSHOT_MARK = b'"kind":"snapshot"'


class TranscriptStore:
    """The storage of a session's records: a file, or memory for servers that store sessions themselves."""

    path: Path | None = None

    def __init__(self, envelope: Envelope) -> None:
        self.health = Health()
        self.trouble: str | None = None
        self._envelope = envelope

    def append(self, records: Sequence[Record], moved: Mapping[str, str] = EMPTY) -> int:
        """Add records and return the offset of the first. `moved` is that of the log they are added to."""
        return self.append_lines(_encoded(records, self._envelope, moved))

    def append_lines(self, lines: Sequence[bytes]) -> int:
        """Add lines. They need not be records: some are meant for programs that list transcripts."""
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
        """Return whether any line contains these bytes. No line is parsed."""
        return any(mark in line for _, line in self._written_back())

    @property
    def size(self) -> int:
        """The size in bytes of what a resume would read from the beginning; 0 in memory, where there is no file."""
        return 0

    def offset_of(self, uuids: Iterable[str]) -> int:
        """Return the offset of the first of these records, or 0 if any of them is missing."""
        return find_offset(self._written_back(), set(uuids))

    def sync(self, *, force: bool = False) -> None:
        """Wait until all records are on disk. Does nothing for a store in memory."""

    def close(self) -> None:
        """Stop writing and release the file, if there is one."""


class SourceTranscript:
    """The transcript that a session continues elsewhere, as it was when it was opened. What its program adds later is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = stamp(path.stat())
        self.size = self._stamp.size

    def read(self, start: int, health: Health) -> Iterator[Record]:
        for offset, line in self.lines(start, health):
            yield from (read_record(row.value) for row in parse_line(offset, line, health))

    def lines(self, start: int, health: Health) -> Iterator[tuple[int, bytes]]:
        if (now := stamp_of(self.path)) is None or not now.continues(self._stamp):
            raise DiskError(str(self.path), "was replaced while in use", "resume the session again")
        for offset, line in raw_lines(self.path, start, health):
            if offset >= self.size:
                return
            yield offset, line[: self.size - offset]

    def lines_back(self) -> Iterator[tuple[int, bytes]]:
        return ((offset, line[: self.size - offset]) for offset, line in raw_lines_back(self.path) if offset < self.size)


class InMemoryTranscript(TranscriptStore):
    """Keeps records in memory as lines, like a file, so that both stores read back exactly what was written.

    The session may continue a file, which is read and never written. The offsets of the lines in memory follow those of the file.
    """

    def __init__(self, envelope: Envelope, source: SourceTranscript | None = None) -> None:
        super().__init__(envelope)
        self._source = source
        self._lines: list[bytes] = []

    def append_lines(self, lines: Sequence[bytes]) -> int:
        first = self.size + len(self._lines)
        self._lines.extend(lines)
        return first

    def read(self, start: int = 0) -> Iterator[Record]:
        health = self.health = Health()
        if self._source is not None and start < self.size:
            yield from (_own(record, self._envelope) for record in self._source.read(start, health))
        for line in self._lines[max(0, start - self.size) :]:
            yield from (_own(record, self._envelope) for record in records_in(line))

    def lines_back(self) -> Iterator[tuple[int, bytes]]:
        yield from ((self.size + index, self._lines[index]) for index in range(len(self._lines) - 1, -1, -1))
        if self._source is not None:
            yield from self._source.lines_back()

    @property
    def size(self) -> int:
        return self._source.size if self._source is not None else 0


class FileTranscript(TranscriptStore):
    """Keeps records in a JSONL file, under a lock that lasts as long as the session."""

    def __init__(self, path: Path, envelope: Envelope, lock: LifeLock | None, appender: Appender | None) -> None:
        super().__init__(envelope)
        self.path = self._where = path
        self._lock = lock
        self._appender = appender
        self._waiting: list[bytes] = []
        self._synced = time.monotonic()
        self._unsynced = False
        self._inode = _inode_of(path)
        self._removed = False

    @classmethod
    def open(cls, path: Path, envelope: Envelope) -> FileTranscript | None:
        """Open the file for writing, creating it if necessary. Returns None while another live session writes it."""
        lock = LifeLock.acquire(lock_path(path))
        if lock is None:
            return None
        try:
            return cls(path, envelope, lock, Appender.open(path))
        except BaseException:
            lock.close()
            raise

    def append_lines(self, lines: Sequence[bytes]) -> int:
        return self._write([*self._waiting, *lines])

    def _write(self, lines: list[bytes]) -> int:
        if self._appender is None:
            raise ValueError("cannot append to a closed transcript")
        try:
            if self._lock is None or not self._lock.held:
                # In a forked child process, the file belongs to the parent.
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
            lost = f", and later records are lost (at most {MAX_WAITING >> 20} MiB are kept)"
        waiting = Text("{n} record waits in memory|{n} records wait in memory", n=len(self._waiting))
        form = Text("{error} The conversation continues; {waiting} for the next write{lost}.")
        self.trouble = Text(form, error=error, waiting=waiting, lost=lost)

    def read(self, start: int = 0) -> Iterator[Record]:
        health = self.health = Health()
        if self._removed or self._is_gone():
            raise DiskError(str(self._where), "was removed while in use", "earlier messages are now only in memory")
        for line in read_lines(self._where, start=start, health=health):
            yield _own(read_record(line.value), self._envelope)
        for waiting in self._waiting:
            yield _own(read_record(msgspec.json.decode(waiting)), self._envelope)

    def lines_back(self) -> Iterator[tuple[int, bytes]]:
        yield from ((-1, line) for line in reversed(self._waiting))
        yield from self._written_back()

    def _written_back(self) -> Iterator[tuple[int, bytes]]:
        return raw_lines_back(self._where)

    @property
    def size(self) -> int:
        with suppress(OSError):
            return os.stat(self._where).st_size
        return 0

    def sync(self, *, force: bool = False) -> None:
        """Sync the file if there are unsynced records and the last sync was long enough ago, or always with `force`."""
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
            self.trouble = message(error)
        self._synced, self._unsynced = time.monotonic(), False

    def _is_gone(self) -> bool:
        """Return whether the file was removed or replaced, for example because the home of a live session was deleted."""
        return self._inode != _inode_of(self._where)

    def close(self) -> None:
        if self._appender is None and not self._waiting:
            return
        self.sync(force=True)
        if count := len(self._waiting):
            last = plural(count, "record", Text("{count:,} records", count=count))
            self.trouble = Text(
                "{where}: the last {last} could not be written and is lost. Free some space or make the directory "
                "writable, then repeat what must be kept.|{where}: the last {last} could not be written and are "
                "lost. Free some space or make the directory writable, then repeat what must be kept.",
                where=self._where,
                last=last,
                n=count,
            )
        self._waiting = []
        if self._appender is not None:
            self._appender.close()
            self._appender = None
        if self._lock is not None:
            self._lock.close()


class ForkedTranscript(FileTranscript):
    """A transcript that continues another one, which is copied before the first append.

    Until then nothing is on disk, so a session that is only looked at leaves no copy. The source may grow meanwhile; the copy ends
    where the source ended when it was opened. The whole source is copied, so that its compactions can still be undone when its own
    program has removed it. The copy gets its name once it is complete, so no reader sees a part of it.
    """

    def __init__(self, path: Path, envelope: Envelope, source: SourceTranscript, forked: Forked) -> None:
        super().__init__(path, envelope, None, None)
        self._source: SourceTranscript | None = source
        # Lines that follow the copy.
        self._begun: list[bytes] = [write_record(forked, envelope)]

    def begin_with(self, records: Sequence[Record]) -> None:
        """Add records that follow the copy, without making it yet."""
        self._begun += _encoded(records, self._envelope)

    def _write(self, lines: list[bytes]) -> int:
        if self._source is not None:
            try:
                self._copy(self._source)
            except DiskError as error:
                self._keep(lines, error)
                return self._source.size
        return super()._write(lines)

    def _copy(self, source: SourceTranscript) -> None:
        lock = LifeLock.acquire(lock_path(self._where))
        if lock is None:
            raise LockHeld(str(self._where))
        # In the session's own directory, which is not searched for transcripts.
        growing = lock_path(self._where).with_name(FORK_NAME)
        try:
            _drop_aborted_copies(self._where.parent)
            with Appender.open(growing) as appender:
                # Damaged lines come along too, so that every record keeps its offset, to which checkpoints refer.
                lines = (line.removesuffix(b"\n") for _, line in source.lines(0, Health()))
                while batch := list(islice(lines, FORK_BATCH)):
                    appender.append(batch)
                appender.append(self._begun)
                appender.sync()
            with reporting(self._where):
                point("fork.rename")
                os.replace(growing, self._where)
            self._appender = Appender.open(self._where)
        except BaseException:
            with suppress(OSError):
                point("fork.unlink")
                os.unlink(growing)
            lock.close()
            raise
        self._lock, self._inode, self._source, self._begun = lock, _inode_of(self._where), None, []

    def read(self, start: int = 0) -> Iterator[Record]:
        if self._source is None:
            yield from super().read(start)
            return
        health = self.health = Health()
        if start < self._source.size:
            yield from (_own(record, self._envelope) for record in self._source.read(start, health))
        for line in (*self._begun, *self._waiting):
            yield from (_own(record, self._envelope) for record in records_in(line))

    def _written_back(self) -> Iterator[tuple[int, bytes]]:
        if self._source is None:
            yield from super()._written_back()
            return
        yield from ((self._source.size, line) for line in reversed(self._begun))
        yield from self._source.lines_back()

    @property
    def size(self) -> int:
        return super().size if self._source is None else self._source.size

    def close(self) -> None:
        super().close()  # without an append, nothing was copied and nothing is written
        self._source = None


def _drop_aborted_copies(project: Path) -> None:
    """Remove copies whose process was killed. A copy that is being made is locked."""
    for copy in project.glob(f"*/{FORK_NAME}"):
        with suppress(DiskError):
            if (lock := LifeLock.acquire(copy.with_name("writer.lock"))) is not None:
                with lock:
                    remove(copy)


def _encoded(records: Sequence[Record], envelope: Envelope, parents: Mapping[str, str] = EMPTY) -> list[bytes]:
    """Encode records as lines that every reader accepts."""
    parents = dict(parents)
    lines = []
    for record in records:
        parents |= moved_by(record)
        lines.append(write_record(record, envelope, parents))
    if any(len(line) > MAX_LINE for line in lines):
        raise InputError(
            "record", Text("is larger than {limit} MiB", limit=MAX_LINE >> 20), "pass a part of it, or the name of a file"
        )
    return lines


def _own(record: Record, envelope: Envelope) -> Record:
    """Clear the sidechain flag in a subagent's own session: only for other readers is it a side conversation."""
    if envelope.sidechain and isinstance(record, Message | Attachment | Boundary) and record.sidechain:
        return msgspec.structs.replace(record, sidechain=False)
    return record


def _inode_of(path: Path) -> int | None:
    return file.inode if (file := stamp_of(path)) is not None else None


def lock_path(path: Path) -> Path:
    """Return the path of the lock, in the session's own directory, so that the project directory has only transcripts."""
    return path.with_suffix("") / "writer.lock"


class TranscriptReader:
    """Reads a transcript without opening it for writing."""

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


class LiveTranscript(msgspec.Struct, frozen=True):
    """The part of a store that a conversation needs: its log, the offset where it starts, and the state in its checkpoint."""

    log: Log
    start: int
    state: dict[str, Any]


def load_live(store: TranscriptStore) -> LiveTranscript:
    """Load the live part of a transcript: everything since the last checkpoint, or the whole file if that is not enough."""
    start, checkpoint = store.resume_point()
    return _load_from(store, start, checkpoint) or LiveTranscript(Log.load(store.read), 0, {})


def load_whole(store: TranscriptStore) -> Log:
    """Load all records, for a change to a part that was compacted. Raises UsageError if they would not fit into memory."""
    if store.size > resume.MAX_WHOLE:
        size = f"{store.size / 1e6:,.0f} MB"
        raise UsageError(f"The earlier part of this session cannot be loaded: {store.path} is too large ({size}).")
    return Log.load(store.read)


def load_bounded(store: TranscriptStore) -> LiveTranscript | None:
    """Load the live part of a transcript, or return None if it is too large to load (see resume.py)."""
    start, checkpoint = store.resume_point()
    if store.size - start > resume.MAX_LIVE:
        return None
    if (live := _load_from(store, start, checkpoint)) is not None:
        return live
    return LiveTranscript(Log.load(store.read), 0, {}) if store.size <= resume.MAX_LIVE else None


def _load_from(store: TranscriptStore, start: int, checkpoint: Checkpoint | None) -> LiveTranscript | None:
    """Load a transcript from an offset; None if the records from there on are not enough."""
    state = checkpoint.state if checkpoint is not None else {}
    log = Log.load(lambda: store.read(start), lambda: seeded(state))
    # A compaction that crashed before its checkpoint may leave the snapshot of the prompt before the start. Other programs record none.
    has_prompt = checkpoint is not None or log.view.snapshot is not None
    if start and not (_is_enough(log) and (has_prompt or not store.mentions(SNAPSHOT_MARK))):
        return None
    return LiveTranscript(log, start, state)


def _is_enough(log: Log) -> bool:
    """Return whether a log that was not read from the top is complete.

    It is if no record refers to an earlier one, the conversation continues from the last boundary (a rewind may have gone back
    before it), and all records that this boundary kept are there.
    """
    boundaries = [decision for decision in log.decisions.values() if isinstance(decision, Boundary)]
    if log.tree.bridged or not boundaries or boundaries[-1].uuid not in log.tree.members:
        return False
    return all(uuid in log.tree.nodes for uuid in boundaries[-1].kept)


class TranscriptOrigin(msgspec.Struct, frozen=True):
    """The program that wrote a transcript last."""

    ours: bool
    newer: int | None = None  # format of a record from a newer version, anywhere in the tail


def read_origin(path: Path) -> TranscriptOrigin:
    """Find which program wrote last, from the end of the file. An empty file counts as ours."""
    for _, line in raw_lines_back(path):
        for value in reversed(objects_in(line)):
            record = read_record(value)
            return TranscriptOrigin("lamina" in value, record.found if isinstance(record, Newer) else None)
    return TranscriptOrigin(ours=True)


def refuse_newer(path: Path) -> None:
    version = read_origin(path).newer
    if version is not None:
        raise NewerVersion(str(path), version, FORMAT)
