"""Reads JSONL files that may be damaged, forwards or backwards, in bounded memory.

Invariant: every intact JSON object in the file is found, whatever surrounds it; damage is counted by kind in `Health`. Nothing
here writes: a damaged file is left as it is.

The kinds of damage were seen in practice: a torn last line, a torn line with the next record glued to it, two records on one
line, blocks of NUL after a power loss, a byte-order mark, CRLF, invalid UTF-8, and lines that are not objects.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from ...core.blocks import scrub
from ...core.decoding import UNDECODABLE
from ...language.text import SENTENCES, Text, joined
from ..faults import reporting
from ..regular_file import open_regular

CHUNK = 1 << 20
# A longer line is skipped without being held in memory: no record of ours comes near it, and memory must stay bounded.
MAX_LINE = 64 << 20
# Fields that records have, and objects nested in them do not: those of Lamina and Claude Code, and of Codex and pi.
RECORD_MARKS = ("sessionId", "parentUuid")
ANY_MARKS = (*RECORD_MARKS, "payload", "parentId")
# Limits for one damaged line: failed attempts to find an object, and characters read in all. Each attempt may read the whole
# rest.
MAX_TRIES = 64
MAX_TRIED = 256 << 20
# Damaged lines whose numbers are kept.
MOST_LOST = 20

BOM = b"\xef\xbb\xbf"


class JsonLine(msgspec.Struct, frozen=True):
    offset: int
    value: dict[str, Any]


class Health:
    """The damage found in a file, by kind. `skipped` counts lines, or parts of lines, without a readable record.

    `lines` counts the lines that were read, and `lost` has the numbers of the first damaged ones, from 1. `missing` names another file
    that the session needs.
    """

    def __init__(self) -> None:
        self.skipped = 0
        self.kinds: dict[str, int] = {}
        self.lines = 0
        self.lost: list[int] = []
        self.missing = ""  # the session whose file held the beginning of this one

    def note(self, kind: str, *, lost: bool) -> None:
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.skipped += lost
        if lost and len(self.lost) < MOST_LOST:
            self.lost.append(self.lines + 1)

    def sentence(self, path: str) -> str | None:
        """Return a message for the user, or None if nothing was lost."""
        told: list[str] = []
        if self.missing:
            form = Text("{path}: this session continues {missing}, which is missing or cut short. The rest is shown.")
            told.append(Text(form, path=path, missing=self.missing))
        if self.skipped:
            form = Text(
                "{path}: {n} line could not be read and was skipped ({kinds}). All other records are loaded."
                "|{path}: {n} lines could not be read and were skipped ({kinds}). All other records are loaded."
            )
            kinds = joined(
                Text("{count} {kind}", count=count, kind=Text.whole(kind)) for kind, count in sorted(self.kinds.items())
            )
            told.append(Text(form, path=path, n=self.skipped, kinds=kinds))
        return joined(told, SENTENCES) if told else None


def decode_object(data: bytes) -> dict[str, Any] | None:
    """Decode a JSON object; returns None for anything else."""
    try:
        value = msgspec.json.decode(data)
    except UNDECODABLE:
        return None
    return value if isinstance(value, dict) else None


def read_lines(path: str | os.PathLike[str], *, start: int = 0, health: Health | None = None) -> Iterator[JsonLine]:
    """Read every object from byte `start` on, with the offset of its line."""
    health = health or Health()
    for offset, raw in raw_lines(path, start, health):
        yield from parse_line(offset, raw, health)


def objects_in(raw: bytes) -> list[dict[str, Any]]:
    """Return the objects in one line of bytes."""
    return [line.value for line in parse_line(0, raw, Health())]


def whole_objects(offset: int, raw: bytes, health: Health) -> Iterator[dict[str, Any]]:
    """Yield the records of any agent in one line, also in a damaged one, without lone surrogates; note damage in `health`."""
    value = decode_object(raw)
    if value is not None:
        yield value
    else:
        yield from (scrub(line.value) for line in parse_line(offset, raw, health, ANY_MARKS))


def raw_lines_back(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Read the lines as bytes, last first, so that a caller looking for one kind need not parse the others."""
    with reporting(path), open_regular(path) as file:
        offset = file.seek(0, os.SEEK_END)
        pieces: list[bytes] = []  # pieces of the line that started before the current chunk, last piece first
        size_of_pieces = 0
        while offset > 0:
            size = min(CHUNK, offset)
            offset -= size
            file.seek(offset)
            chunk = file.read(size)
            stop = len(chunk)
            while (newline := chunk.rfind(b"\n", 0, stop)) >= 0:
                if size_of_pieces + stop - newline - 1 <= MAX_LINE:
                    yield offset + newline + 1, chunk[newline + 1 : stop] + b"".join(reversed(pieces))
                pieces, size_of_pieces, stop = [], 0, newline
            size_of_pieces += stop
            if size_of_pieces <= MAX_LINE:
                pieces.append(chunk[:stop])
            else:
                pieces = []
        if pieces:
            yield 0, b"".join(reversed(pieces))


def raw_lines(path: str | os.PathLike[str], start: int, health: Health) -> Iterator[tuple[int, bytes]]:
    """Read the lines as bytes, with their offsets. Lines that are too long are skipped."""
    with reporting(path), open_regular(path) as file:
        file.seek(start)
        offset = start
        while line := file.readline(MAX_LINE + 1):
            if len(line) > MAX_LINE and not line.endswith(b"\n"):
                health.note("too long", lost=True)
                offset += len(line)
                while piece := file.readline(CHUNK):
                    offset += len(piece)
                    if piece.endswith(b"\n"):
                        break
            else:
                yield offset, line
                offset += len(line)
            health.lines += 1


def parse_line(offset: int, raw: bytes, health: Health, marks: Collection[str] = RECORD_MARKS) -> Iterator[JsonLine]:
    """Yield the objects in one line and note damage in `health`. `marks` tell a record in a damaged line from what is nested in one."""
    line = raw.strip(b" \t\r\n").removeprefix(BOM)
    if not line:
        return
    try:
        value = msgspec.json.decode(line)
    except UNDECODABLE:
        yield from _rescue(offset, line, health, marks)
        return
    if isinstance(value, dict):
        yield JsonLine(offset, value)
    else:
        health.note("no object", lost=True)


def _rescue(offset: int, line: bytes, health: Health, marks: Collection[str]) -> Iterator[JsonLine]:
    """Yield the objects inside a line that as a whole is not valid JSON."""
    import json  # for damaged lines only

    if b"\0" in line:
        health.note("NUL bytes", lost=False)
        # JSON strings cannot contain a raw newline, so the parts around a hole stay separate.
        line = line.replace(b"\0", b"\n")
    text = line.decode("utf-8", "replace")
    if "\ufffd" in text:
        health.note("not UTF-8", lost=False)
    decoder = json.JSONDecoder()
    records = 0
    lost = False
    position = 0
    tries = max(MAX_TRIES, MAX_TRIED // len(text))
    while tries and (begin := text.find('{"', position)) >= 0:
        try:
            value, stop = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            position, lost = begin + 1, True
            tries -= 1
            continue
        lost = lost or bool(text[position:begin].strip())
        # An object inside a torn record is part of it. Only a record names its session or its parent.
        if isinstance(value, dict) and isinstance(value.get("type"), str) and any(mark in value for mark in marks):
            records += 1
            yield JsonLine(offset, value)
        position = stop
    if text[position:].strip() or not records:
        lost = True
    if lost:
        health.note("torn" if records or text.startswith("{") else "not JSON", lost=True)
    elif records > 1:
        health.note("glued", lost=False)
