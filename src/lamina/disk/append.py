"""Appends lines to a log that is never rewritten.

Owns one O_APPEND descriptor for a writer's lifetime. Invariants: all records of one call are written in one `os.write`, so the
lines of several writers never mix on a local file system; every acknowledged record is on a separate line, even after a torn
line.

A crash at any line loses at most the records being appended. It leaves at most one torn line at the end, which the next append
ends with a newline. After `append`, records survive the end of the process; after `sync`, they survive a power loss.

Network file systems have no atomic O_APPEND, so writers there take a lock first. The same applies to several writers on Windows.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from ..core.errors import DiskError, InputError
from . import crash_points as crash
from .dirfd import APPEND, Closable, Dir, open_parent, open_plain, sync_fd
from .faults import disk_error, reporting

# A disk that keeps accepting only part of a write is full or limited; its next write reports that.
_TRIES = 8


class Appender(Closable):
    """Appends whole lines to a file. An appender is not thread-safe; any number of processes may each use one."""

    __slots__ = ("_closed", "_end", "_fd", "_new", "_torn", "path")

    def __init__(self, where: Dir, name: str) -> None:
        self.path = where.full(name)
        self._closed = False
        self._open(where, name)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a file, creating it (0600) and missing directories (0700). Refuses links, devices and files of other users."""
        with open_parent(path, create=True) as (where, name):
            return cls(where, name)

    def _open(self, where: Dir, name: str) -> None:
        with reporting(self.path):
            self._fd = open_plain(where, name, APPEND)
            self._end = os.lseek(self._fd, 0, os.SEEK_END)
            # If the file ends in the middle of a line, a newline comes before the next record.
            self._torn = not self._ends_a_line(self._end)
            # The first sync of a new file also makes its directory entry durable.
            self._new = self._end == 0

    @property
    def end(self) -> int:
        """The size of the file after our last append."""
        return self._end

    def append(self, records: Sequence[bytes]) -> int:
        """Write each record as one line and return the offset of the first. Records must not contain line breaks.

        After an error nothing is acknowledged, although some of the lines may be in the file. The caller may repeat the call once
        there is space, so a reader can see a record twice.
        """
        data = b"\n".join((*records, b""))
        if data.count(b"\n") != len(records) or len(data) > crash.MAX_WRITE:
            raise InputError(self.path, "a record contains a line break or exceeds 1 GiB", "encode it as one line of JSON")
        if self._fd < 0:
            self._reopen()
        first: int | None = None
        for _ in range(_TRIES):
            lead = b"\n" if self._torn else b""
            written = self._write(lead + data)
            whole = self._whole_lines(lead, data, written)
            if first is None and whole:
                first = self._end - written + len(lead)
            data = data[whole:]
            if not data:
                return self._end if first is None else first
        self._seal()
        raise DiskError(self.path, "accepts only part of each write", "check the disk and its limits")

    def _whole_lines(self, lead: bytes, data: bytes, written: int) -> int:
        """Return how many bytes of `data` are in the file as whole lines, after `written` bytes of `lead + data` were written."""
        expected, self._end = self._end, os.lseek(self._fd, 0, os.SEEK_CUR)
        start = self._end - written
        if start == expected and written == len(lead) + len(data):
            self._torn = False
            return len(data)
        if written == 0:
            return 0
        sent = (lead + data)[:written]
        self._torn = not sent.endswith(b"\n")
        # Another writer died in the middle of a line right before us, so our first line continues its torn line.
        if start != expected and not lead and not self._ends_a_line(start):
            return 0
        return max(0, sent.rfind(b"\n") + 1 - len(lead))

    def _write(self, data: bytes) -> int:
        try:
            return crash.write("append.write", self._fd, data) if data else 0
        except OSError as error:
            self._seal()
            raise disk_error(error, self.path) from error

    def _seal(self) -> None:
        """End our torn line with a newline if the disk still accepts one byte; otherwise the next append does it."""
        if self._torn:
            with suppress(OSError):
                if crash.write("append.seal", self._fd, b"\n"):
                    self._torn = False
                    self._end = os.lseek(self._fd, 0, os.SEEK_CUR)

    def _ends_a_line(self, position: int) -> bool:
        if position == 0:
            return True
        if hasattr(os, "pread"):
            return os.pread(self._fd, 1, position - 1) == b"\n"
        os.lseek(self._fd, position - 1, os.SEEK_SET)
        return os.read(self._fd, 1) == b"\n"

    def sync(self) -> None:
        """Make all appended records durable. After an error the descriptor is closed, and the next append opens a new one."""
        if self._fd < 0:
            return
        try:
            with reporting(self.path):
                sync_fd(self._fd, "append.fsync")
                if os.fstat(self._fd).st_nlink == 0:
                    raise DiskError(self.path, "was removed while in use", "the next record starts a new file")
                if self._new:
                    with open_parent(self.path) as (where, _):
                        where.sync()
        except DiskError:
            self._give_up()
            raise
        self._new = False

    def _reopen(self) -> None:
        if self._closed:
            raise DiskError(self.path, "is closed", "open it again to append to it")
        with open_parent(self.path, create=True) as (where, name):
            self._open(where, name)

    def _give_up(self) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)

    def close(self) -> None:
        """Close the file without syncing it."""
        self._closed = True
        if self._fd >= 0:
            self._give_up()
