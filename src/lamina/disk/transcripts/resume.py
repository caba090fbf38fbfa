"""Finds, from the end of a transcript, the offset where a resume may start. Earlier lines are not parsed, most not even read.

A transcript grows without limit if it is never compacted. No window holds more than a few megabytes of it, so of one that is too large to
load only the end is loaded: `read_head` finds where to cut it, and reads what must be known of the part before the cut. This work does not
depend on the size of the file, except for one search for the prompt and the pins, which parses no other lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import dropwhile, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from ...core.blocks import Text, ToolResult
from ...core.record_lines import read_record
from ...core.records import Boundary, Checkpoint, Message, Pin, Record, Revoke, Snapshot
from .jsonl import decode_object, objects_in, raw_lines_back

# Marks a line with a message or attachment. Inside a text the quotes would be escaped, so this cannot match there.
_SPOKEN = re.compile(rb'"(?:message|attachment)"\s*:\s*\{')
_UUID = re.compile(rb'"uuid"\s*:\s*"([^"]+)"')
_PARENT = re.compile(rb'"parentUuid"\s*:\s*"([^"]+)"')
# The newest answer is within a few turns of the end.
MAX_LINES_BACK = 2_000
# More than this is never loaded at once. A request holds at most 32 MB, and a record takes about three times its size in memory.
MAX_LIVE = 48 << 20
# A whole transcript of this size may be loaded if the user asks for a change in its compacted part.
MAX_WHOLE = 256 << 20
# Bytes of the end that are kept: more than a window of a million tokens holds.
TAIL = 8 << 20
MOST_TAILS = 4
# Bytes before the cut that are read for the summary.
NEAR = 4 << 20
# Looking for the first message stops after so many records: a transcript starts with few that are not messages.
MOST_FIRST = 1_000
# Marks lines with state that outlives the cut.
_STATE = re.compile(rb'"kind"\s*:\s*"(?:snapshot|pin|revoke|checkpoint)"')


class RecordSource(Protocol):
    """A source of records that can be read from both ends: a store, or a file that another process may be writing."""

    def lines_back(self) -> Iterator[tuple[int, bytes]]: ...

    def read(self, start: int = 0) -> Iterator[Record]: ...


def find_resume_point(lines: Iterable[tuple[int, bytes]]) -> tuple[int, Checkpoint | None]:
    """Return where the live part of a transcript begins: at the last checkpoint, else at the last boundary, else at the start."""
    revoked: set[str] = set()
    boundary: Boundary | None = None
    missing: set[str] = set()
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
                    boundary, missing = record, set(record.kept)
                case _:
                    missing.discard(record.uuid or "")
        if boundary is not None and not missing:
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


class TranscriptHead(NamedTuple):
    """The part of a transcript before the cut."""

    cut: int  # its size in bytes, and the offset where the loaded part starts
    state: dict[str, Any]  # the prompt and the pins, as in a checkpoint
    first: Message | None  # the first user message
    near: tuple[Record, ...]  # the records right before the cut


def read_head(source: RecordSource) -> TranscriptHead:
    """Cut the transcript and read what must be known of the part before the cut."""
    cut = find_cut(source.lines_back())
    records = (record for record, _ in zip(source.read(0), range(MOST_FIRST), strict=False))
    first = next((record for record in records if isinstance(record, Message) and _is_prompt(record)), None)
    # The records right before the cut; before those, only state counts, back to the last checkpoint.
    near: list[Record] = []
    state = _State()
    for offset, line in dropwhile(lambda line: line[0] >= cut, source.lines_back()):
        close = cut - offset <= NEAR
        if not close and state.complete:
            break
        if close or _STATE.search(line):
            for record in reversed(records_in(line)):
                state.take(record)
                if close:
                    near.append(record)
    return TranscriptHead(cut, state.as_checkpoint(), first, tuple(reversed(near)))


def find_cut(lines: Iterable[tuple[int, bytes]]) -> int:
    """Return the offset of a user message with at least TAIL bytes after it, so that no call is separated from its result.

    If there is none within a few times as many bytes, the cut is made anywhere; the view of the log is valid even then.
    """
    end: int | None = None
    offset = 0
    for offset, line in lines:
        end = offset + len(line) if end is None else end
        size = end - offset
        if size >= MOST_TAILS * TAIL or (size >= TAIL and any(_is_prompt(record) for record in records_in(line))):
            return offset
    return offset


def _is_prompt(record: Record) -> bool:
    """Return whether a record is a message that the user wrote."""
    if not isinstance(record, Message) or record.role != "user" or record.meta or record.sidechain or record.summary:
        return False
    return any(isinstance(block, Text) for block in record.blocks) and not any(
        isinstance(block, ToolResult) for block in record.blocks
    )


class _State:
    """The state before a point, collected from the newest record back."""

    def __init__(self) -> None:
        self.complete = False
        self._older: dict[str, Any] = {}
        self._snapshot: Snapshot | None = None
        self._pins: list[Pin] = []
        self._revoked: set[str] = set()

    def take(self, record: Record) -> None:
        if self.complete:
            return
        match record:
            case Snapshot():
                self._snapshot = self._snapshot or record
            case Pin():
                self._pins.append(record)
            case Revoke():
                self._revoked.add(record.target)
            case Checkpoint() if record.boundary not in self._revoked:
                self._older, self.complete = record.state, True
            case _:
                pass

    def as_checkpoint(self) -> dict[str, Any]:
        """Return the state in the form of a checkpoint. The count is left out, because it measured another view."""
        older = {name: value for name, value in self._older.items() if name != "count"}
        pins = [msgspec.to_builtins(pin) for pin in reversed(self._pins)]
        snapshot = msgspec.to_builtins(self._snapshot) if self._snapshot is not None else older.get("snapshot")
        before = [pin for pin in older.get("pins") or () if isinstance(pin, dict)]
        in_force = [pin for pin in (*before, *pins) if pin.get("uuid") not in self._revoked]
        return {**older, "pins": in_force, "replaced": older.get("replaced") or {}, "snapshot": snapshot}
