"""Mending on the user's word: modes, what killed writers left, and transcripts with damaged lines.

Owns the backup of a transcript, `<session>/damaged.jsonl` among the session's other files. Invariants: only what is ours and plain
is touched, through no link; a transcript is mended only while nobody writes it, under its session's lock, and its old bytes lie whole
in the backup before the new ones take its name; a record keeps its bytes and its place in the file, because checkpoints name places;
the file's time stays, so that the newest session is still the newest.

A crash at any line leaves the old transcript or the mended one, and at most a temporary file, which the next sweep removes, or a
backup nobody needed. Removing what a killed fork left needs that session's lock too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ...core.errors import DiskError, LockHeld
from ..crash_points import point
from ..dirfd import PRIVATE_DIR, PRIVATE_FILE, Dir, open_parent, reading
from ..faults import reporting
from ..files import remove
from ..locks.lock_file import LifeLock, holder
from ..temp_files import staged_at
from ..trees.survey import HAS_MODES
from .jsonl import Health, parse_line, raw_lines
from .store import lock_path

BACKUP_NAME = "damaged"
# A file that is damaged a hundred times over needs another cure.
MOST_BACKUPS = 100
# The mended file and the backup both need this much room; a longer transcript is for the user to look at.
MOST_BYTES = 1 << 30
_CHUNK = 1 << 20
# How a checkpoint looks in its line: it names offsets, so nothing before it may move.
_CHECKPOINT = b'"checkpoint"'


class RepairedTranscript(NamedTuple):
    """`backup` holds the file as it was."""

    backup: Path
    dropped: int


def make_private(path: str | os.PathLike[str]) -> bool:
    """0600 for a plain file, 0700 for a directory; False where modes mean nothing or it is so already. A link is refused."""
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
    """Removes `<session>/fork.jsonl` that a killed fork left; LockHeld while that fork still runs."""
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
    """Takes out of a transcript of ours what is no record. LockHeld while a session writes it."""
    with _locked(lock_path(path)), open_parent(path) as (where, name), reading(where, name) as source:
        before = os.fstat(source)
        if before.st_size > MOST_BYTES:
            raise DiskError(os.fspath(path), f"is larger than {MOST_BYTES >> 30} GiB", "copy out of it what you need")
        health = Health()
        pieces, mtime_ns = _mended(path, health), before.st_mtime_ns
        with staged_at(where, name, pieces, durability="full", mtime_ns=mtime_ns, points="mend") as mended:
            backup = _backed_up(lock_path(path).parent, source)
            now = os.fstat(source)
            if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                raise DiskError(os.fspath(path), "is being written by another program", "close it there first")
            mended.publish()
        return RepairedTranscript(backup, health.skipped)


def _backed_up(directory: Path, source: int) -> Path:
    with Dir.open(directory) as where:
        target = _free_name(where)
        os.lseek(source, 0, os.SEEK_SET)
        pieces = iter(lambda: os.read(source, _CHUNK), b"")
        with staged_at(where, target, pieces, durability="full", points="mend") as copy:
            copy.publish()
        return Path(where.full(target))


def _free_name(where: Dir) -> str:
    for number in range(1, MOST_BACKUPS):
        target = f"{BACKUP_NAME}.jsonl" if number == 1 else f"{BACKUP_NAME}-{number}.jsonl"
        if where.stat(target) is None:
            return target
    raise DiskError(where.full(BACKUP_NAME), f"there are {MOST_BACKUPS} backups already", "remove those you do not need")


def _mended(path: Path, health: Health) -> Iterator[bytes]:
    """The file with blanks where damage was: each record that is left stands where it stood."""
    at, moved = 0, False
    for offset, raw in raw_lines(path, 0, health):
        yield from _blank(offset - at)
        new = _line(raw, health)
        moved = moved or len(new) > len(raw)
        if moved and _CHECKPOINT in raw:
            raise DiskError(
                os.fspath(path), "holds damage that cannot be taken out without moving a checkpoint", "it is still read as it is"
            )
        yield new
        yield from _blank(len(raw) - len(new))
        at = offset + len(raw)
    yield from _blank(path.stat().st_size - at)


def _line(raw: bytes, health: Health) -> bytes:
    """A whole line as it is; of a damaged one the records in it, a line each."""
    noted = sum(health.kinds.values())
    found = list(parse_line(0, raw, health))
    if sum(health.kinds.values()) == noted:
        return raw
    return b"".join(_encoded(line.value) for line in found)


def _encoded(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        text = json.dumps(value, separators=(",", ":"))
    return text.encode() + b"\n"


def _blank(size: int) -> Iterator[bytes]:
    """So many bytes that no reader sees."""
    while size > 0:
        part = min(size, _CHUNK)
        yield b" " * (part - 1) + b"\n"
        size -= part
