"""The ledger of background work: one file per day, `<home>/ledger/2026-11-16.jsonl`, with one line per model call.

Any number of processes append to it; each line is one write (append.py). Invariants: a day is a day in the machine's time zone;
no line is read twice; invalid lines are skipped. `add` may be called from any thread and never fails: if the disk cannot be used,
the process remembers its own calls as long as it lives, and `problem` says why. Without a home directory, it only remembers its
own calls.

A crash at any line loses at most the line being written. Nothing is synced, so a power loss may lose the last calls of a day.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ...core.budget import LedgerLine, Spent, spent_in
from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError
from ..append import Appender
from ..dirfd import open_parent, reading
from ..faults import AbsentIsFine

DIRECTORY = "ledger"
# Maximum number of its own calls that a process remembers; far more than a day's budget allows.
MOST_REMEMBERED = 10_000
# Bytes of new lines read at a time.
CHUNK = 1 << 20
_FILE = re.compile(r"(\d{4}-\d\d-\d\d)\.jsonl")


def day_of(seconds: float) -> str:
    """Return the date in the local time zone."""
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def ledger_file(home: Path, day: str) -> Path:
    return home / DIRECTORY / f"{day}.jsonl"


def list_ledger_days(home: Path) -> list[str]:
    """List the days that have a ledger, oldest first."""
    try:
        names = os.listdir(home / DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(match[1] for name in names if (match := _FILE.fullmatch(name)))


def read_ledger_day(home: Path, day: str) -> list[LedgerLine]:
    with AbsentIsFine():
        return list(_lines(_ReadPosition(ledger_file(home, day))))
    return []


class UsageLedger:
    """Today's ledger. `today` is not thread-safe; `add` is."""

    def __init__(self, home: Path | None, *, now: Callable[[], float] = time.time) -> None:
        self._home = home
        self._now = now
        self._day = ""
        self._read: _ReadPosition | None = None
        self._sum = Spent()
        self._added: deque[tuple[LedgerLine, bool]] = deque(maxlen=MOST_REMEMBERED)  # each with whether it is in the file
        self.problem: str | None = None

    def add(self, line: LedgerLine) -> None:
        if self._home is not None:
            try:
                with Appender.open(ledger_file(self._home, day_of(line.time))) as ledger:
                    ledger.append([msgspec.json.encode(line)])
                self._added.append((line, True))
                return
            except (DiskError, OSError) as error:
                self.problem = str(error)
        self._added.append((line, False))

    @property
    def day(self) -> str:
        return day_of(self._now())

    def today(self) -> Spent:
        """Return today's usage of all sessions of this home. Reads only the new part of the file."""
        if self._day != self.day:
            self._day, self._sum = self.day, Spent()
            self._read = _ReadPosition(ledger_file(self._home, self._day)) if self._home is not None else None
        if self._read is not None:
            try:
                self._follow(self._read)
            except (DiskError, OSError) as error:
                self.problem = str(error)
                return max(self._sum, self._own(), key=lambda spent: spent.calls)
        return self._sum | self._own(unwritten=True)

    def _own(self, *, unwritten: bool = False) -> Spent:
        """Return today's usage of this process: all of it, or only the part that could not be written."""
        return spent_in(
            line for line, written in tuple(self._added) if not (written and unwritten) and day_of(line.time) == self._day
        )

    def _follow(self, place: _ReadPosition) -> None:
        try:
            info = os.stat(place.path)
        except FileNotFoundError:
            place.end, self._sum = 0, Spent()
            return
        if info.st_size < place.end or (place.end and info.st_ino != place.inode):
            place.end, self._sum = 0, Spent()  # the file was removed and a new one started
        if info.st_size > place.end:
            for line in _lines(place):
                self._sum = self._sum.with_line(line)


class _ReadPosition:
    """The position up to which a file was read: the end of its last whole line."""

    __slots__ = ("end", "inode", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end = 0
        self.inode = 0


def _lines(place: _ReadPosition) -> Iterator[LedgerLine]:
    """Read the new lines after `place.end` and advance it. A line that is still being written is left for the next call."""
    with open_parent(place.path) as (where, name), reading(where, name) as fd:
        place.inode = os.fstat(fd).st_ino
        os.lseek(fd, place.end, os.SEEK_SET)
        unfinished = b""
        while part := os.read(fd, CHUNK):
            *whole, unfinished = (unfinished + part).split(b"\n")
            for row in whole:
                place.end += len(row) + 1
                try:
                    yield msgspec.json.decode(row, type=LedgerLine)
                except UNDECODABLE:
                    continue
            if len(unfinished) > CHUNK:  # too long to be one of our lines
                place.end += len(unfinished)
                unfinished = b""
