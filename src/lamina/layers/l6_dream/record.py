"""The record of a dream, kept while it runs and afterwards in `<memory>/.dreams/<id>/record.json`.

Owns the record's format and file, and the stop request next to it. Invariants: a record is replaced as a whole, so a reader sees the old
one or the new one; it is bounded, whatever a model writes; secrets are removed from the text of answers. What the dream changed is in the
journal, under the dream's id. Records of earlier versions have `before/` beside them, with the files as they were.

A crash at any line leaves the old or the new record.
"""

from __future__ import annotations

import os
import re
import time
from typing import Literal, TypeAlias

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError
from ...core.usage import Usage
from ...disk.temp_files import Durability
from ...disk.trees.rootdir import RootDir
from ...language.text import encodable
from ...memory.store.topic import INDEX

DIRECTORY = ".dreams"
# The number of answers shown for a dream.
MOST_TURNS = 30
# An answer's text is there to follow along, not to be read in full.
TURN_CHARS = 500
# A dream that touched more files names the first ones. The journal has them all.
MOST_NAMED = 1_000
# Thirty answers, and the names of all files in a large memory.
_RECORD_BYTES = 4 << 20
_ID = re.compile(r"\d{8}T\d{4}-[0-9a-f]{4}")

Status: TypeAlias = Literal["running", "completed", "failed", "killed", "undone"]
# "applying": memory changes, or has changed and the record does not say so yet; the next recovery undoes that. "undoing": an undo or redo
# is being made; the next recovery records whether it was.
Phase: TypeAlias = Literal["starting", "updating", "applying", "applied", "undoing"]


class DreamTurn(msgspec.Struct, frozen=True):
    text: str
    calls: int


class SkippedChange(msgspec.Struct, frozen=True):
    """A change that was not made, and the reason."""

    file: str
    why: str


class DreamRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a dream. While it runs, `files` are those touched in the copy; once applied, those changed in memory. `removed` and
    `merged` are deleted topic files, the latter with every fact kept elsewhere, `added` new ones. `waiting` are ids in the inbox. `undo` is
    the act of its undo."""

    id: str
    started: float
    pid: int
    by: Literal["session", "hand"]
    session: str | None = None
    ended: float | None = None
    status: Status = "running"
    phase: Phase = "starting"
    turns: tuple[DreamTurn, ...] = ()
    files: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    skipped: tuple[SkippedChange, ...] = ()
    index_lines: tuple[int, int] | None = (
        None  # its entries before and after; None until applied, and in records of older versions
    )
    asked: tuple[str, ...] = ()  # contradictions that the user was asked about, now or before
    why: str = ""
    undo: str = ""
    tokens: int = 0
    usage: Usage = Usage()  # the same by price class; empty in records of older versions
    cost: float = 0.0

    def written(self) -> tuple[list[str], list[str]]:
        """Return the topic files that the dream added, and those it changed."""
        files = [file for file in self.files if file not in (*self.removed, *self.merged, INDEX)]
        return [file for file in files if file in self.added], [file for file in files if file not in self.added]


def new_id(now: float) -> str:
    """Return an id that sorts by time to the minute, with a random part to keep two of one minute apart."""
    return f"{time.strftime('%Y%m%dT%H%M', time.gmtime(now))}-{os.urandom(2).hex()}"


def write_record(root: RootDir, record: DreamRecord) -> None:
    """Write the record. It survives a power loss from the phase on in which real memories change."""
    durability: Durability = "process" if record.phase in ("starting", "updating") else "full"
    root.replace(_path(record.id), msgspec.json.encode(record, enc_hook=encodable), durability=durability)


def read_record(root: RootDir, dream: str) -> DreamRecord | None:
    """Return the record, or None if it does not exist or cannot be read."""
    if not _ID.fullmatch(dream):
        return None
    try:
        data = root.read_bytes(_path(dream), _RECORD_BYTES)
        record = msgspec.json.decode(data or b"", type=DreamRecord)
    except (DiskError, *UNDECODABLE):
        return None
    return record if record.id == dream else None


def read_records(root: RootDir) -> list[DreamRecord]:
    """Return the records of all kept dreams, newest first. Invalid records are skipped."""
    records = (read_record(root, name) for name in dream_ids(root))
    # Sort by start time, since two ids of the same minute have no order.
    return sorted((record for record in records if record is not None), key=lambda record: (-record.started, record.id))


def dream_ids(root: RootDir) -> list[str]:
    """Return the ids of all dream directories, including those without a record."""
    return [entry.name for entry in root.listdir(DIRECTORY) if entry.is_dir and _ID.fullmatch(entry.name)]


def is_real(record: DreamRecord) -> bool:
    """Whether the dream changed memory or asked to, so that there is something to undo."""
    return record.phase not in ("starting", "updating") and bool(record.files or record.waiting)


def is_open(record: DreamRecord) -> bool:
    """Whether the dream is running, or was interrupted."""
    return record.status == "running" or record.phase == "undoing"


def request_kill(root: RootDir, dream: str) -> bool:
    """Ask a running dream to stop. Returns False if it is not running."""
    record = read_record(root, dream)
    if record is None or record.status != "running":
        return False
    root.replace(_stop(dream), b"", durability="process")
    return True


def is_kill_requested(root: RootDir, dream: str) -> bool:
    return root.stat(_stop(dream)) is not None


def dream_home(dream: str) -> str:
    """Return a dream's directory, relative to the memory directory."""
    return f"{DIRECTORY}/{dream}"


def _path(dream: str) -> str:
    return f"{dream_home(dream)}/record.json"


def _stop(dream: str) -> str:
    return f"{dream_home(dream)}/stop"
