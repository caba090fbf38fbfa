"""Applies again what an undo took back from a dream, for a user who undid it by mistake.

Every file becomes as it was before the undo, byte for byte and with its time, and so does the index: the texts are kept since the undo
(kept_undo.py). Proposals that the undo withdrew wait again. If a file was changed since the undo, nothing is applied, because a memory
that the dream merged into that file would be lost. Lines of the index that someone added or reworded since then stay.

It holds the same lock and guard as the undo, and each file is journaled. A crash at any line is finished by the same call.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import msgspec

from ...core.errors import InputError
from ...language.text import Text
from ...memory.store.contract import MOST_READ, ChangeReason
from ...memory.store.decided import drop_decision, read_decisions
from ...memory.store.directory import DirectoryStore
from ...memory.store.history import hold_guard
from ...memory.store.journal import digest_of
from ...memory.store.modes import GatedStore
from ...memory.store.recovery import FileToRestore, RestoreResult, restore_files
from ...memory.store.topic import fold_name
from .index_merge import IndexRewrite, index_text, restore_index, rows_of
from .kept_undo import KeptUndo, drop_undo, read_undo, read_undone, read_undone_index, undone_files
from .record import DreamRecord, SkippedChange, read_record, write_record
from .undo import hold_dreams, with_lines

CHANGED = "was changed since the undo, so nothing was applied again"
LEFT = "was changed since the undo, so it was left alone"


class RedoneDream(NamedTuple):
    """The result: files as before the undo, files that someone changed at that moment, and the number of proposals that wait again.

    `files` are all that the undo was about, `whole` whether it was about the whole dream.
    """

    record: DreamRecord
    whole: bool
    files: tuple[str, ...]
    back: tuple[str, ...]
    left: tuple[SkippedChange, ...]
    waiting: int


def redo(gated: GatedStore, dream: str, undo: str) -> RedoneDream:
    """Apply again what an undo took back. A dream that was undone as a whole counts as completed again."""
    gated.check("user")
    root, what = gated.store.root, Text("dream {id}", id=dream)
    with hold_dreams(gated, what, "cannot be applied again while another dream changes memories"):
        record, kept = read_record(root, dream), read_undo(root, dream, undo)
        if record is None or kept is None or record.status not in ("completed", "undone") or record.phase == "undoing":
            raise InputError(what, "has nothing to apply again", "look at the dream to see its changes")
        if record.status == "undone" and not kept.whole:
            raise InputError(what, "was undone as a whole since", "apply that again first")
        with hold_guard(root):
            done = _apply(gated.store, record, kept)
        if record.status == "undone":
            record = msgspec.structs.replace(record, status="completed", ended=kept.ended)
            write_record(root, record)
        waiting = _wait_again(gated, kept)
        if not done.left:
            drop_undo(root, dream, undo)
    left = tuple(SkippedChange(file, LEFT) for file in done.left)
    return RedoneDream(record, kept.whole, tuple(sorted(undone_files(kept))), done.back, left, waiting)


def _apply(store: DirectoryStore, record: DreamRecord, kept: KeptUndo) -> RestoreResult:
    """Put all files as they were before the undo, or none. The guard is held."""
    store.repair()
    texts = read_undone(store.root, record.id, kept)
    if texts is None:
        raise InputError(Text("dream {id}", id=record.id), "cannot be applied again, because part of it is no longer kept")
    for one in kept.files:
        if digest_of(store.root.read_bytes(one.file, MOST_READ)) not in (one.left, one.was):
            raise InputError(one.file, CHANGED)
    wanted = [FileToRestore(one.file, texts[one.file], (one.left,), one.mtime_ns) for one in kept.files]
    why = ChangeReason("user", f"applied dream {record.id} again", dream=record.id)
    return restore_files(store, wanted, index=lambda now, back: _index(store, record, kept, now, back), why=why)


def _index(store: DirectoryStore, record: DreamRecord, kept: KeptUndo, now: str, back: Collection[str]) -> str:
    """Return the index as it was before the undo, with the changes that others made since then."""
    pair = read_undone_index(store.root, record.id, kept)
    if pair is None:
        return with_lines(store, now, back)
    was, left = map(index_text, pair)
    there, then = rows_of(now), rows_of(left)
    new = {one.file for one in kept.files if not one.left}
    # A line that the user reworded since the undo stays.
    own = [file for file in back if file in new or there.get(fold_name(file)) == then.get(fold_name(file))]
    return restore_index(was, now, own, (), IndexRewrite(was, left))


def _wait_again(gated: GatedStore, kept: KeptUndo) -> int:
    """Let the withdrawn proposals wait again, without those that the user has accepted since then. Return their number."""
    accepted = {one.proposal.id for one in read_decisions(gated.store.root) if one.accepted}
    again = [proposal for proposal in kept.withdrawn if proposal.id not in accepted]
    for proposal in again:
        gated.inbox.put_back(proposal)
        drop_decision(gated.store.root, proposal.id)
    return len(again)
