"""A session without a subject (B11): its transcript line by line, and the files beside it.

Decides only, in bounded memory however long the transcript is. Lines that do not hold the subject keep their bytes; a line that
holds it keeps its record, its ids and its tool pairs, and the texts in it are changed. What a resume needs follows: the byte
offsets in checkpoints move with the lines, and the digest and size of a spilled result become those of the file as it will be.
Of a damaged line the records in it stay.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...disk.transcripts.jsonl import objects_in
from ...disk.trees.rewrite import RawLine
from .redaction import cleaned, encoded, in_json, without
from .subject import Subject


class Spilled(NamedTuple):
    """What a result's file will be."""

    sha256: str
    size: int


class NewLine(NamedTuple):
    data: bytes
    places: int
    changed: bool


class _Shifts:
    """Old offsets of lines to new ones: only where the difference changes is noted."""

    def __init__(self) -> None:
        self._from = [0]
        self._by = [0]

    def note(self, old_end: int, grown: int) -> None:
        """What began at `old_end` or later moves by `grown` more."""
        if grown:
            self._from.append(old_end)
            self._by.append(self._by[-1] + grown)

    def moved(self, offset: int) -> int:
        return offset + self._by[bisect_right(self._from, offset) - 1]

    @property
    def any(self) -> bool:
        return len(self._from) > 1


def rewritten(lines: Iterable[RawLine], subject: Subject, spills: dict[str, Spilled]) -> Iterator[NewLine]:
    """The transcript as it will be; joined together the lines are the file."""
    shifts = _Shifts()
    for offset, data in lines:
        new = _line(data, subject, spills, shifts)
        shifts.note(offset + len(data), len(new.data) - len(data))
        yield new


def _line(data: bytes, subject: Subject, spills: dict[str, Spilled], shifts: _Shifts) -> NewLine:
    held = subject.holds(data.decode("utf-8", "surrogateescape"))
    bookkeeping = (shifts.any and b'"checkpoint"' in data) or (bool(spills) and b'"sha256"' in data)
    if not held and not bookkeeping:
        return NewLine(data, 0, False)
    values, whole = _values(data)
    places, changed, rows = 0, False, list[bytes]()
    for value in values:
        new = in_json(value, subject) if held else None
        moved = _follow(new.value if new is not None else value, spills, shifts)
        places += new.places if new is not None else 0
        changed = changed or moved or bool(new is not None and new.places)
        rows.append(encoded(new.value if new is not None else value))
    if not changed and (whole or not held):
        # It stands in an id or a number: the last look at everything names it.
        return NewLine(data, 0, False)
    return NewLine(b"".join(row + b"\n" for row in rows), places + (not whole), True)


class _Values(NamedTuple):
    values: list[dict[str, Any]]
    whole: bool  # whether they are all that stands in the line


def _values(data: bytes) -> _Values:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return _Values(objects_in(data), False)
    return _Values([value], True) if isinstance(value, dict) else _Values([], False)


def _follow(value: dict[str, Any], spills: dict[str, Spilled], shifts: _Shifts) -> bool:
    """Brings offsets and digests of our own records up to date; whether anything changed."""
    ours = value.get("lamina")
    inner = ours.get("data") if isinstance(ours, dict) else None
    if not isinstance(ours, dict) or not isinstance(inner, dict):
        return False
    if ours.get("kind") == "checkpoint" and isinstance(start := inner.get("start"), int) and shifts.moved(start) != start:
        inner["start"] = shifts.moved(start)
        return True
    return _follow_digests(inner, spills)


def _follow_digests(value: dict[str, Any], spills: dict[str, Spilled]) -> bool:
    """In a spill's own record and wherever it was told."""
    changed = False
    for inner in value.values():
        changed = (isinstance(inner, dict) and _follow_digests(inner, spills)) or changed
    found = spills.get(str(value.get("sha256")))
    if found is not None:
        value["sha256"] = found.sha256
        value.update({key: found.size for key in ("size", "bytes") if key in value})
    return changed or found is not None


class NewFile(NamedTuple):
    data: bytes
    places: int


def beside(path: Path, data: bytes, subject: Subject) -> NewFile | None:
    """A file beside the transcript as it will be: notes, a spilled result, anything; None where it does not hold the subject."""
    text = data.decode("utf-8", "surrogateescape")
    if not subject.holds(text) or b"\0" in data[:8_192]:
        return None
    if path.suffix == ".json":
        try:
            new = in_json(json.loads(text), subject, free=True)
        except (ValueError, RecursionError):
            new = None
        if new is not None and new.places:
            return NewFile(json.dumps(new.value, ensure_ascii=False, indent=2).encode("utf-8", "surrogateescape"), new.places)
    done = (without if path.suffix == ".md" else cleaned)(text, subject)
    return NewFile(done.text.encode("utf-8", "surrogateescape"), done.places)


def spilled(old: bytes, new: bytes) -> tuple[str, Spilled]:
    return hashlib.sha256(old).hexdigest(), Spilled(hashlib.sha256(new).hexdigest(), len(new))
