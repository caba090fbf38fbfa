"""What a command prints, as plain text of bounded size: its beginning and end in memory, all of it in a file when it is long.

Owns the cleaning and the bounds. Invariants: the text has no control characters but tab and newline, and no escape sequences;
bytes that are no UTF-8 are U+FFFD; memory holds at most INLINE_BYTES and one chunk; the file, made only when the text
is too long to be shown, is at most FILE_BYTES long, and a command that prints more is stopped.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..core.errors import DiskError
from ..disk.session_files.spool import Spool

# What R1 lets Bash put into the conversation, in bytes: up to here the text is shown whole.
INLINE_BYTES = 30_000
# Exit code, time-out and the like take no more; a text that is cut leaves them room.
NOTE_BYTES = 1_000
# Errors and totals stand at the end more often than at the beginning.
HEAD_BYTES = 10_000
TAIL_BYTES = INLINE_BYTES - NOTE_BYTES - HEAD_BYTES
# Nobody reads more; a program that prints more is in a loop or should write to a file.
FILE_BYTES = 64 << 20
# Live output is for a person who watches its last lines; a command that prints more than this is not followed any longer.
LIVE_CHARACTERS = 1_000_000
# An escape sequence that has not ended after so many characters is none.
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
    cut: int  # bytes of the text that are not shown
    size: int  # bytes that were printed
    lines: int
    file: Path | None  # all of the text, when some is not shown; whoever gets it owns it
    lost: str  # why there is no such file although some is not shown


class Cleaner:
    """Bytes in, plain text out; what may be the beginning of a character or a sequence waits for the next piece."""

    __slots__ = ("_decoder", "_held")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, part: bytes, *, final: bool = False) -> str:
        text = self._held + self._decoder.decode(part, final)
        self._held = ""
        if not _CONTROL.search(text):
            return text
        if not final and (found := _UNFINISHED.search(text, max(0, len(text) - _LONGEST_ESCAPE))):
            self._held, text = found[0], text[: found.start()]
        text = _ESCAPE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
        return _CONTROL.sub("", text)


class Capture:
    def __init__(self, directory: Path, on_output: Callable[[str], None] | None = None) -> None:
        self._directory = directory
        self._on_output = on_output
        self._live = LIVE_CHARACTERS
        self._cleaner = Cleaner()
        self._head = b""  # everything so far, until it is longer than what can be shown
        self._tail = b""
        self._written = 0  # bytes of clean text
        self._size = 0
        self._lines = 0
        self._spool: Spool | None = None
        self._lost = ""

    def take(self, part: bytes) -> bool:
        """False when the program has printed all that is ever kept."""
        self._size += len(part)
        fits = self._add(self._cleaner.feed(part))
        return fits and self._size < FILE_BYTES

    def _add(self, text: str) -> bool:
        if not text:
            return True
        self._tell(text)
        self._lines += text.count("\n")
        data = text.encode()
        self._written += len(data)
        if self._written <= INLINE_BYTES:
            self._head += data
            return True
        if not self._tail:
            self._open()
            # The first piece may be longer than all that is shown: the beginning is taken from it too.
            whole = self._head + data
            self._head, data = whole[:HEAD_BYTES], whole[HEAD_BYTES:]
            self._keep(self._head)
        # Characters are not cut: where a piece begins inside one, `close` leaves that one out.
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        self._keep(data)
        return self._written < FILE_BYTES

    def _tell(self, text: str) -> None:
        if self._on_output is not None and self._live > 0:
            self._on_output(text[: self._live])
            self._live -= len(text)

    def _open(self) -> None:
        try:
            self._spool = Spool.create(self._directory, limit=FILE_BYTES)
        except DiskError as error:
            self._lost = str(error)

    def _keep(self, data: bytes) -> None:
        """Output that can't be kept is no reason to stop the command: its beginning and end are there."""
        if self._spool is None:
            return
        try:
            self._spool.write(data)
        except DiskError as error:
            self._lost = str(error)
            self._spool.close()
            self._spool = None

    def close(self) -> Captured:
        """Ends the capture; the file, if there is one, is the caller's from now on."""
        self._add(self._cleaner.feed(b"", final=True))
        if not self._tail:
            return Captured(self._head.decode(), 0, self._size, self._count(self._head), None, "")
        head, tail = self._head.decode("utf-8", "ignore"), self._tail.decode("utf-8", "ignore")
        cut = self._written - len(head.encode()) - len(tail.encode())
        file = self._spool.keep() if self._spool is not None else None
        self.drop()
        note = f"\n[… {cut:,} bytes of {self._written:,} left out …]\n"
        return Captured(head + note + tail, cut, self._size, self._count(self._tail), file, self._lost)

    def _count(self, end: bytes) -> int:
        return self._lines + bool(end and not end.endswith(b"\n"))

    def drop(self) -> None:
        """Lets go of the file; it is removed unless `close` handed it over."""
        if self._spool is not None:
            self._spool.close()
            self._spool = None
