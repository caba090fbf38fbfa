"""Remove a subject from a session (B11): from its transcript, line by line, and from its other files.

Computes the new content without writing it, in bounded memory for any transcript length. Lines without the subject keep their
bytes. A line with the subject keeps its record, ids and tool pairs; only its texts change. Everything a resume needs is
updated: byte offsets in checkpoints move with the lines, and the digest and size of a spilled result become those of its new
file. The records in a damaged line are kept.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...disk.transcripts.jsonl import objects_in
from ...disk.trees.rewrite import RawLine
from .redaction import RedactedValue, encoded, redact_json, redact_markdown, redact_text
from .subject import Subject


class SpillDigest(NamedTuple):
    """Digest and size of a spilled result's new file."""

    sha256: str
    size: int


class RedactedLine(NamedTuple):
    data: bytes
    places: int
    changed: bool


def redact_transcript(lines: Iterable[RawLine], subject: Subject, spills: dict[str, SpillDigest]) -> Iterator[RedactedLine]:
    """Yield the lines of the new transcript."""
    # Map old line offsets to new ones, recording only the points where the shift changes.
    starts, shifts = [0], [0]

    def moved(offset: int) -> int:
        return offset + shifts[bisect_right(starts, offset) - 1]

    for offset, data in lines:
        new = _line(data, subject, spills, moved if len(starts) > 1 else None)
        if grown := len(new.data) - len(data):
            starts.append(offset + len(data))
            shifts.append(shifts[-1] + grown)
        yield new


def _line(data: bytes, subject: Subject, spills: dict[str, SpillDigest], moved: Callable[[int], int] | None) -> RedactedLine:
    held = subject.holds(data.decode("utf-8", "surrogateescape"))
    bookkeeping = (moved is not None and b'"checkpoint"' in data) or (bool(spills) and b'"sha256"' in data)
    if not held and not bookkeeping:
        return RedactedLine(data, 0, False)
    values, whole = _values(data)
    places, changed, rows = 0, False, list[bytes]()
    for value in values:
        new = redact_json(value, subject) if held else RedactedValue(value, 0)
        changed = _follow(new.value, spills, moved) or changed or bool(new.places)
        places += new.places
        rows.append(encoded(new.value))
    if not changed and (whole or not held):
        # The subject is in an id or a number, so leave it; the final check reports it.
        return RedactedLine(data, 0, False)
    return RedactedLine(b"".join(row + b"\n" for row in rows), places + (not whole), True)


def _values(data: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the records of a line, and whether the line has nothing else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return objects_in(data), False
    return ([value], True) if isinstance(value, dict) else ([], False)


def _follow(value: dict[str, Any], spills: dict[str, SpillDigest], moved: Callable[[int], int] | None) -> bool:
    """Update the offsets and digests in Lamina's own records; return whether anything changed."""
    ours = value.get("lamina")
    inner = ours.get("data") if isinstance(ours, dict) else None
    if not isinstance(ours, dict) or not isinstance(inner, dict):
        return False
    start = inner.get("start")
    if moved is not None and ours.get("kind") == "checkpoint" and isinstance(start, int) and moved(start) != start:
        inner["start"] = moved(start)
        return True
    return _follow_digests(inner, spills)


def _follow_digests(value: dict[str, Any], spills: dict[str, SpillDigest]) -> bool:
    """Update digests in a spill's own record and wherever it is mentioned."""
    changed = False
    for inner in value.values():
        changed = (isinstance(inner, dict) and _follow_digests(inner, spills)) or changed
    found = spills.get(str(value.get("sha256")))
    if found is not None:
        value["sha256"] = found.sha256
        value.update({key: found.size for key in ("size", "bytes") if key in value})
    return changed or found is not None


def redact_file(path: Path, data: bytes, subject: Subject) -> RedactedValue[bytes] | None:
    """Return the new content of a session's other file (notes, spilled results); None if it does not contain the subject."""
    text = data.decode("utf-8", "surrogateescape")
    if not subject.holds(text) or b"\0" in data[:8_192]:
        return None
    done = (redact_markdown if path.suffix == ".md" else redact_text)(text, subject)
    if path.suffix == ".json":
        with suppress(ValueError, RecursionError):
            new = redact_json(json.loads(text), subject, free=True)
            done = RedactedValue(json.dumps(new.value, ensure_ascii=False, indent=2), new.places) if new.places else done
    return RedactedValue(done.value.encode("utf-8", "surrogateescape"), done.places)


def spill_digests(old: bytes, new: bytes) -> dict[str, SpillDigest]:
    """Map the old digest of a spilled result to the digest and size of its new file."""
    return {hashlib.sha256(old).hexdigest(): SpillDigest(hashlib.sha256(new).hexdigest(), len(new))}
