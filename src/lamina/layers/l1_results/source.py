"""A result as pieces of bytes, whatever it was given as, in bounded memory.

A `Tape` hands the pieces on once and remembers the first of them: for the preview, and for what can still be shown when the disk
fails half way through a stream that cannot be read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import msgspec

from ...core.blocks import scrub
from ...core.errors import InputError
from ...core.inputs import Readable

CHUNK = 1 << 20
# A character of UTF-8 has at most four bytes.
BYTES_PER_CHARACTER = 4
# Checking JSON goes at 300 MB a second; of a larger text its two ends tell enough for the name of a file.
_CHECKED_JSON = 8 << 20
# White space before the first bracket and behind the last.
_ENDS = 100


class Tape:
    def __init__(self, parts: Iterator[bytes | memoryview], keep: int) -> None:
        self._parts = parts
        self._keep = keep
        self.head = b""
        self.size = 0
        self.ended = False

    def __iter__(self) -> Iterator[bytes | memoryview]:
        for part in self._parts:
            if len(self.head) < self._keep:
                self.head += part[: self._keep - len(self.head)]
            self.size += len(part)
            yield part
        self.ended = True

    def wind(self) -> str:
        """On to the end of what is remembered, and that as text."""
        if not self.ended and len(self.head) < self._keep:
            for _ in self:
                if len(self.head) >= self._keep:
                    break
        return self.head.decode("utf-8", "replace")


def tape_of(source: str | memoryview | Readable, *, keep: int, before: bytes = b"") -> Tape:
    """`before` was read of a stream already."""
    return Tape(pieces(source, before), keep)


def pieces(source: str | memoryview | Readable, before: bytes = b"") -> Iterator[bytes | memoryview]:
    if before:
        yield before
    match source:
        case str():
            for start in range(0, len(source), CHUNK):
                yield encoded(source[start : start + CHUNK])
        case memoryview():
            for start in range(0, len(source), CHUNK):
                yield source[start : start + CHUNK]
        case Readable():
            while part := read_from(source, CHUNK):
                yield part
        case _:
            assert_never(source)


def encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which no UTF-8 text can carry
        data: bytes = scrub(text).encode()
        return data


def read_from(stream: Readable, size: int) -> bytes:
    """The next piece of a file or pipe; text is encoded. Its owner closes it."""
    try:
        part = stream.read(size)
    except (OSError, ValueError) as error:  # ValueError: it is closed, or holds no text in its encoding
        raise InputError(
            "tool result", f"the stream it is read from failed ({error})", "hand over a stream that is open"
        ) from error
    if isinstance(part, str):
        return encoded(part)
    if part is None or not isinstance(part, bytes | bytearray | memoryview):
        raise InputError(
            "tool result", f"its stream gave {type(part).__name__}", "open it for reading, blocking, as bytes or text"
        )
    return bytes(part)


def read_small(source: str | memoryview | Readable, limit: int | None) -> str | bytes:
    """The text, where it has at most `limit` characters (None: however many it has); else, as bytes, what had to be read of a
    stream to know that it is longer, and nothing of what can be read again."""
    match source:
        case str():
            return source if limit is None or len(source) <= limit else b""
        case memoryview():
            if limit is not None and len(source) > limit * BYTES_PER_CHARACTER:
                return b""
            text = str(source, "utf-8", "replace")
            return text if limit is None or len(text) <= limit else b""
        case Readable():
            return _read_small(source, limit)
        case _:
            assert_never(source)


def _read_small(stream: Readable, limit: int | None) -> str | bytes:
    read = bytearray()
    while part := read_from(stream, CHUNK):
        read += part
        if limit is not None and len(read) > limit * BYTES_PER_CHARACTER:
            return bytes(read)
    text = read.decode("utf-8", "replace")
    return text if limit is None or len(text) <= limit else bytes(read)


def is_json(source: str | memoryview | Readable) -> bool:
    """Whether its file is named .json. A stream is not looked into: it has a name of its own, or none."""
    match source:
        case str():
            first, last = source[:_ENDS].lstrip()[:1], source[-_ENDS:].rstrip()[-1:]
        case memoryview():
            first = bytes(source[:_ENDS]).lstrip()[:1].decode("latin-1")
            last = bytes(source[-_ENDS:]).rstrip()[-1:].decode("latin-1")
        case Readable():
            return str(getattr(source, "name", "")).endswith(".json")
        case _:
            assert_never(source)
    if (first, last) not in (("{", "}"), ("[", "]")):
        return False
    return len(source) > _CHECKED_JSON or _parses(source)


def _parses(source: str | memoryview) -> bool:
    try:
        msgspec.json.decode(source, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True
