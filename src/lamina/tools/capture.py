"""Capture of a command's output as plain text of bounded size: beginning and end in memory, everything in a file if it is
long.

Invariants: the text has no control characters but tab and newline, and no escape sequences. Invalid UTF-8 bytes become
U+FFFD. Memory holds at most INLINE_BYTES and one chunk. The file is created only if the text is too long to show, and is at
most FILE_BYTES long; a command that prints more is stopped.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..core.errors import DiskError
from ..disk.session_files.spool import Spool

# The amount that Bash may put into the conversation, in bytes: up to here the text is shown whole.
INLINE_BYTES = 30_000
# Room for the exit code, timeout and other notes, reserved when the text is cut.
NOTE_BYTES = 1_000
# Errors and totals are more often at the end than at the beginning.
HEAD_BYTES = 10_000
TAIL_BYTES = INLINE_BYTES - NOTE_BYTES - HEAD_BYTES
# Nobody reads more; a program that prints more is in a loop or should write to a file.
FILE_BYTES = 64 << 20
# Live output is for a user who watches the last lines; beyond this amount it is no longer forwarded.
LIVE_CHARACTERS = 1_000_000
# A longer sequence without an end is not an escape sequence.
_LONGEST_ESCAPE = 4_096

_ESCAPE = re.compile(
    r"\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # window titles, links
    r"|[PX^_][^\x1b]*\x1b\\"  # device strings
    r"|[ -/]*[0-OQ-WYZ\\`-~]"  # character sets, keypad, reset
    r")"
)
_UNFINISHED = re.compile(r"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)|\r)\Z")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")


class Captured(NamedTuple):
    text: str
    cut: int  # number of bytes of text not shown
    size: int  # number of bytes printed
    lines: int
    file: Path | None  # the whole text, if some is not shown; the receiver owns the file
    lost: str  # why the file is missing although some text is not shown


class Cleaner:
    """Turns bytes into plain text. A possible beginning of a character or sequence waits for the next piece."""

    __slots__ = ("_decoder", "_held")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, part: bytes, *, final: bool = False) -> str:
        text = self._held + self._decoder.decode(part, final)
        self._held = ""
        if not _CONTROL.search(text):
            return text
        if not final and (unfinished := _UNFINISHED.search(text, max(0, len(text) - _LONGEST_ESCAPE))):
            self._held, text = unfinished[0], text[: unfinished.start()]
        text = _ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
        return _CONTROL.sub("", text)


class Capture:
    def __init__(self, directory: Path, on_output: Callable[[str], None] | None = None) -> None:
        self._directory = directory
        self._on_output = on_output
        self._live = LIVE_CHARACTERS
        self._cleaner = Cleaner()
        self._head = b""  # everything so far, until it is too long to show
        self._tail = b""
        self._written = 0  # bytes of clean text
        self._size = 0
        self._lines = 0
        self._spool: Spool | None = None
        self._lost = ""

    def take(self, part: bytes) -> bool:
        """Add output. Return False once the program has printed as much as is ever kept."""
        self._size += len(part)
        fits = self._add(self._cleaner.feed(part))
        return fits and self._size < FILE_BYTES

    def _add(self, text: str) -> bool:
        if not text:
            return True
        if self._on_output is not None and self._live > 0:
            self._on_output(text[: self._live])
            self._live -= len(text)
        self._lines += text.count("\n")
        data = text.encode()
        self._written += len(data)
        if self._written <= INLINE_BYTES:
            self._head += data
            return True
        if not self._tail:
            self._open()
            # The first piece may be longer than everything that is shown, so the beginning is taken from it too.
            whole = self._head + data
            self._head, data = whole[:HEAD_BYTES], whole[HEAD_BYTES:]
            self._keep(self._head)
        # A piece may begin inside a character; `close` leaves that character out.
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        self._keep(data)
        return self._written < FILE_BYTES

    def _open(self) -> None:
        try:
            self._spool = Spool.create(self._directory, limit=FILE_BYTES)
        except DiskError as error:
            self._lost = str(error)

    def _keep(self, data: bytes) -> None:
        """Save output to the file. A failure does not stop the command, because beginning and end are still in memory."""
        if self._spool is None:
            return
        try:
            self._spool.write(data)
        except DiskError as error:
            self._lost = str(error)
            self._spool.close()
            self._spool = None

    def close(self) -> Captured:
        """End the capture. The file, if any, belongs to the caller from now on."""
        self._add(self._cleaner.feed(b"", final=True))
        if not self._tail:
            return Captured(self._head.decode(), 0, self._size, self._count(self._head), None, "")
        head, tail = self._head.decode("utf-8", "ignore"), self._tail.decode("utf-8", "ignore")
        cut = self._written - len(head.encode()) - len(tail.encode())
        file = self._spool.keep() if self._spool is not None else None
        self.drop()
        note = f"\n[… {cut:,} of {self._written:,} bytes omitted …]\n"
        return Captured(head + note + tail, cut, self._size, self._count(self._tail), file, self._lost)

    def _count(self, end: bytes) -> int:
        return self._lines + bool(end and not end.endswith(b"\n"))

    def drop(self) -> None:
        """Release the file; it is removed unless `close` handed it over."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None
