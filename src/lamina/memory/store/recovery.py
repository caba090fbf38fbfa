"""Recovery: complete the work of an interrupted writer in a memory directory, and restore files to an earlier state.

Only the newest change of the journal can be half done, because every writer repairs before it writes, under the store's
guard. Invariants: an index line that the user removed stays out, and one that the user worded stays unchanged. A removal
that did not reach its file did not happen. Every repair is reported. A crash at any line is repaired by the next writer.

Several files are restored together, byte for byte and with their times: first the memories, then removals of the files that
replaced them, then the index. The caller holds the guard, so no other process comes in between. Each file is journaled as
a restore or a removal. A file that is not as the caller knows it is left alone. No line points at a missing file. After a
crash, the same call finishes the work; files that are already restored are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ...core.errors import DiskError
from ...language.wording import counted
from .contract import MOST_READ, ChangeReason
from .history import MemoryHistory
from .index import INDEX, entry_line, entry_of
from .index_file import IndexFile
from .journal import JournalHead, MemoryChange, digest_of
from .topic import Topic, read_topic
from .topic_files import TopicFiles, decode_text

if TYPE_CHECKING:
    from .directory import DirectoryStore


# The newest change, and its file's current content; None if the file is gone.
_Newest: TypeAlias = tuple[JournalHead, bytes | None]


def needs_repair(files: TopicFiles, index: IndexFile, history: MemoryHistory) -> bool:
    if not index.there():
        return bool(files.files())
    newest = _looked_at(files, history.newest()) if not index.is_too_long() else None
    return newest is not None and _unlisted(newest, files, index, history) is not None


def repair(files: TopicFiles, index: IndexFile, history: MemoryHistory, *, now: float) -> tuple[str, ...]:
    """Rebuild a missing index, add a missing line, and record a change that did not happen. Return the notices.

    The guard is held: until it is released, the journal cannot change any more.
    """
    notices: tuple[str, ...] = ()
    path = files.root.path / INDEX
    history.catch_up()
    newest = _looked_at(files, history.latest)
    if not index.there():
        if headers := files.headers():
            index.rebuild(headers)
            notices = (f"{path} was missing and was rebuilt from {counted(len(headers), 'memory')}.",)
    elif newest is not None and not index.is_too_long() and (topic := _unlisted(newest, files, index, history)) is not None:
        index.add(topic, was=newest[0].was)
        notices = (f"{path} lacked the line of {topic.file} after an interrupted change; the line was added.",)
    # Do this last: the line above was found through the journal's newest change.
    if newest is not None:
        history.settle(newest[1], now=now)
    return notices


def _looked_at(files: TopicFiles, newest: JournalHead | None) -> _Newest | None:
    """Read the file of the newest change; None if there is nothing to repair. A file replaced by a link must not block
    saving other memories."""
    if newest is None:
        return None
    try:
        return newest, files.root.read_bytes(newest.file, MOST_READ)
    except DiskError:
        return None


def _unlisted(newest: _Newest, files: TopicFiles, index: IndexFile, history: MemoryHistory) -> Topic | None:
    """Return the memory whose save stopped between file and index line, or whose removal stopped between line and file."""
    change, data = newest
    if data is None or not _half_done(change, files, index):
        return None
    if digest_of(data) != (change.before if change.action == "remove" else change.digest):
        return None
    topic = read_topic(change.file, decode_text(data), 0)
    line = index.line(change.file)
    return topic if line is None or _is_old(line, topic, change, history) else None


def _is_old(line: str, topic: Topic, change: JournalHead, history: MemoryHistory) -> bool:
    """Tell whether the index has our line for the previous content. A line that the user worded is not ours."""
    if line == entry_line(entry_of(topic)):
        return False
    text = history.content_of(change.before)
    before = read_topic(change.file, text, 0) if text is not None else None
    return before is not None and line == entry_line(entry_of(before))


def _half_done(change: JournalHead, files: TopicFiles, index: IndexFile) -> bool:
    """Tell whether the change may lack its index line. A line that the user removed later stays out: then the index is newer
    than the file."""
    if change.action == "rename":
        return index.line(change.was) is not None and files.root.stat(change.was) is None
    if change.action not in ("save", "restore"):
        return change.action == "remove"
    file, there = files.root.stat(change.file), files.root.stat(INDEX)
    return file is not None and there is not None and there.st_mtime_ns <= file.st_mtime_ns


# Restoring files


class FileToRestore(NamedTuple):
    """A file to restore. `data` is None to remove it. It is replaced only if its digest is in `known`; an empty digest
    means no file."""

    file: str
    data: bytes | None
    known: Collection[str]
    mtime_ns: int = 0


class RestoreResult(NamedTuple):
    """The result of a restore. `back`: restored files; `left`: files that someone else changed."""

    back: tuple[str, ...]
    left: tuple[str, ...]


def restore_files(
    store: DirectoryStore,
    wanted: Sequence[FileToRestore],
    *,
    index: Callable[[str, Collection[str]], str | None],
    why: ChangeReason,
) -> RestoreResult:
    """Restore files. `index` gets the current index and the restored files and returns the new index; None if there was
    none. The guard is held, so the caller knows what it replaces."""
    back, left = list[str](), list[str]()
    for one in sorted(wanted, key=lambda one: one.data is None):
        (back if _returned(store, one, why) else left).append(one.file)
    store.repair()
    if index(store.index(), back) is None:
        store.root.unlink(INDEX)
    else:
        store.index_file.edit(lambda now: index(now, back) or "")
    return RestoreResult(tuple(back), tuple(left))


def _returned(store: DirectoryStore, one: FileToRestore, why: ChangeReason) -> bool:
    store.repair()
    there = store.root.read_bytes(one.file, MOST_READ)
    if there == one.data:
        return True
    if digest_of(there) not in one.known:
        return False
    name = read_topic(one.file, decode_text(one.data if one.data is not None else there), 0).name
    change = MemoryChange(one.file, name, "remove" if one.data is None else "restore", there, one.data, why)
    store.history.record(change, now=store.clock())
    if one.data is None:
        store.index_file.drop(one.file)
        if store.root.read_bytes(one.file, MOST_READ) != there:
            return False
        store.root.unlink(one.file)
        return True
    return store.root.replace_if(one.file, one.data, expected=there, durability=store.durability, mtime_ns=one.mtime_ns or None)
