"""Read: show a page of a text file with line numbers, or an image.

The file's first bytes decide its kind. Directories, pipes and devices are refused at once, binary data with the name of its
kind. Invariants: memory is bounded whatever the size of the file. A page has at most 2,000 lines and 49,000 bytes and tells
how to continue, so that it always stays in the conversation. In a file that holds a result too large to show, long lines are
folded, so that pages reach all of it. The ReadState records what was shown, so that Edit and Write know it.

Facts: path, bytes (of the file), lines (shown), first, total (lines, if the file was read to its end), more; media_type for
an image.
"""

from __future__ import annotations

import codecs
import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from threading import Event
from typing import assert_never

from ..core.blocks import DIGEST_BYTES, Wire
from ..core.prompt_files import prompt_text
from ..disk.faults import AbsentIsFine, reporting
from ..disk.files import read_head
from ..disk.regular_file import open_regular
from ..language.wording import counted
from .file_kinds import HEAD_BYTES, BinaryKind, ImageKind, TextKind, detect_kind
from .paths import missing, resolve
from .read_state import MAX_DIGESTED, ReadRange, digest
from .tool import MAX_RESULT, STOPPED, Builtin, Context, ToolOutput, failure

# The page size that users of other agents know, if no limit is given.
PAGE_LINES = 2_000
# Room in the result for the notes after a page.
NOTE_BYTES = 1_000
# The largest page, with or without a limit: all of it stays in the conversation.
PAGE_BYTES = MAX_RESULT - NOTE_BYTES
# The API accepts images of at most 5 MB in base64, which turns three bytes into four.
IMAGE_BYTES = 5_000_000 * 3 // 4

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "file_path": {"type": "string", "minLength": 1, "description": "Absolute path of the file"},
        "offset": {"type": "integer", "minimum": 0, "description": "The number of the first line to read, from 1"},
        "limit": {"type": "integer", "minimum": 1, "description": "Number of lines to read"},
    },
    "required": ["file_path"],
}


def tool() -> Builtin:
    return Builtin(name="Read", description=prompt_text(__file__, "read"), schema=SCHEMA, read_only=True, act=_act)


def _act(arguments: Wire, context: Context) -> ToolOutput:
    path = resolve(arguments["file_path"], context.cwd)
    if os.path.isdir(path):
        return failure(f"{path} is a directory. List its files with Glob, then read one of them.", path=str(path))
    with AbsentIsFine(), reporting(path), open_regular(path) as file:
        fd = file.fileno()
        head = read_head(fd, HEAD_BYTES)
        os.lseek(fd, 0, os.SEEK_SET)
        match detect_kind(head):
            case TextKind() as text:
                return _text(path, fd, text, arguments, context)
            case ImageKind(media_type):
                data = read_head(fd, IMAGE_BYTES + 1)
                facts: Wire = {"path": str(path), "bytes": os.fstat(fd).st_size, "media_type": media_type}
                if len(data) > IMAGE_BYTES:
                    problem = f"{path} is an image of more than {IMAGE_BYTES:,} bytes. Make a smaller copy and read that."
                    return failure(problem, **facts)
                context.reads.note(path, ReadRange(digest(data), media_type=media_type))
                source = {"type": "base64", "media_type": media_type, "data": b64encode(data).decode("ascii")}
                return ToolOutput([{"type": "image", "source": source}], facts=facts)
            case BinaryKind(kind):
                problem = f"{path} is {kind} and can't be shown as text. Use a command that understands it."
                return failure(problem, path=str(path), bytes=os.fstat(fd).st_size)
            case other:
                assert_never(other)
    return failure(missing(path, context.cwd), path=str(path))


def _text(path: Path, fd: int, text: TextKind, arguments: Wire, context: Context) -> ToolOutput:
    size = os.fstat(fd).st_size
    small = size <= MAX_DIGESTED
    first = max(1, arguments.get("offset", 1))
    hashed = blake2b(digest_size=DIGEST_BYTES)
    lines = as_utf8(chunks(fd, context.abort, hashed.update, most=MAX_DIGESTED if small else None, bom=len(text.bom)), text.codec)
    # A result that was too large to show may be one line of any length.
    folded = FoldedLines(lines) if context.scratch is not None and path.parent == context.scratch else None
    page = read_page(
        lines if folded is None else folded,
        first=first,
        most_lines=arguments.get("limit", PAGE_LINES),
        most_bytes=PAGE_BYTES,
        to_the_end=small,
    )
    if context.abort.is_set():
        return failure(STOPPED)
    if not page.lines and first > 1:
        problem = f"{path} has {counted(page.total, 'line')}, so line {first:,} does not exist. Use a smaller offset."
        return failure(problem, path=str(path))
    range_read = ReadRange(hashed.digest() if small else b"", arguments.get("offset", 0), arguments.get("limit"))
    context.reads.note(path, range_read)
    facts: Wire = {"path": str(path), "bytes": size, "lines": len(page.lines), "first": first, "more": page.more}
    if page.ended:
        facts["total"] = page.total
    rows = [f"{number}\t{line}" for number, line in enumerate(page.lines, page.first)]
    notes = _notes(page, size, folded=folded is not None and folded.folds > 0)
    return ToolOutput("\n".join([*rows, *(f"[{note}]" for note in notes)]), facts=facts)


