"""Doing what was decided: a result goes to its file, and its preview is made of what was written.

The file is whole and has its name before anybody is told of it: a crash at any line leaves a file nobody refers to, never a preview
of a file that is not there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from lamina.disk.faults import reporting
from lamina.disk.files import read_head
from lamina.disk.spills import Written, open_result, take_over, write_spill
from lamina.disk.temp_files import Durability

from .preview import head_of, persisted
from .source import CHUNK, Tape

# Looking for secrets takes about half a millisecond a kilobyte; what is behind this much is not looked at.
SCANNED = 16 << 10


class Room(NamedTuple):
    """What a preview may take."""

    characters: int
    bytes: int


class Spilled(NamedTuple):
    path: str
    size: int
    sha256: str
    preview: str
    secrets: tuple[str, ...]  # kinds of secrets that were seen in it; it is kept as it is, in a private file


def spill(session: Path, tool_use_id: str, tape: Tape, *, json: bool, preview: Room, durability: Durability) -> Spilled:
    """DiskError: nothing was written, and the tape still has the beginning."""
    written = write_spill(session, tool_use_id, tape, suffix=".json" if json else ".txt", durability=durability)
    return _spilled(written, tape.head, preview)


def adopt(session: Path, tool_use_id: str, file: str, *, preview: Room) -> Spilled:
    """What a program printed lies in a file of the session already."""
    written = take_over(session, tool_use_id, file)
    fd = open_result(written.path)
    try:
        with reporting(written.path):
            head = read_head(fd, CHUNK)
    finally:
        os.close(fd)
    return _spilled(written, head, preview)


def _spilled(written: Written, head: bytes, preview: Room) -> Spilled:
    beginning = head_of(head, preview.characters, whole=len(head) == written.size)
    path = os.fspath(written.path)
    shown = persisted(beginning, most=preview.characters, most_bytes=preview.bytes, size=written.size, path=path)
    return Spilled(path, written.size, written.sha256, shown, _secrets(head))


def _secrets(head: bytes) -> tuple[str, ...]:
    from lamina.memory.store.secrets import redact  # only a session that spills pays for the table of forms

    return redact(head[:SCANNED].decode("utf-8", "replace")).kinds
