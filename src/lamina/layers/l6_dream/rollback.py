"""What a dream changed, put back as one (B4): for a person's undo, and for a dream that was stopped half way.

Owns what goes back, by the dream's record and the copies in its `before/`. A file goes back, byte for byte and with its time, if it is
still as the dream left it: as the record says, or as a line of the journal with the dream's id does, which is so for a dream that was
stopped and for what a person accepted later. A file that somebody changed since is left and named. What still waits in the inbox for
this dream is withdrawn: it rested on what is gone.

A crash at any line leaves a record that says so, and `recover` finishes it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from ...memory.store.contract import MOST_READ, ChangeReason
from ...memory.store.directory import DirectoryStore
from ...memory.store.index import INDEX, MOST_INDEX, entry_of, put_entry, read_entries
from ...memory.store.journal import digest_of
from ...memory.store.modes import GatedStore
from ...memory.store.recovery import FileToRestore, restore_files
from ...memory.store.topic import fold_name
from .indexing import Own, index_back
from .record import Record, Skipped, home, write_record
from .stage import BEFORE, FOUND, MADE

SINCE = "was changed since; it stays as it is"
FORGOTTEN = "what it said before is not kept any more; it stays as it is"


class Undone(NamedTuple):
    """`back`: as they were before the dream; `left`: not put back, and why. `said`: what a dead dream had left, put right on the way."""

    record: Record
    back: tuple[str, ...]
    left: tuple[Skipped, ...]
    said: tuple[str, ...] = ()


def take_back(gated: GatedStore, record: Record, *, now: float, why: str) -> Undone:
    """Undoes what a dream had applied so far; its record says that it failed."""
    done = returned(gated.store, record, why=ChangeReason("dream", f"took back dream {record.id}: {why}", dream=record.id))
    ended = finished(gated, record, now=now)
    ended = msgspec.structs.replace(ended, status="failed", why=why, files=(), removed=(), merged=(), waiting=(), changes=())
    write_record(gated.store.root, ended)
    return done._replace(record=ended)


def finished(gated: GatedStore, record: Record, *, now: float) -> Record:
    """What waits for this dream is withdrawn, and its record says that it is undone."""
    for proposal in gated.inbox.waiting():
        if proposal.why.dream == record.id:
            gated.inbox.reject(proposal.id)
    record = msgspec.structs.replace(record, status="undone", phase="applied", ended=now)
    write_record(gated.store.root, record)
    return record


def returned(store: DirectoryStore, record: Record, *, why: ChangeReason) -> Undone:
    """Puts back all files of a dream that are as it left them, and their lines in the index."""
    known = _left_by(store, record)
    wanted, lacking = list[FileToRestore](), list[Skipped]()
    for change in record.changes:
        data = store.root.read_bytes(_kept(record, change.file), MOST_READ) if change.before else None
        if digest_of(data) == change.before:
            wanted.append(FileToRestore(change.file, data, known[change.file], change.mtime_ns))
        elif digest_of(store.root.read_bytes(change.file, MOST_READ)) != change.before:
            lacking.append(Skipped(change.file, FORGOTTEN))
    done = restore_files(store, wanted, index=lambda now, back: _index(store, record, now, back), why=why)
    left = (*(Skipped(file, SINCE) for file in done.left), *lacking)
    return Undone(record, done.back, left)


def _left_by(store: DirectoryStore, record: Record) -> dict[str, set[str]]:
    """File → the digests the dream gave it."""
    known = {change.file: set[str]() if change.after is None else {change.after} for change in record.changes}
    for line in store.history.lines():
        if line.file in known and line.why is not None and line.why.dream == record.id and line.why.who == "dream":
            known[line.file].add(line.digest)
    return known


def _index(store: DirectoryStore, record: Record, now: str, back: Collection[str]) -> str | None:
    data = store.root.read_bytes(_kept(record, INDEX), MOST_INDEX)
    found, made = (_text(store.root.read_bytes(f"{home(record.id)}/{name}", MOST_INDEX)) for name in (FOUND, MADE))
    own = Own(found, made) if found is not None and made is not None else None
    if digest_of(data) == record.index:
        stay = [change.file for change in record.changes if change.file not in back]
        wanted = index_back(_text(data) or "", now, back, stay, own)
        return None if data is None and not wanted.strip() and not store.topic_files.files() else wanted
    # Its copy was forgotten: every file that is back has a line, and that is all.
    listed = {fold_name(entry.file) for entry in read_entries(now)}
    for file in back:
        if fold_name(file) not in listed and (topic := store.get(file)) is not None:
            now = put_entry(now, entry_of(topic))
    return now


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _kept(record: Record, file: str) -> str:
    return f"{home(record.id)}/{BEFORE}/{file}"