def _notes(page: TextPage, size: int, *, folded: bool) -> Iterator[str]:
    last = page.first + len(page.lines) - 1
    if not page.lines:
        yield "The file is empty."
    elif page.more:
        whole = f"of {page.total:,}" if page.ended else f"of a file of {size:,} bytes"
        lines = f"Lines {page.first:,} to {last:,}" if last > page.first else f"Line {last:,}"
        yield f"{lines} {whole}. Continue with offset={last + 1}."
    if folded:
        yield f"Lines longer than {LINE_CHARACTERS:,} bytes are folded, and each piece counts as a line."
    if page.cut:
        yield f"{counted(page.cut, 'line')} longer than {LINE_CHARACTERS:,} characters cut. Use Grep or a command to see the rest."
    if page.replaced:
        yield "Invalid UTF-8 bytes are shown as \ufffd; Edit leaves them as they are."


# A source line is under 200 characters; longer lines are data, whose beginning shows the kind.
LINE_CHARACTERS = 2_000
# A UTF-8 character has at most four bytes.
_LINE_BYTES = 4 * LINE_CHARACTERS + 1
_CHUNK = 1 << 20
# Where a line is folded, in bytes (never fewer than its characters). Up to three bytes of a character that would be split move
# to the next piece.
_PIECE = LINE_CHARACTERS


def chunks(
    fd: int, abort: Event, take: Callable[[bytes], None] = lambda chunk: None, *, most: int | None = None, bom: int = 0
) -> Iterator[bytes]:
    """Yield the rest of the file in chunks, without the byte order mark; `take` gets all of it. It ends early after `most` bytes, and when
    the call is aborted."""
    room = most
    while not abort.is_set() and (chunk := os.read(fd, _CHUNK if room is None else min(room, _CHUNK))):
        room = None if room is None else room - len(chunk)
        take(chunk)
        yield chunk[bom:]
        bom = 0


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
        carry = b""
        for part in self._parts:
            *lines, last = (carry + part).split(b"\n")
            if lines:
                yield b"".join(b"%b\n" % piece for line in lines for piece in self._pieces(line))
            *before, carry = self._pieces(last)
            if before:
                yield b"".join(b"%b\n" % piece for piece in before)
        yield carry

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


class TextPage:
    """A page, filled with the chunks of a file: the lines from number `first` on, up to a number of lines and bytes."""

    def __init__(self, first: int, most_lines: int, most_bytes: int) -> None:
        self.first = first
        self.most_lines = most_lines
        self.most_bytes = most_bytes
        self.lines = list[str]()  # as shown, without numbers and line ends
        self.total = 0  # number of lines read
        self.cut = 0  # number of lines cut for length
        self.replaced = False  # whether invalid UTF-8 bytes were replaced
        self.more = False  # whether further lines follow
        self.ended = False  # whether the end of the file was reached, so that `total` counts all lines
        self._number = 1  # number of the current line
        self._start = b""  # beginning of the current line
        self._length = 0  # bytes of the current line so far

    def take(self, part: bytes) -> None:
        # Lines before and after the page are only counted, at about a gigabyte a second.
        if self.more or (self._number < self.first and self._number + part.count(b"\n") < self.first):
            ends = part.count(b"\n")
            self._number += ends
            self._length = (self._length if not ends else 0) + len(part) - (part.rfind(b"\n") + 1)
            return
        start, full = 0, False
        while not full and (end := part.find(b"\n", start)) >= 0:
            self._extend(part[start : min(end, start + _LINE_BYTES)], end - start)
            full = self._number >= self.first and self._show()
            self._number += 1
            self._start, self._length = b"", 0
            start = end + 1
        if full:
            self._number += part.count(b"\n", start)
            self._length = len(part) - max(start, part.rfind(b"\n") + 1)
        else:
            self._extend(part[start : start + _LINE_BYTES], len(part) - start)
            # The page is full and more data follows: there is no need to read a huge line to its end to know that.
            self.more = len(self.lines) >= self.most_lines and self._length > 0

    def _extend(self, beginning: bytes, length: int) -> None:
        self._length += length
        if self._number >= self.first and len(self._start) < _LINE_BYTES:
            self._start += beginning[: _LINE_BYTES - len(self._start)]

    def _show(self) -> bool:
        """Add the current line, and return whether the page was full."""
        whole = self._length == len(self._start)
        line = self._start.removesuffix(b"\r") if whole else self._start
        try:
            text = line.decode()
        except UnicodeDecodeError:
            text = line.decode("utf-8", "replace")
            # A character cut at the end of the beginning is not the file's fault.
            self.replaced = self.replaced or "\ufffd" in (text if whole else text[:-1])
        cut = len(text) > LINE_CHARACTERS
        if cut:
            hidden = self._length - len(text[:LINE_CHARACTERS].encode())
            text = f"{text[:LINE_CHARACTERS]}… [{counted(hidden, 'more byte')} in this line]"
        size = len(text.encode()) + len(str(self._number)) + 2
        # A page has at least one line, so that the next page begins further on.
        if self.lines and (len(self.lines) >= self.most_lines or size > self.most_bytes):
            self.more = True
            return True
        self.most_bytes -= size
        self.lines.append(text)
        self.cut += cut
        return False

    def close(self, ended: bool) -> None:
        self.ended, self.total = ended, self._number - 1
        # A last line without a line end counts; nothing follows the last line end.
        if self._length:
            self.total += 1
            if not self.more and self._number >= self.first:
                self._show()


def read_page(parts: Iterable[bytes], *, first: int, most_lines: int, most_bytes: int, to_the_end: bool) -> TextPage:
    """Read the lines from number `first` on. With `to_the_end`, read on after the page to count the remaining lines."""
    page, ended = TextPage(first, most_lines, most_bytes), True
    for part in parts:
        page.take(part)
        if page.more and not to_the_end:
            ended = False
            break
    page.close(ended)
    return page
