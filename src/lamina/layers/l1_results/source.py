"""Read a tool result of any type as chunks of bytes, in bounded memory.

A `Tape` yields the chunks once and remembers the first of them. They serve the preview, and they can still be shown if the disk
fails halfway through a stream that cannot be read twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, assert_never, runtime_checkable

import msgspec

from ...core.blocks import Wire, scrub
from ...core.decoding import UNDECODABLE
from ...core.errors import InputError

CHUNK = 1 << 20
# A character of UTF-8 has at most four bytes.
BYTES_PER_CHARACTER = 4
# JSON is validated at about 300 MB per second. For larger texts the first and last bracket are enough to choose a file suffix.
_CHECKED_JSON = 8 << 20
# Allowed white space before the first bracket and after the last.
_ENDS = 100
# Types of content blocks in a result. A list with other types is the tool's data, which happens to have a field `type`.
PARTS = ("text", "image", "document", "search_result", "tool_reference")


@runtime_checkable
class Readable(Protocol):
    """An open file, pipe or response. The caller who opened it must close it."""

    def read(self, size: int, /) -> Any: ...


# The output of a tool before Lamina decides whether it may stay in the conversation: content, or unread bytes and streams.
Output: TypeAlias = str | list[Wire] | memoryview | Readable


def result_output(output: object) -> Output:
    """Return a tool's output without copying it: text, content blocks, bytes, or an open file, pipe or response.

    A `Path` is converted to text like any other value. To pass the content of a file, open it.
    """
    match output:
        case str():
            return output
        case None:
            return ""
        case bytes() | bytearray() | memoryview():
            view = memoryview(output)
            return view.cast("B") if view.contiguous else memoryview(view.tobytes())
        case Readable():
            return output
        case _:
            if isinstance(output, Sequence) and output and all(map(_is_part, output)):
                return [dict(part) for part in output]
            try:
                return msgspec.json.encode(scrub(output)).decode()
            except (TypeError, ValueError, RecursionError):
                return str(output)


def _is_part(part: object) -> bool:
    if not isinstance(part, Mapping) or part.get("type") not in PARTS:
        return False
    return part["type"] != "text" or isinstance(part.get("text"), str)


class Tape:
    def __init__(self, parts: Iterator[bytes | memoryview], keep: int, text: str | None = None) -> None:
        """`text` is the source, if it is a text that is in memory anyway."""
        self._parts = parts
        self._keep = keep
        self._text = text
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

    @property
    def whole(self) -> bool:
        """Whether `wind` returns the complete result."""
        return self._text is not None or (self.ended and self.size == len(self.head))

    def wind(self) -> str:
        """Return all of a text, or read on until the head is complete and return it."""
        if self._text is not None:
            return encoded(self._text).decode()
        if not self.ended and len(self.head) < self._keep:
            for _ in self:
                if len(self.head) >= self._keep:
                    break
        return self.head.decode("utf-8", "replace")


class RereadStream:
    """A stream that remembers its beginning. What was read of it is still there if the layer fails."""

    def __init__(self, stream: Readable, *, keep: int) -> None:
        self._stream, self._keep, self._head = stream, keep, bytearray()
        self.name = getattr(stream, "name", "")

    def read(self, size: int, /) -> bytes:
        part = read_from(self._stream, size)
        self._head += part[: max(0, self._keep - len(self._head))]
        return part

    def beginning(self) -> str:
        while len(self._head) < self._keep and self.read(CHUNK):
            pass
        return self._head.decode("utf-8", "replace")


def whole_text(source: str | memoryview | RereadStream) -> str:
    """Return all of a result as text, or the beginning of a stream."""
    match source:
        case str():
            return source
        case memoryview():
            return str(source, "utf-8", "replace")
        case RereadStream():
            return source.beginning()
        case _:
            assert_never(source)


def tape_of(source: str | memoryview | Readable, *, keep: int, before: bytes = b"") -> Tape:
    """Return a tape of `source`. `before` holds the bytes already read from a stream."""
    return Tape(pieces(source, before), keep, source if isinstance(source, str) else None)


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
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot encode
        data: bytes = scrub(text).encode()
        return data


def read_from(stream: Readable, size: int) -> bytes:
    """Return the next chunk of a file or pipe; text is encoded. Closing the stream is up to its owner."""
    try:
        part = stream.read(size)
    except (OSError, ValueError) as error:  # ValueError: the stream is closed, or its text cannot be decoded
        raise InputError("tool result", f"reading its stream failed ({error})", "pass an open, readable stream") from error
    if isinstance(part, str):
        return encoded(part)
    if part is None or not isinstance(part, bytes | bytearray | memoryview):
        raise InputError(
            "tool result", f"its stream returned {type(part).__name__}", "pass a blocking stream that returns bytes or text"
        )
    return bytes(part)


def read_small(source: str | memoryview | Readable, limit: int | None) -> str | bytes:
    """Return the text if it has at most `limit` characters; None means no limit.

    A longer source returns bytes instead: those already read from a stream, or none if the source can be read again."""
    match source:
        case str():
            return source if limit is None or len(source) <= limit else b""
        case memoryview():
            if limit is not None and len(source) > limit * BYTES_PER_CHARACTER:
                return b""
            text = str(source, "utf-8", "replace")
            return text if limit is None or len(text) <= limit else b""
        case Readable():
            data = bytearray()
            while part := read_from(source, CHUNK):
                data += part
                if limit is not None and len(data) > limit * BYTES_PER_CHARACTER:
                    return bytes(data)
            text = data.decode("utf-8", "replace")
            return text if limit is None or len(text) <= limit else bytes(data)
        case _:
            assert_never(source)


def is_json(source: str | memoryview | Readable) -> bool:
    """Return whether the result's file gets the suffix .json. A stream is judged by its name alone, since it can be read only
    once."""
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
    if len(source) > _CHECKED_JSON:
        return True
    try:
        msgspec.json.decode(source, type=msgspec.Raw)
    except UNDECODABLE:
        return False
    return True
