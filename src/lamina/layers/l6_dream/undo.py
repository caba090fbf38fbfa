"""A dream taken back as one (B4, D5): on a user's word, after a crash (Z5, Z12), and when applying it fails.

Owns what goes back, by the dream's record and the copies in its `before/`. A file goes back, byte for byte and with its time, if it is
still as the dream left it: as the record says, or as a line of the journal with the dream's id does, which is so for a dream that was
stopped and for what a user accepted later. A file that somebody changed since is left and named. What still waits in the inbox for
this dream is withdrawn: it rested on what is gone.

`undo` puts right what a dead dream left, then takes back the newest dream before those it rests on. It holds the lock of dreams
meanwhile, so that none begins on what is going back. Beside a dream that works on its copy it needs no lock: whatever goes back is then
no longer what that dream has copied, and stays as it is. `recover` works only under the lock, so a living dream is never touched: a
dream that only worked on its copy is over, one that was stopped while memories changed is taken back as a whole, one whose undo was
stopped is undone. Everything it did is one sentence; what fails is reported and tried again next time.

A crash or an error at any line leaves a record that says so and a lock whose holder is dead: the next session sees it, and `recover`
finishes it.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError, InputError, UndoOrder
from ...disk.locks.dream_lock import DreamLock, HeldDreamLock, NotWon
from ...memory.store.contract import MOST_READ, ChangeReason
from ...memory.store.directory import DirectoryStore
from ...memory.store.index import MOST_INDEX, IndexEntry, put_entry, read_entries
from ...memory.store.journal import digest_of
from ...memory.store.modes import GatedStore
from ...memory.store.recovery import FileToRestore, restore_files
from ...memory.store.topic import INDEX, fold_name
from .index_merge import IndexRewrite, index_text, restore_index
from .record import (
    DIRECTORY,
    DreamRecord,
    SkippedChange,
    dream_home,
    dream_ids,
    is_open,
    is_real,
    kept_copy,
    read_record,
    read_records,
    write_record,
)
from .stage import FOUND, KEPT, MADE, WORK, prune_dreams, remove_copy

SINCE = "was changed since; it stays as it is"
FORGOTTEN = "what it said before is not kept any more; it stays as it is"
_LIST = "`lamina dream --status` lists those that are kept"
_RUNS = "`lamina dream --kill` ends it, and nothing is changed then"


class UndoneDream(NamedTuple):
    """`back`: as they were before the dream; `left`: not put back, and why. `said`: what a dead dream had left, put right on the way."""

    record: DreamRecord
    back: tuple[str, ...]
    left: tuple[SkippedChange, ...]
    said: tuple[str, ...] = ()


def take_back(gated: GatedStore, record: DreamRecord, *, now: float, why: str) -> UndoneDream:
    """Undoes what a dream had applied so far; its record says that it failed."""
    done = _returned(gated.store, record, why=ChangeReason("dream", f"took back dream {record.id}: {why}", dream=record.id))
    ended = _finished(gated, record, now=now)
    ended = msgspec.structs.replace(ended, status="failed", why=why, files=(), removed=(), merged=(), waiting=(), changes=())
    write_record(gated.store.root, ended)
    return done._replace(record=ended)


def _undone(gated: GatedStore, record: DreamRecord, now: float) -> UndoneDream:
    done = _returned(gated.store, record, why=ChangeReason("user", f"undid dream {record.id}", dream=record.id))
    return done._replace(record=_finished(gated, record, now=now))


def _finished(gated: GatedStore, record: DreamRecord, *, now: float) -> DreamRecord:
    """What waits for this dream is withdrawn, and its record says that it is undone."""
    for proposal in gated.inbox.waiting():
        if proposal.why.dream == record.id:
            gated.inbox.reject(proposal.id)
    record = msgspec.structs.replace(record, status="undone", phase="applied", ended=now)
    write_record(gated.store.root, record)
    return record


def _returned(store: DirectoryStore, record: DreamRecord, *, why: ChangeReason) -> UndoneDream:
    """Puts back all files of a dream that are as it left them, and their lines in the index."""
    known = _left_by(store, record)
    wanted, lacking = list[FileToRestore](), list[SkippedChange]()
    for change in record.changes:
        data = store.root.read_bytes(kept_copy(record, change.file), MOST_READ) if change.before else None
        if digest_of(data) == change.before:
            wanted.append(FileToRestore(change.file, data, known[change.file], change.mtime_ns))
        elif digest_of(store.root.read_bytes(change.file, MOST_READ)) != change.before:
            lacking.append(SkippedChange(change.file, FORGOTTEN))
    done = restore_files(store, wanted, index=lambda now, back: _index(store, record, now, back), why=why)
    left = (*(SkippedChange(file, SINCE) for file in done.left), *lacking)
    return UndoneDream(record, done.back, left)


def _left_by(store: DirectoryStore, record: DreamRecord) -> dict[str, set[str]]:
    """File → the digests the dream gave it."""
    known = {change.file: set[str]() if change.after is None else {change.after} for change in record.changes}
    for line in store.history.lines():
        if line.file in known and line.why is not None and line.why.dream == record.id and line.why.who == "dream":
            known[line.file].add(line.digest)
    return known


def _index(store: DirectoryStore, record: DreamRecord, now: str, back: Collection[str]) -> str | None:
    data = store.root.read_bytes(kept_copy(record, INDEX), MOST_INDEX)
    found, made = (store.root.read_bytes(f"{dream_home(record.id)}/{name}", MOST_INDEX) for name in (FOUND, MADE))
    own = IndexRewrite(index_text(found), index_text(made)) if found is not None and made is not None else None
    if digest_of(data) == record.index:
        stay = [change.file for change in record.changes if change.file not in back]
        wanted = restore_index(index_text(data), now, back, stay, own)
        return None if data is None and not wanted.strip() and not store.topic_files.files() else wanted
    # Its copy was forgotten: every file that is back has a line, and that is all.
    listed = {fold_name(entry.file) for entry in read_entries(now)}
    for file in back:
        if fold_name(file) not in listed and (topic := store.get(file)) is not None:
            now = put_entry(now, IndexEntry(topic.name, topic.file, topic.description))
    return now


def recover(gated: GatedStore, lock: DreamLock, *, now: float, hold: HeldDreamLock | None = None) -> list[str]:
    """What was done, in sentences. With `hold` under that hold; else the lock is taken for it, and where a dream lives nothing is done."""
    try:
        return _recovered(gated, lock, now, hold)
    except DiskError as error:
        return [f"What dreams left in {gated.store.root.path} could not be looked at: {error}"]


def _recovered(gated: GatedStore, lock: DreamLock, now: float, hold: HeldDreamLock | None) -> list[str]:
    root = gated.store.root
    if root.stat(DIRECTORY) is None:
        return []
    known = read_records(root)
    unfinished = [record for record in known if is_open(record)]
    copies = [record.id for record in known if root.stat(f"{dream_home(record.id)}/{WORK}") is not None]
    if not unfinished and not copies and len(known) == len(dream_ids(root)):
        return []
    won = lock.acquire(lock.last_ns()) if hold is None else hold
    if isinstance(won, NotWon):
        return []
    with won if hold is None else nullcontext():
        # Newest first: what rests on what.
        said = [_put_right(gated, record, now) for record in unfinished]
        for dream in copies:
            remove_copy(root, dream)
        prune_dreams(root)
        if hold is None and any(is_open(record) for record in read_records(root)):
            won.leave()  # the next session sees that there is something to do
    return said


def _put_right(gated: GatedStore, record: DreamRecord, now: float) -> str:
    try:
        if record.phase == "undoing":
            done = _undone(gated, record, now)
            return f"The undo of dream {record.id} was stopped half way and is finished now{_left(done)}."
        if record.phase == "applying":
            done = take_back(gated, record, now=now, why="it was stopped while it changed memories")
            return f"Dream {record.id} was stopped while it changed memories; {len(done.back)} of them are as they were{_left(done)}."
        ended = msgspec.structs.replace(record, status="failed", ended=now, why="its process ended before it did")
        write_record(gated.store.root, ended)
        return f"Dream {record.id} was stopped before it changed anything; its copy was removed."
    except DiskError as error:
        return f"Dream {record.id} was stopped half way and could not be put right yet: {error}"


def _left(done: UndoneDream) -> str:
    return f"; somebody changed {', '.join(skipped.file for skipped in done.left[:5])} since, which stay" if done.left else ""


def undo(gated: GatedStore, dream: str | None = None, *, now: float) -> UndoneDream:
    """Takes back this dream, or the newest. UndoOrder where a later one rests on it; InputError where there is nothing to take back,
    or another dream changes memories. Where the one that is meant was stopped half way, putting that right is all."""
    gated.check("user")
    root = gated.store.root
    lock, half = DreamLock(root), next((record for record in read_records(root) if is_open(record)), None)
    said = tuple(recover(gated, lock, now=now)) if half is not None else ()
    if half is not None and half.phase in ("applying", "undoing") and said and dream in (None, half.id):
        return UndoneDream(read_record(root, half.id) or half, (), (), said)
    record = _asked(read_records(root), dream)
    hold = lock.acquire(lock.last_ns())
    if isinstance(hold, NotWon) and half is not None and half.phase == "applying":
        raise InputError(f"dream {record.id}", "cannot be taken back while another one changes memories", "try again in a moment")
    with hold if isinstance(hold, HeldDreamLock) else nullcontext():
        write_record(root, msgspec.structs.replace(record, phase="undoing"))
        try:
            return _undone(gated, record, now)._replace(said=said)
        except BaseException:
            if isinstance(hold, HeldDreamLock):
                hold.leave()
            raise


def _asked(known: list[DreamRecord], dream: str | None) -> DreamRecord:
    undoable = [record for record in known if record.status == "completed" and is_real(record)]
    if dream is None:
        if not undoable:
            raise InputError("dream", f"there is none to undo (the last {KEPT} are kept)", _LIST)
        return undoable[0]
    record = next((record for record in known if record.id == dream), None)
    if record is None:
        raise InputError(f"dream {dream}", f"is not kept (the last {KEPT} are)", _LIST)
    if record.status == "undone":
        raise InputError(f"dream {dream}", "was undone already", _LIST)
    if record.status == "running":
        raise InputError(f"dream {dream}", "still runs", _RUNS)
    if record not in undoable:
        raise InputError(f"dream {dream}", f"{record.status} and changed nothing", _LIST)
    if undoable[0] != record:
        raise UndoOrder(f"dream {dream}", f"dream {undoable[0].id}")
    return record
