"""Applies again what an undo took back from a dream, for a user who undid it by mistake.

A file is put as the dream left it if it is still as it was before the dream; the text comes from the journal. Any other file is left alone
and named. The index line of a file follows it unless the user changed that line. An index that the dream itself rewrote stays as the undo
left it, so such a dream is not applied again as a whole. A crash at any line is finished by the same call.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext

import msgspec

from ...core.errors import InputError
from ...disk.locks.dream_lock import DreamLock, HeldDreamLock
from ...memory.store.contract import ChangeReason
from ...memory.store.directory import DirectoryStore
from ...memory.store.index import MOST_INDEX, entry_of, put_entry
from ...memory.store.journal import digest_of
from ...memory.store.modes import GatedStore
from ...memory.store.recovery import FileToRestore, restore_files
from ...memory.store.topic import INDEX, fold_name
from .index_merge import index_text, rows_of
from .record import DreamRecord, SkippedChange, kept_copy, read_record, write_record
from .undo import UndoneDream

NOT_AS_BEFORE = "is not as it was before the dream, so it was left alone"


def can_redo(record: DreamRecord, files: Collection[str], *, whole: bool) -> bool:
    """Whether these changes can be applied again. The record does not tell what a change was that the user approved later."""
    known = {change.file for change in record.changes if change.after is not None}
    return known.issuperset(files) and not (whole and INDEX in record.files)


def redo_changes(gated: GatedStore, dream: str, files: Collection[str]) -> UndoneDream:
    """Apply the changes of a dream to these files again. A dream that was undone as a whole counts as completed again."""
    gated.check("user")
    store, record = gated.store, read_record(gated.store.root, dream)
    if (
        record is None
        or record.status not in ("completed", "undone")
        or not can_redo(record, files, whole=record.status == "undone")
    ):
        raise InputError(f"dream {dream}", "cannot be applied again", "start another one")
    why = ChangeReason("user", f"applied dream {dream} again", dream=dream)
    lock = DreamLock(store.root)
    hold = lock.acquire(lock.last_ns())
    with hold if isinstance(hold, HeldDreamLock) else nullcontext():
        wanted = [_as_dreamt(store, record, file) for file in files]
        done = restore_files(store, wanted, index=lambda now, back: _redone_index(store, record, now, back), why=why)
        # The undo has replaced the time of its end.
        again = msgspec.structs.replace(record, status="completed", ended=None) if record.status == "undone" else record
        if again is not record:
            write_record(store.root, again)
    return UndoneDream(again, done.back, tuple(SkippedChange(file, NOT_AS_BEFORE) for file in done.left))


def _as_dreamt(store: DirectoryStore, record: DreamRecord, file: str) -> FileToRestore:
    change = next(change for change in record.changes if change.file == file)
    text = store.history.content_of(change.after) if change.after else None
    data = text.encode("utf-8", "surrogateescape") if text is not None else None
    return FileToRestore(file, data, (change.before,) if digest_of(data) == change.after else ())


def _redone_index(store: DirectoryStore, record: DreamRecord, now: str, back: Collection[str]) -> str:
    """Return the index with the lines of these files, unless someone changed a line since the dream."""
    before = rows_of(index_text(store.root.read_bytes(kept_copy(record, INDEX), MOST_INDEX)))
    for file in back:
        topic, row = store.get(file), rows_of(now).get(fold_name(file))
        if topic is not None and row == before.get(fold_name(file)):
            now = put_entry(now, entry_of(topic))
    return now
