"""A page of lines from a file of any size, in bounded memory.

Owns how bytes become numbered lines. Invariants: memory is one chunk and one page, however long the file or a line is; a line
ends at `\\n` only, and a `\\r` before it belongs to the line end; the pages of a file, put together, are all of its lines.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator
from threading import Event
from typing import NamedTuple

# A source line is under 200 characters; what is longer is data, of which the beginning tells the kind.
LINE_CHARACTERS = 2_000
# No character of UTF-8 has more than four bytes.
_LINE_BYTES = 4 * LINE_CHARACTERS + 1
_CHUNK = 1 << 20
# Where a line is folded, in bytes, which are never fewer than its characters: up to three of a character that begins before are left
# to the next piece.
_PIECE = LINE_CHARACTERS


class TextPage(NamedTuple):
    lines: tuple[str, ...]  # as shown, without numbers and line ends
    first: int  # the number of the first line, from 1
    cut: int  # how many of them were too long to be shown whole
    replaced: bool  # whether bytes that are no UTF-8 were replaced
    total: int  # how many lines were passed over
    more: bool  # whether a line follows that is not shown
    ended: bool  # whether the file was read to its end, so that `total` counts all its lines


def chunks(fd: int, abort: Event, *, most: int | None = None) -> Iterator[bytes]:
    """What is left of the file, piece by piece; ends early behind `most` bytes, and when the call is stopped."""
    rest = most
    while not abort.is_set() and (part := os.read(fd, _CHUNK if rest is None else min(rest, _CHUNK))):
        yield part
        rest = None if rest is None else rest - len(part)


def as_utf8(parts: Iterable[bytes], codec: str) -> Iterator[bytes]:
    """Text of another encoding as UTF-8, so that line ends can be found in it."""
    if codec == "utf-8":
        yield from parts
        return
    decoder = codecs.getincrementaldecoder(codec)("replace")
    for part in parts:
        yield decoder.decode(part).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


class FoldedLines:
    """Passes UTF-8 text on with a line end inside every line that is too long to be shown whole: each piece counts as a line, so that
    pages reach everything in a file that is one long line. Memory is one chunk and one piece."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts = parts
        self.folds = 0

    def __iter__(self) -> Iterator[bytes]:
        held = b""
        for part in self._parts:
            *lines, last = (held + part).split(b"\n")
            if lines:
                yield b"".join(b"%b\n" % piece for line in lines for piece in self._pieces(line))
            *before, held = self._pieces(last)
            if before:
                yield b"".join(b"%b\n" % piece for piece in before)
        yield held

    def _pieces(self, line: bytes) -> Iterator[bytes]:
        start = 0
        while len(line) - start > _PIECE:
            end = start + _PIECE
            while end > start + _PIECE - 4 and line[end] & 0xC0 == 0x80:
                end -= 1
            # Bytes that are no UTF-8 have no place to be cut at.
            end = end if line[end] & 0xC0 != 0x80 else start + _PIECE
            yield line[start:end]
            self.folds += 1
            start = end
        yield line[start:]


def read_page(parts: Iterable[bytes], *, first: int, most_lines: int, most_bytes: int, to_the_end: bool) -> TextPage:
    """The lines from number `first` on; reading goes on behind the page if `to_the_end`, to count what follows."""
    page = _PageBuilder(first, most_lines, most_bytes)
    ended = True
    for part in parts:
        page.take(part)
        if page.more and not to_the_end:
            ended = False
            break
    return page.close(ended)


class _PageBuilder:
    def __init__(self, first: int, most_lines: int, most_bytes: int) -> None:
        self.first = first
        self.most_lines = most_lines
        self.most_bytes = most_bytes
        self.lines = list[str]()
        self.number = 1  # of the line that is being read
        self.kept = b""  # its beginning
        self.length = 0  # how many bytes it has so far
        self.cut = 0
        self.replaced = False
        self.more = False

    def take(self, part: bytes) -> None:
        # Before the page and behind it lines are only counted, which goes at a gigabyte a second.
        if self.more or (self.number < self.first and self.number + part.count(b"\n") < self.first):
            ends = part.count(b"\n")
            self.number += ends
            self.length = (self.length if not ends else 0) + len(part) - (part.rfind(b"\n") + 1)
            return
        start, full = 0, False
        while not full and (end := part.find(b"\n", start)) >= 0:
            self._extend(part[start : min(end, start + _LINE_BYTES)], end - start)
            full = self._end_line()
            start = end + 1
        if full:
            self.number += part.count(b"\n", start)
            self.length = len(part) - max(start, part.rfind(b"\n") + 1)
        else:
            self._extend(part[start : start + _LINE_BYTES], len(part) - start)
            # The page is full and something follows: a line of gigabytes need not end before that is known.
            self.more = len(self.lines) >= self.most_lines and self.length > 0

    def _extend(self, beginning: bytes, length: int) -> None:
        self.length += length
        if self.number >= self.first and len(self.kept) < _LINE_BYTES:
            self.kept += beginning[: _LINE_BYTES - len(self.kept)]

    def _end_line(self) -> bool:
        """Whether the page is full."""
        if self.number >= self.first:
            self._show()
        self.number += 1
        self.kept, self.length = b"", 0
        return self.more

    def _show(self) -> None:
        text = self._decoded()
        cut = len(text) > LINE_CHARACTERS
        if cut:
            rest = self.length - len(text[:LINE_CHARACTERS].encode())
            text = f"{text[:LINE_CHARACTERS]}… [{rest:,} more bytes in this line]"
        size = len(text.encode()) + len(str(self.number)) + 2
        # A page has at least one line, so that the next one begins further on.
        if self.lines and (len(self.lines) >= self.most_lines or size > self.most_bytes):
            self.more = True
            return
        self.most_bytes -= size
        self.lines.append(text)
        self.cut += cut

    def _decoded(self) -> str:
        whole = self.length == len(self.kept)
        line = self.kept.removesuffix(b"\r") if whole else self.kept
        try:
            return line.decode()
        except UnicodeDecodeError:
            text = line.decode("utf-8", "replace")
            # A character cut in two at the end of what was kept is no fault of the file's.
            self.replaced = self.replaced or "\ufffd" in (text if whole else text[:-1])
            return text

    def close(self, ended: bool) -> TextPage:
        total = self.number - 1
        # A last line without an end counts; behind the last line end there is none.
        if self.length:
            total += 1
            if not self.more and self.number >= self.first:
                self._show()
        return TextPage(tuple(self.lines), self.first, self.cut, self.replaced, total, self.more, ended)
