"""A session's file that may grow: its window over time, and any of its turns, without holding its records in memory.

`update` reads what was appended since the last time. A file that shrank or was replaced is read anew. Turns are read from their places in
the file. A line that is still being written waits for its end. A window that was read before can be kept and given again, as long as
the file is the same; it is read anew when the file changes. Read-only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ..core.records import Foreign, Newer, Record
from ..core.settings import Settings
from ..disk.regular_file import FileStamp, open_regular, stamp, stamp_of
from ..disk.transcripts.jsonl import MAX_LINE, Health, decode_object
from .places import Origin
from .positions import START, LinePosition, Placed, complete_end, read_placed, session_lines
from .sessions import format_of
from .window_series import Series, WindowFold, in_force

# Records between two pauses: a few milliseconds of work.
PAUSE_RECORDS = 50
# JSON may write letters and digits by their numbers, though nobody does.
ESCAPED = b"\\u00"


class KeptWindow(msgspec.Struct, frozen=True):
    """The window of a file as it was read: for the same stamp."""

    series: Series
    starts: list[LinePosition]
    end: int
    stamp: FileStamp


class FollowedSession:
    """Not thread-safe. Raises OSError or DiskError if the file is gone."""

    def __init__(
        self, path: str | os.PathLike[str], settings: Settings, *, origin: Origin = "lamina", kept: KeptWindow | None = None
    ) -> None:
        self.path = Path(path)
        self._settings = settings
        self._origin: Origin = origin
        self._restart(kept)

    def _restart(self, kept: KeptWindow | None = None) -> None:
        self._kept = kept  # in the place of the fold
        self._health = Health()
        self._next = LinePosition(kept.end) if kept is not None else START  # the first line that is not read yet
        self._stamp = kept.stamp if kept is not None else None  # at the last look
        self._starts: list[LinePosition] = [*kept.starts] if kept is not None else []  # of each turn
        self._added = 0  # records in the fold
        self._format: Origin | None = None  # of the file, once a turn was read
        self._fold = WindowFold(self._read_again)

    def _read_again(self) -> Iterator[Record]:
        return (found.record for found in islice(read_placed(self.path), self._added))

    def update(self, pause: Callable[[], None] = lambda: None) -> bool:
        """Read what is new. Return whether anything was. `pause` is called now and then."""
        now = stamp(os.stat(self.path))
        if now == self._stamp:
            return False
        end = complete_end(self.path)
        replaced = self._stamp is not None and (now.inode != self._stamp.inode or end < self._next.offset)
        self._stamp = now
        if end == self._next.offset and not replaced:
            return False
        # In these formats the usage of an answer may come after it, so an open answer cannot be continued.
        if replaced or self._kept is not None or format_of(self.path) in ("codex", "pi"):
            self._restart()
            self._stamp = now
        for place, record in read_placed(self.path, self._next, end, health=self._health):
            if self._added % PAUSE_RECORDS == 0:
                pause()
            before, self._added = len(self._fold.turns), self._added + 1
            self._fold.add(record)
            self._starts += [place] * (len(self._fold.turns) - before)
        self._next = LinePosition(end)
        return True

    def is_current(self) -> bool:
        """Whether the file is still as it was at the last look."""
        return stamp_of(self.path) == self._stamp

    def keep(self, series: Series) -> KeptWindow | None:
        """Return the window as it was read, with the series of that reading; None before it."""
        if self._stamp is None:
            return None
        return self._kept or KeptWindow(series, self._starts, self._next.offset, self._stamp)

    def series(self) -> Series:
        if self._kept is not None:
            return in_force(self._kept.series, self._settings, self._origin)
        return self._fold.series(self._settings, origin=self._origin, health=self._health)

    def turn(self, number: int) -> list[Record]:
        """Return the records of a turn, from 1; what comes before the first message belongs to the first turn."""
        return list(self.each(number))

    def each(self, number: int) -> Iterator[Record]:
        """Yield the records of a turn, each decoded when it is asked for."""
        return (found.record for found in self._placed(number))

    def others(self, number: int) -> Iterator[Any]:
        """Yield the records of a turn that are of unknown kinds or newer, as they are in the file; None for one that is gone."""
        with open_regular(self.path) as file:
            for place, record in self._placed(number):
                if isinstance(record, Foreign | Newer):
                    file.seek(place.offset)
                    yield decode_object(file.readline(MAX_LINE))

    def _placed(self, number: int) -> Iterator[Placed]:
        if not 1 <= number <= max(1, len(self._starts)):
            return iter(())
        start, end = self._bounds(number)
        return read_placed(self.path, start, end, format=self._format_of())

    def turns_with(self, words: Sequence[bytes]) -> Iterator[int]:
        """Yield the numbers of the turns that may contain all these words, in lower case. Reads the file without decoding it."""
        for number, text in self._texts():
            folded = text.lower()
            if ESCAPED in folded or all(word in folded for word in words):
                yield number

    def find(self, record: str) -> tuple[int, Record] | None:
        """Return the turn of a record, and the record, by its id. The turns that name it are decoded first."""
        name = f'"{record}"'.encode("utf-8", "replace")
        named = [number for number, text in self._texts() if name in text]
        for number in (*named, *range(1, len(self._starts) + 1)):  # in some formats records are named after their places
            for found in self.each(number):
                if found.uuid == record:
                    return number, found
        return None

    def _texts(self) -> Iterator[tuple[int, bytes]]:
        number, text = 1, bytearray()
        for offset, raw in session_lines(self.path, START.offset, self._next.offset, format=self._format_of()):
            while number < len(self._starts) and offset >= self._starts[number].offset:
                yield number, bytes(text)
                number, text = number + 1, bytearray()
            text += raw
        yield number, bytes(text)

    def _format_of(self) -> Origin:
        self._format = self._format or format_of(self.path)
        return self._format

    def _bounds(self, number: int) -> tuple[LinePosition, int]:
        start = self._starts[number - 1] if number > 1 else START
        return start, self._starts[number].offset if number < len(self._starts) else self._next.offset
