"""What is kept of a dream: one record while it runs and after it, in `<memory>/.dreams/<id>/record.json` (D4, B4).

Owns the record's form and file, and the request to stop beside it. Invariants: a record is replaced as a whole, so whoever watches
reads the old one or the new one; it is bounded, whatever a model says; secrets are taken out of what a turn said. Before the first
file of memory changes, the record names every one that will, with its bytes in `before/` beside it: that is what a recovery and an
undo go by.

A crash at any line leaves the record before it or after it.
"""

from __future__ import annotations

import os
import re
import time
from typing import Literal, TypeAlias

import msgspec

from ...core.errors import DiskError
from ...disk.temp_files import Durability
from ...disk.trees.rootdir import RootDir
from ...memory.store.topic import INDEX

DIRECTORY = ".dreams"
# What D4 shows of a dream.
MOST_TURNS = 30
# A turn's words are there to be watched, not to be read.
TURN_CHARS = 500
# A dream that touched more names the first ones; the journal has them all.
MOST_NAMED = 1_000
# Thirty turns, and the names of all files of a large memory.
_RECORD_BYTES = 4 << 20
_ID = re.compile(r"\d{8}T\d{4}-[0-9a-f]{4}")

Status: TypeAlias = Literal["running", "completed", "failed", "killed", "undone"]
# "undoing": files go back; a crash there is finished by the next recovery, as one while "applying" is taken back.
Phase: TypeAlias = Literal["starting", "updating", "applying", "applied", "undoing"]


class DreamTurn(msgspec.Struct, frozen=True):
    text: str
    calls: int


class SkippedChange(msgspec.Struct, frozen=True):
    """A change that was not made, and why."""

    file: str
    why: str


class ChangedFile(msgspec.Struct, frozen=True):
    """A file of memory the dream changes, or wants to: `before` is its digest (empty: there is none), `mtime_ns` its time then.

    `after` is what the dream left, known once all is applied: None before that, and for what waits for a yes.
    """

    file: str
    before: str
    mtime_ns: int = 0
    after: str | None = None


class DreamRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """`files` are those touched in the copy while it runs, and those changed for real once it is applied; `removed` and `merged` are
    topic files that are gone, the latter with every fact kept elsewhere; `waiting` are ids in the inbox."""

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
    waiting: tuple[str, ...] = ()
    skipped: tuple[SkippedChange, ...] = ()
    changes: tuple[ChangedFile, ...] = ()
    index: str = ""  # the digest of the index before; empty: there was none
    why: str = ""
    tokens: int = 0
    cost: float = 0.0


def new_id(now: float) -> str:
    """Sorts by time to the minute; two of one minute differ by chance."""
    return f"{time.strftime('%Y%m%dT%H%M', time.gmtime(now))}-{os.urandom(2).hex()}"


def write_record(root: RootDir, record: DreamRecord) -> None:
    """Durable against a power loss from the moment it is about real memories."""
    durability: Durability = "process" if record.phase in ("starting", "updating") else "full"
    root.replace(_path(record.id), msgspec.json.encode(record), durability=durability)


def read_record(root: RootDir, dream: str) -> DreamRecord | None:
    """None where there is none, or none that can be read."""
    if not _ID.fullmatch(dream):
        return None
    try:
        data = root.read_bytes(_path(dream), _RECORD_BYTES)
        found = msgspec.json.decode(data or b"", type=DreamRecord)
    except (DiskError, msgspec.DecodeError):
        return None
    return found if found.id == dream else None


def read_records(root: RootDir) -> list[DreamRecord]:
    """All dreams that are kept, newest first; what is no record is passed over."""
    found = (read_record(root, name) for name in dream_ids(root))
    # By the time they began: two ids of one minute are in no order.
    return sorted((record for record in found if record is not None), key=lambda record: (-record.started, record.id))


def dream_ids(root: RootDir) -> list[str]:
    """The ids of all directories of dreams, also of those without a record."""
    return [entry.name for entry in root.listdir(DIRECTORY) if entry.is_dir and _ID.fullmatch(entry.name)]


def is_real(record: DreamRecord) -> bool:
    """Whether it changed memory, or asked to: then there is something to undo."""
    return bool(record.changes) or INDEX in record.files


def is_open(record: DreamRecord) -> bool:
    """Whether it runs, or was stopped in the middle."""
    return record.status == "running" or record.phase == "undoing"


def request_kill(root: RootDir, dream: str) -> bool:
    """Asks a running dream to stop; False when it does not run."""
    record = read_record(root, dream)
    if record is None or record.status != "running":
        return False
    root.replace(_stop(dream), b"", durability="process")
    return True


def is_kill_requested(root: RootDir, dream: str) -> bool:
    return root.stat(_stop(dream)) is not None


def dream_home(dream: str) -> str:
    """A dream's own directory, from the memory directory on."""
    return f"{DIRECTORY}/{dream}"


def kept_copy(record: DreamRecord, file: str) -> str:
    """Where a file lies as it was before the dream."""
    return f"{dream_home(record.id)}/before/{file}"


def _path(dream: str) -> str:
    return f"{dream_home(dream)}/record.json"


def _stop(dream: str) -> str:
    return f"{dream_home(dream)}/stop"
