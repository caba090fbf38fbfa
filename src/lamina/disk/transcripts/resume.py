"""Finds, from the end of a transcript, the offset where a resume may start. Earlier lines are not parsed, most not even read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from ...core.record_lines import read_record
from ...core.records import Boundary, Checkpoint, Record, Revoke
from .jsonl import decode_object, objects_in, raw_lines_back

# Marks a line with a message or attachment. Inside a text the quotes would be escaped, so this cannot match there.
_SPOKEN = re.compile(rb'"(?:message|attachment)"\s*:\s*\{')
_UUID = re.compile(rb'"uuid"\s*:\s*"([^"]+)"')
_PARENT = re.compile(rb'"parentUuid"\s*:\s*"([^"]+)"')
# The newest answer is within a few turns of the end.
MAX_LINES_BACK = 2_000


def find_resume_point(lines: Iterable[tuple[int, bytes]]) -> tuple[int, Checkpoint | None]:
    """Return where the live part of a transcript begins: at the last checkpoint, else at the last boundary, else at the start."""
    revoked: set[str] = set()
    boundary: Boundary | None = None
    kept: set[str] = set()
    rested_on: set[bytes] = set()
    for offset, line in lines:
        if boundary is None:
            if _SPOKEN.search(line) and (parent := _PARENT.search(line)):
                rested_on.add(parent[1])
            if not any(word in line for word in (b'"checkpoint"', b'"revoke"', b'"compact_boundary"')):
                continue
        for record in reversed(records_in(line)):
            match record:
                case Revoke():
                    revoked.add(record.target)
                case Checkpoint() if boundary is None and record.boundary not in revoked and record.start <= offset:
                    return record.start, record
                # A boundary counts only if a message follows it: the compaction may have crashed before writing one.
                case Boundary() if boundary is None and record.uuid not in revoked and record.uuid.encode() in rested_on:
                    boundary, kept = record, set(record.kept)
                case _:
                    kept.discard(record.uuid or "")
        if boundary is not None and not kept:
            return offset, None
    return 0, None


def find_offset(lines: Iterable[tuple[int, bytes]], uuids: set[str]) -> int:
    wanted = {uuid.encode() for uuid in uuids}
    for offset, line in lines:
        # One search per line, however many ids are wanted. Inside a text the quotes would be escaped, so this cannot match there.
        if not wanted.isdisjoint(_UUID.findall(line)):
            uuids.difference_update(record.uuid or "" for record in records_in(line))
        if not uuids:
            return offset
    return 0


def last_model(source: Path) -> str | None:
    """Return the model of the newest answer near the end of a transcript; None if there is no answer."""
    for _, line in islice(raw_lines_back(source), MAX_LINES_BACK):
        message = (decode_object(line) or {}).get("message") if b'"model"' in line else None
        model = message.get("model") if isinstance(message, dict) and message.get("role") == "assistant" else None
        if isinstance(model, str) and not model.startswith("<"):  # <synthetic>: no model answered
            return model
    return None


def records_in(line: bytes) -> list[Record]:
    return [read_record(value) for value in objects_in(line)]
