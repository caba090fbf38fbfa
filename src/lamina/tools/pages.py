"""Pages of lines from a file of any size, in bounded memory.

This module turns bytes into numbered lines. Invariants: memory is one chunk and one page, however long the file or a line
is. A line ends at `\\n` only, and a `\\r` before it belongs to the line end. The pages of a file together are all of its
lines.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator
from threading import Event
from typing import NamedTuple

from ..language.wording import counted

# A source line is under 200 characters; longer lines are data, whose beginning shows the kind.
LINE_CHARACTERS = 2_000
# A UTF-8 character has at most four bytes.
_LINE_BYTES = 4 * LINE_CHARACTERS + 1
_CHUNK = 1 << 20
# Where a line is folded, in bytes (never fewer than its characters). Up to three bytes of a character that would be split move
# to the next piece.
_PIECE = LINE_CHARACTERS


class TextPage(NamedTuple):
    lines: tuple[str, ...]  # as shown, without numbers and line ends
    first: int  # the number of the first line, from 1
    cut: int  # number of lines cut for length
    replaced: bool  # whether invalid UTF-8 bytes were replaced
    total: int  # number of lines read
    more: bool  # whether further lines follow
    ended: bool  # whether the end of the file was reached, so that `total` counts all lines


def chunks(fd: int, abort: Event, *, most: int | None = None) -> Iterator[bytes]:
    """Yield the rest of the file in chunks. It ends early after `most` bytes, and when the call is aborted."""
    rest = most
    while not abort.is_set() and (part := os.read(fd, _CHUNK if rest is None else min(rest, _CHUNK))):
        yield part
        rest = None if rest is None else rest - len(part)


def as_utf8(parts: Iterable[bytes], codec: str) -> Iterator[bytes]:
    """Recode text to UTF-8, so that line ends can be found in it."""
    if codec == "utf-8":
        yield from parts
        return
    decoder = codecs.getincrementaldecoder(codec)("replace")
    for part in parts:
        yield decoder.decode(part).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


class FoldedLines:
    """Breaks every line that is too long to show into pieces. Each piece counts as a line, so pages reach everything even in
    a file that is one long line. Memory is one chunk and one piece."""

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
            # Invalid UTF-8 has no character border to cut at.
            end = end if line[end] & 0xC0 != 0x80 else start + _PIECE
            yield line[start:end]
            self.folds += 1
            start = end
        yield line[start:]


def read_page(parts: Iterable[bytes], *, first: int, most_lines: int, most_bytes: int, to_the_end: bool) -> TextPage:
    """Read the lines from number `first` on. With `to_the_end`, read on after the page to count the remaining lines."""
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
        self.number = 1  # number of the current line
        self.kept = b""  # beginning of the current line
        self.length = 0  # bytes of the current line so far
        self.cut = 0
        self.replaced = False
        self.more = False

    def take(self, part: bytes) -> None:
        # Lines before and after the page are only counted, at about a gigabyte a second.
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
            # The page is full and more data follows: there is no need to read a huge line to its end to know that.
            self.more = len(self.lines) >= self.most_lines and self.length > 0

    def _extend(self, beginning: bytes, length: int) -> None:
        self.length += length
        if self.number >= self.first and len(self.kept) < _LINE_BYTES:
            self.kept += beginning[: _LINE_BYTES - len(self.kept)]

    def _end_line(self) -> bool:
        """Finish the current line and tell whether the page is full."""
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
            text = f"{text[:LINE_CHARACTERS]}… [{counted(rest, 'more byte')} in this line]"
        size = len(text.encode()) + len(str(self.number)) + 2
        # A page has at least one line, so that the next page begins further on.
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
            # A character cut at the end of the kept bytes is not the file's fault.
            self.replaced = self.replaced or "\ufffd" in (text if whole else text[:-1])
            return text

    def close(self, ended: bool) -> TextPage:
        total = self.number - 1
        # A last line without a line end counts; nothing follows the last line end.
        if self.length:
            total += 1
            if not self.more and self.number >= self.first:
                self._show()
        return TextPage(tuple(self.lines), self.first, self.cut, self.replaced, total, self.more, ended)
