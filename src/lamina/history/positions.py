"""Records of a session with their places in its file, so that a part of a large session can be read without the rest.

A place is the offset of a line, with what a reader of that format must know of the lines before. Reading from a place gives the same
records, with the same ids, as reading the whole file. Lines of the base of a Codex session have negative offsets. Read-only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from ..core.record_lines import read_record
from ..core.records import Record
from ..disk.regular_file import open_regular
from ..disk.transcripts.jsonl import MAX_LINE, Health, decode_object, parse_line, raw_lines
from .claude_code import with_spills
from .codex import CodexReader
from .pi import PiReader
from .places import Origin
from .rollout_lines import BEGINNING, rollout_lines
from .sessions import format_of
from .trail import Trail

CHUNK = 64 << 10


class LinePosition(NamedTuple):
    """The start of a line: its offset, how many records came before it, the last of them, the model and window that they name, and the
    trail of the conversation up to it."""

    offset: int = 0
    before: int = 0
    last: str | None = None
    model: str | None = None
    window: int = 0
    trail: Trail = Trail()


START = LinePosition(BEGINNING)


class Placed(NamedTuple):
    place: LinePosition
    record: Record


def read_placed(
    path: str | os.PathLike[str],
    start: LinePosition = START,
    end: int | None = None,
    *,
    health: Health | None = None,
    format: Origin | None = None,
) -> Iterator[Placed]:
    """Read the records from a place on, up to the line at offset `end`. `format` is that of the file, if it is known already."""
    where, health = Path(path), health or Health()
    format = format or format_of(where)
    lines = session_lines(where, start.offset, end, format=format, health=health)
    match format:
        case "codex":
            return _follow(CodexReader(*start[1:]), lines, start, health)
        case "pi":
            return _follow(PiReader(start.before, start.last), lines, start, health)
        case _:
            return _lines(where, lines, health)


def session_lines(
    path: Path, start: int, end: int | None, *, format: Origin, health: Health | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines between two offsets, with their offsets."""
    health = health or Health()
    lines = rollout_lines(path, start, health) if format == "codex" else raw_lines(path, max(0, start), health)
    return takewhile(lambda line: end is None or line[0] < end, lines)


def _lines(path: Path, lines: Iterable[tuple[int, bytes]], health: Health) -> Iterator[Placed]:
    beside = path.with_suffix("")
    for offset, raw in lines:
        records = (read_record(line.value) for line in parse_line(offset, raw, health))
        yield from (Placed(LinePosition(offset), record) for record in with_spills(records, beside))


def _follow(
    reader: CodexReader | PiReader, lines: Iterable[tuple[int, bytes]], start: LinePosition, health: Health
) -> Iterator[Placed]:
    place = start
    for offset, raw in lines:
        place = LinePosition(offset, *reader.state)
        yield from (Placed(place, record) for record in reader.add_line(offset, raw, health))
    yield from (Placed(place, record) for record in reader.finish())


def complete_end(path: str | os.PathLike[str]) -> int:
    """Return the end of the last complete line. A last line without an end counts if it is whole."""
    with open_regular(path) as file:
        size = at = file.seek(0, os.SEEK_END)
        tail = b""
        while at and b"\n" not in tail and len(tail) <= MAX_LINE:
            step = min(CHUNK, at)
            at = file.seek(at - step)
            tail = file.read(step) + tail
    last = tail.rpartition(b"\n")[2]
    return size if decode_object(last) is not None else size - len(last)
