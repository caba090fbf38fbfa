"""Undoes a dream as a whole: on request, after a crash, and when applying it fails. On request it undoes some of its changes.

Owns what is restored, based on the dream's record and the copies in its `before/`. A file is restored byte for byte, with its timestamp,
if it is still as the dream left it. That is the digest in the record, or in a journal line with the dream's id; the latter covers dreams
that were stopped and changes approved later. A file changed since then is left alone and named. Changes of this dream that still need
approval are withdrawn, because they depend on what is undone; the user can let them wait again. What an undo on request removes is kept
(kept_undo.py), so that it can be applied again; an undo that was interrupted keeps nothing.

`undo` first recovers what a dead dream left, then undoes the newest dream before the ones it depends on. It holds the dream lock, so that
no dream begins on files that are being restored. It needs no lock against a dream that works on its copy: that dream will find the
restored files changed and leave them alone. `recover` works only under the lock, so it never touches a running dream. It closes a dream
that only worked on its copy, takes back one that was stopped while memories changed, and finishes an interrupted undo. It describes each
action in one sentence; failures are reported and retried next time.

A crash or an error at any line leaves a record that shows it and a lock whose owner is dead. The next session notices, and `recover`
finishes the work.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError, InputError, UndoOrder
from ...core.settings.resolution import Settings
from ...disk.locks.dream_lock import DreamLock, HeldDreamLock, NotWon
from ...language.text import Text
from ...memory.memory import Memory
from ...memory.store.contract import MOST_READ, ChangeReason
from ...memory.store.decided import Decision, keep_decision
from ...memory.store.directory import DirectoryStore
from ...memory.store.history import hold_guard
from ...memory.store.index import MOST_INDEX, entry_line, entry_of, put_entry, read_entries
from ...memory.store.journal import digest_of
from ...memory.store.modes import GatedStore, Proposal
from ...memory.store.recovery import FileToRestore, restore_files
from ...memory.store.topic import INDEX, fold_name, read_topic
from ...memory.store.topic_files import decode_text
from .index_merge import IndexRewrite, index_text, restore_index, restore_lines, rows_of
from .kept_undo import IndexPair, KeptUndo, UndoneFile, keep_undo, new_undo_id
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

SINCE = "was changed since, so it was not restored"
FORGOTTEN = "has no earlier version any more, so it was not restored"
# A merge of more files names the first ones. The journal has a line for each.
MOST_FILES_NAMED = 3
DIED = "A dream was stopped before it began. Nothing was changed."
_LIST = "run `lamina dream --status` to see which dreams are kept"
_RUNS = "run `lamina dream --kill` to stop it; nothing is changed then"


class UndoneDream(NamedTuple):
    """The result of an undo: restored files, files not restored with the reason, and sentences about a crashed dream recovered before.

    `undo` is the id under which the removed texts are kept; empty if the undo cannot be taken back.
    """

    record: DreamRecord
    back: tuple[str, ...]
    left: tuple[SkippedChange, ...]
    said: tuple[str, ...] = ()
    undo: str = ""


def take_back(gated: GatedStore, record: DreamRecord, *, now: float, why: str) -> UndoneDream:
    """Undo what a dream has applied so far, and mark its record as failed."""
    done = _restore(gated.store, record, why=ChangeReason("dream", f"reverted dream {record.id}: {why}", dream=record.id))
    for proposal in _pending(gated, record.id):
        gated.inbox.reject(proposal.id)
    ended = _mark_undone(gated, record, now=now)
    ended = msgspec.structs.replace(ended, status="failed", why=why, files=(), removed=(), merged=(), waiting=(), changes=())
    write_record(gated.store.root, ended)
    return done._replace(record=ended)


def _undo_dream(gated: GatedStore, record: DreamRecord, now: float, *, keep: bool) -> UndoneDream:
    why, pending = ChangeReason("user", f"undid dream {record.id}", dream=record.id), _pending(gated, record.id)
    done = _restore(gated.store, record, why=why, keep=_Keep(now, tuple(pending)) if keep else None)
    _withdraw(gated, pending, now)
    return done._replace(record=_mark_undone(gated, record, now=now))


def _mark_undone(gated: GatedStore, record: DreamRecord, *, now: float) -> DreamRecord:
    record = msgspec.structs.replace(record, status="undone", phase="applied", ended=now)
    write_record(gated.store.root, record)
    return record


def _pending(gated: GatedStore, dream: str) -> list[Proposal]:
    return [proposal for proposal in gated.inbox.waiting() if proposal.why.dream == dream]


def _withdraw(gated: GatedStore, proposals: Iterable[Proposal], now: float) -> None:
    """Withdraw pending changes. They are kept as decided, so the user can let them wait again."""
    for proposal in proposals:
        keep_decision(gated.store.root, Decision(proposal, accepted=False, file="", after="", time=now))
        gated.inbox.reject(proposal.id)


def undo_changes(gated: GatedStore, dream: str, files: Collection[str], *, now: float) -> UndoneDream:
    """Undo the changes that a dream made to these files. The other changes stay, and so does the dream's record.

    A file that someone changed since then is left alone and named. The same call after a crash finishes the work.
    """
    gated.check("user")
    record = read_record(gated.store.root, dream)
    if record is None or record.status != "completed":
        raise InputError(Text("dream {id}", id=dream), "has no changes to undo", _LIST)
    for file in files:
        if all(change.file != file for change in record.changes):
            raise InputError(file, Text("was not changed by dream {dream}", dream=dream), _LIST)
    named = ", ".join(sorted(files)[:MOST_FILES_NAMED])
    why = ChangeReason("user", f"undid the change of {named} by dream {dream}", dream=dream)
    pending = [proposal for proposal in _pending(gated, dream) if proposal.file in files]
    with hold_dreams(gated, Text("dream {id}", id=dream), CANNOT_UNDO):
        done = _restore(gated.store, record, why=why, only=files, keep=_Keep(now, tuple(pending)))
    _withdraw(gated, pending, now)
    return done


CANNOT_UNDO = Text("cannot be undone while another dream changes memories")


def hold_dreams(gated: GatedStore, what: str, problem: str) -> AbstractContextManager[object]:
    """Hold the dream lock, so that no dream begins. A dream that works on its copy goes on; raises InputError if one changes memories."""
    root = gated.store.root
    lock = DreamLock(root)
    hold = lock.acquire(lock.last_ns())
    if isinstance(hold, HeldDreamLock):
        return hold
    if any(one.phase in ("applying", "undoing") for one in read_records(root) if is_open(one)):
        raise InputError(what, problem, "try again in a moment")
    return nullcontext()


class _Keep(NamedTuple):
    """Keep what an undo removes, with the proposals that it withdraws."""

    now: float
    withdrawn: tuple[Proposal, ...]


class _Found(NamedTuple):
    """A file right before the undo."""

    data: bytes | None
    mtime_ns: int


def _restore(
    store: DirectoryStore,
    record: DreamRecord,
    *,
    why: ChangeReason,
    only: Collection[str] | None = None,
    keep: _Keep | None = None,
) -> UndoneDream:
    """Restore all files that are still as the dream left them, or those in `only`, and their lines in the index."""
    known = dream_digests(store, record)
    wanted, lacking = list[FileToRestore](), list[SkippedChange]()
    for change in (one for one in record.changes if only is None or one.file in only):
        data = store.root.read_bytes(kept_copy(record, change.file), MOST_READ) if change.before else None
        if digest_of(data) == change.before:
            wanted.append(FileToRestore(change.file, data, known[change.file], change.mtime_ns))
        elif digest_of(store.root.read_bytes(change.file, MOST_READ)) != change.before:
            lacking.append(SkippedChange(change.file, FORGOTTEN))
    with hold_guard(store.root):
        store.repair()
        found, was = {one.file: _find(store, one.file) for one in wanted}, store.index_file.data()

        def index(now: str, back: Collection[str]) -> str | None:
            if only is None:
                return _restored_index(store, record, now, back)
            return _restored_lines(store, record, now, {file: found[file].data for file in back})

        done = restore_files(store, wanted, index=index, why=why)
        undo = ""
        if keep is not None:
            changed = [one for one in wanted if one.file in done.back and one.data != found[one.file].data]
            pair = IndexPair(was, store.index_file.data())
            undo = _keep_removed(store, record, keep, [(one, found[one.file]) for one in changed], pair, whole=only is None)
    left = (*(SkippedChange(file, SINCE) for file in done.left), *lacking)
    return UndoneDream(record, done.back, left, undo=undo)


def _find(store: DirectoryStore, file: str) -> _Found:
    stat = store.root.stat(file)
    return _Found(store.root.read_bytes(file, MOST_READ), stat.st_mtime_ns if stat is not None else 0)


def _keep_removed(
    store: DirectoryStore,
    record: DreamRecord,
    keep: _Keep,
    changed: list[tuple[FileToRestore, _Found]],
    index: IndexPair,
    *,
    whole: bool,
) -> str:
    """Keep what was removed and return its id; empty if nothing was, or if it could not be kept."""
    if not changed and not keep.withdrawn and index.was == index.left:
        return ""
    files = tuple(UndoneFile(one.file, digest_of(found.data), digest_of(one.data), found.mtime_ns) for one, found in changed)
    digests = (digest_of(index.was), digest_of(index.left))
    kept = KeptUndo(new_undo_id(), keep.now, whole, files, digests, keep.withdrawn, record.ended)
    texts = {one.file: found.data for one, found in changed}
    return kept.id if keep_undo(store.root, record.id, kept, texts, index) else ""


def dream_digests(store: DirectoryStore, record: DreamRecord) -> dict[str, set[str]]:
    """Map each file to the digests the dream gave it."""
    known = {change.file: set[str]() if change.after is None else {change.after} for change in record.changes}
    for line in store.history.lines():
        if line.file in known and line.why is not None and line.why.dream == record.id and line.why.who == "dream":
            known[line.file].add(line.digest)
    return known


def _restored_index(store: DirectoryStore, record: DreamRecord, now: str, back: Collection[str]) -> str | None:
    data = store.root.read_bytes(kept_copy(record, INDEX), MOST_INDEX)
    found, made = (store.root.read_bytes(f"{dream_home(record.id)}/{name}", MOST_INDEX) for name in (FOUND, MADE))
    own = IndexRewrite(index_text(found), index_text(made)) if found is not None and made is not None else None
    if digest_of(data) == record.index:
        stay = [change.file for change in record.changes if change.file not in back]
        wanted = restore_index(index_text(data), now, back, stay, own)
        return None if data is None and not wanted.strip() and not store.topic_files.files() else wanted
    # The index's copy was forgotten.
    return with_lines(store, now, back)


def _restored_lines(store: DirectoryStore, record: DreamRecord, now: str, texts: Mapping[str, bytes | None]) -> str:
    """Return the index with the lines of these files as they were before the dream. `texts` are the files as the dream left them."""
    data = store.root.read_bytes(kept_copy(record, INDEX), MOST_INDEX)
    if digest_of(data) != record.index:
        return with_lines(store, now, texts)
    made = rows_of(index_text(store.root.read_bytes(f"{dream_home(record.id)}/{MADE}", MOST_INDEX)))
    dreamt = {file: {made.get(fold_name(file), "").rstrip("\r"), _own_line(file, text)} for file, text in texts.items()}
    return restore_lines(index_text(data), now, dreamt)


def _own_line(file: str, data: bytes | None) -> str:
    return entry_line(entry_of(read_topic(file, decode_text(data), 0))) if data is not None else ""


def with_lines(store: DirectoryStore, now: str, back: Collection[str]) -> str:
    """Return the index with a line for every restored file."""
    listed = {fold_name(entry.file) for entry in read_entries(now)}
    for file in back:
        if fold_name(file) not in listed and (topic := store.get(file)) is not None:
            now = put_entry(now, entry_of(topic))
    return now


def recover_memory(cwd: Path, home: Path | None, settings: Settings) -> list[str]:
    """Recover from a crashed dream at the start of a session, and return what was done as sentences."""
    with Memory.open(cwd, home=home, settings=settings) as memory:
        gated = memory.store("private")
        return recover_dead(gated, DreamLock(gated.store.root))


def recover_dead(gated: GatedStore, lock: DreamLock) -> list[str]:
    """Recover from crashed dreams, also from one that left nothing but the lock, and describe it in sentences."""
    said = recover(gated, lock, now=time.time())
    return [*said, DIED] if lock.recover() and not said else said


def recover(gated: GatedStore, lock: DreamLock, *, now: float, hold: HeldDreamLock | None = None) -> list[str]:
    """Recover from crashed dreams and describe it in sentences. Takes the lock unless `hold` is given; a running dream is left alone."""
    try:
        return _recover_dreams(gated, lock, now, hold)
    except DiskError as error:
        return [f"Could not check {gated.store.root.path} for interrupted dreams: {error}"]


def _recover_dreams(gated: GatedStore, lock: DreamLock, now: float, hold: HeldDreamLock | None) -> list[str]:
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
        # Newest first, because later dreams depend on earlier ones.
        said = [_recover_dream(gated, record, now) for record in unfinished]
        for dream in copies:
            remove_copy(root, dream)
        prune_dreams(root)
        if hold is None and any(is_open(record) for record in read_records(root)):
            won.leave()  # the next session sees that there is something to do
    return said


def _recover_dream(gated: GatedStore, record: DreamRecord, now: float) -> str:
    try:
        if record.phase == "undoing":
            done = _undo_dream(gated, record, now, keep=False)
            form = Text("The undo of dream {id} was interrupted and has now been finished{left}.")
            return Text(form, id=record.id, left=_describe_left(done))
        if record.phase == "applying":
            done = take_back(gated, record, now=now, why="it was stopped while changing memories")
            form = Text(
                "Dream {id} was stopped while changing memories; {n} memory was restored{left}."
                "|Dream {id} was stopped while changing memories; {n} memories were restored{left}."
            )
            return Text(form, id=record.id, n=len(done.back), left=_describe_left(done))
        ended = msgspec.structs.replace(record, status="failed", ended=now, why="its process ended early")
        write_record(gated.store.root, ended)
        return Text("Dream {id} was stopped before it changed anything. Its copy was removed.", id=record.id)
    except DiskError as error:
        return Text("Dream {id} was interrupted and could not be recovered yet: {error}", id=record.id, error=error)


def _describe_left(done: UndoneDream) -> str:
    if not done.left:
        return ""
    files = ", ".join(skipped.file for skipped in done.left[:5])
    form = Text("; not restored, because it was changed since: {files}")
    if len(done.left) > 1:
        form = Text("; not restored, because they were changed since: {files}")
    return Text(form, files=files)


def undo(gated: GatedStore, dream: str | None = None, *, now: float) -> UndoneDream:
    """Undo this dream, or the newest. Raises UndoOrder if a later dream depends on it, and InputError if there is nothing to undo or
    another dream is changing memories. If the dream was interrupted, recovering it is all that is done."""
    gated.check("user")
    root = gated.store.root
    lock, half = DreamLock(root), next((record for record in read_records(root) if is_open(record)), None)
    said = tuple(recover(gated, lock, now=now)) if half is not None else ()
    if half is not None and half.phase in ("applying", "undoing") and said and dream in (None, half.id):
        return UndoneDream(read_record(root, half.id) or half, (), (), said)
    record = _choose_dream(read_records(root), dream)
    hold = lock.acquire(lock.last_ns())
    if isinstance(hold, NotWon) and half is not None and half.phase == "applying":
        raise InputError(Text("dream {id}", id=record.id), CANNOT_UNDO, "try again in a moment")
    with hold if isinstance(hold, HeldDreamLock) else nullcontext():
        write_record(root, msgspec.structs.replace(record, phase="undoing"))
        try:
            return _undo_dream(gated, record, now, keep=True)._replace(said=said)
        except BaseException:
            if isinstance(hold, HeldDreamLock):
                hold.leave()
            raise


def _choose_dream(known: list[DreamRecord], dream: str | None) -> DreamRecord:
    undoable = [record for record in known if record.status == "completed" and is_real(record)]
    if dream is None:
        if not undoable:
            raise InputError("dream", Text("there is nothing to undo (the last {limit} dreams are kept)", limit=KEPT), _LIST)
        return undoable[0]
    record = next((record for record in known if record.id == dream), None)
    if record is None:
        raise InputError(Text("dream {id}", id=dream), Text("not found (the last {limit} dreams are kept)", limit=KEPT), _LIST)
    if record.status == "undone":
        raise InputError(Text("dream {id}", id=dream), "is already undone", _LIST)
    if record.status == "running":
        raise InputError(Text("dream {id}", id=dream), "is still running", _RUNS)
    if record not in undoable:
        raise InputError(
            Text("dream {id}", id=dream), Text("has no changes to undo (status: {status})", status=record.status), _LIST
        )
    if undoable[0] != record:
        raise UndoOrder(Text("dream {id}", id=dream), Text("dream {id}", id=undoable[0].id))
    return record
