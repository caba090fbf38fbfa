"""Repairs that the user requested: file modes, leftovers of killed writers, and transcripts with damaged lines.

Owns the backup of a transcript, `<session>/damaged.jsonl` among the session's other files. Invariants: only plain files of ours
are touched, without following links. A transcript is repaired only under its session's lock, and its old content is complete in
the backup before the new content replaces it. A record keeps its bytes and its offset, because checkpoints refer to offsets. The
file keeps its time, so the newest session stays the newest.

A crash at any line leaves the old transcript or the repaired one, and at most a temporary file, which the next sweep removes, or
an unneeded backup. Removing the leftovers of a killed fork needs that session's lock too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ...core.errors import DiskError, LockHeld
from ...language.text import Text
from ..crash_points import point
from ..dirfd import PRIVATE_DIR, PRIVATE_FILE, Dir, open_parent, reading
from ..faults import reporting
from ..files import remove
from ..locks.lock_file import LifeLock, holder
from ..regular_file import stamp
from ..temp_files import staged_at
from ..trees.survey import HAS_MODES
from .jsonl import Health, parse_line, raw_lines
from .store import lock_path

BACKUP_NAME = "damaged"
# A file that was damaged a hundred times needs another solution.
MOST_BACKUPS = 100
# The repaired file and the backup both need this much space; a larger transcript is left to the user.
MOST_BYTES = 1 << 30
_CHUNK = 1 << 20
# Marks a line with a checkpoint. Checkpoints contain offsets, so nothing before one may move.
_CHECKPOINT = b'"checkpoint"'


class RepairedTranscript(NamedTuple):
    """The result of a repair: the backup of the original file, and the number of lines dropped."""

    backup: Path
    dropped: int


def make_private(path: str | os.PathLike[str]) -> bool:
    """Set mode 0600 on a plain file or 0700 on a directory. Returns whether the mode changed. Links are refused."""
    if not HAS_MODES:
        return False
    with open_parent(path) as (where, name):
        if os.path.isdir(path):
            with where.child(name) as directory:
                return directory.fd is not None and _chmod(directory.fd, PRIVATE_DIR, directory.path)
        with reading(where, name) as fd:
            return _chmod(fd, PRIVATE_FILE, where.full(name))


def _chmod(fd: int, mode: int, path: str) -> bool:
    with reporting(path):
        if os.fstat(fd).st_mode & 0o777 == mode:
            return False
        point("mend.chmod")
        os.fchmod(fd, mode)
        return True


def drop_fork(path: Path) -> bool:
    """Remove `<session>/fork.jsonl`, which a killed fork left. Raises LockHeld while that fork still runs."""
    with _locked(path.with_name("writer.lock")):
        return remove(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = LifeLock.acquire(path)
    if lock is None:
        raise LockHeld(os.fspath(path.parent), holder(path))
    with lock:
        yield


def repair_transcript(path: Path) -> RepairedTranscript:
    """Remove everything but records from a transcript of ours. Raises LockHeld while a session writes it."""
    with _locked(lock_path(path)), open_parent(path) as (where, name), reading(where, name) as source:
        before = os.fstat(source)
        if before.st_size > MOST_BYTES:
            raise DiskError(
                os.fspath(path), Text("is larger than {limit} GiB", limit=MOST_BYTES >> 30), "copy what you need from it"
            )
        health = Health()
        pieces, mtime_ns = _mended(path, health), before.st_mtime_ns
        with staged_at(where, name, pieces, durability="full", mtime_ns=mtime_ns, points="mend") as mended:
            backup = _backed_up(lock_path(path).parent, source)
            if stamp(os.fstat(source)) != stamp(before):
                raise DiskError(os.fspath(path), "is being written by another program", "close it there first")
            mended.publish()
        return RepairedTranscript(backup, health.skipped)


def _backed_up(directory: Path, source: int) -> Path:
    with Dir.open(directory) as where:
        names = [f"{BACKUP_NAME}.jsonl", *(f"{BACKUP_NAME}-{number}.jsonl" for number in range(2, MOST_BACKUPS))]
        target = next((name for name in names if where.stat(name) is None), None)
        if target is None:
            raise DiskError(where.full(BACKUP_NAME), f"already has {MOST_BACKUPS} backups", "remove those you do not need")
        os.lseek(source, 0, os.SEEK_SET)
        pieces = iter(lambda: os.read(source, _CHUNK), b"")
        with staged_at(where, target, pieces, durability="full", points="mend") as copy:
            copy.publish()
        return Path(where.full(target))


def _mended(path: Path, health: Health) -> Iterator[bytes]:
    """Yield the file with damage replaced by blanks, so that each record keeps its offset."""
    end, moved = 0, False
    for offset, raw in raw_lines(path, 0, health):
        yield from _blank(offset - end)
        new = _line(raw, health)
        moved = moved or len(new) > len(raw)
        if moved and _CHECKPOINT in raw:
            raise DiskError(
                os.fspath(path), "has damage that cannot be removed without moving a checkpoint", "it can still be read as it is"
            )
        yield new
        yield from _blank(len(raw) - len(new))
        end = offset + len(raw)
    yield from _blank(path.stat().st_size - end)


def _line(raw: bytes, health: Health) -> bytes:
    """Return an intact line unchanged, or the records of a damaged one, one per line."""
    noted = sum(health.kinds.values())
    records = list(parse_line(0, raw, health))
    if sum(health.kinds.values()) == noted:
        return raw
    return b"".join(_encoded(line.value) for line in records)


def _encoded(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        text = json.dumps(value, separators=(",", ":"))
    return text.encode() + b"\n"


def _blank(size: int) -> Iterator[bytes]:
    """Yield `size` bytes of blank lines, which readers skip."""
    while size > 0:
        part = min(size, _CHUNK)
        yield b" " * (part - 1) + b"\n"
        size -= part
