"""What a writer that was stopped left undone in a memory directory, finished (S6, Z12), and files put back as they were (B4).

Owns no files. Only the newest change of the journal can be half done: every writer repairs before it writes, under the store's guard.
Invariants: a line that a user took out of the index stays out, and one that they worded stays as it is; a removal that did not reach
its file did not happen; whatever is repaired is said. A crash at any line is repaired by the next writer.

Several files come back as one, byte for byte and with their time: memories before those go that stood in for them, and the index last.
Under one guard, so no other process is in between; each file is journaled as a restore or a removal; a file that is not as the caller
knows it is left to whoever changed it; no line points at a file that is not there. After a crash the same call again finishes it: what
is back already is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ...core.errors import DiskError
from .contract import MOST_READ, ChangeReason
from .history import MemoryHistory, hold_guard
from .index import INDEX, IndexFile, entry_line, entry_of
from .journal import JournalHead, MemoryChange, digest_of
from .topic import Topic, read_topic
from .topic_files import TopicFiles, decode_text

if TYPE_CHECKING:
    from .directory import DirectoryStore


# The newest change and the file it was about, as it is now; None: it is gone.
_Newest: TypeAlias = tuple[JournalHead, bytes | None]


def needs_repair(files: TopicFiles, index: IndexFile, history: MemoryHistory) -> bool:
    if not index.there():
        return bool(files.files())
    newest = _looked_at(files, history.newest())
    return newest is not None and _unlisted(newest, files, index, history) is not None


def repair(files: TopicFiles, index: IndexFile, history: MemoryHistory, *, now: float) -> tuple[str, ...]:
    """A missing index is made from the memories, a line that is missing is added, and a change that did not happen is noted.

    The guard is held: what the journal says when this is over is all there is to know until it is let go.
    """
    said: tuple[str, ...] = ()
    path = files.root.path / INDEX
    history.catch_up()
    newest = _looked_at(files, history.latest)
    if not index.there():
        if headers := files.headers():
            index.rebuild(headers)
            said = (f"{path} was missing and was made again from {len(headers)} memories.",)
    elif newest is not None and (topic := _unlisted(newest, files, index, history)) is not None:
        index.add(topic)
        said = (f"{path} lacked the line of {topic.file}, whose change was interrupted; it was added.",)
    # Last: the journal's word of the change is what the line above was found by.
    if newest is not None:
        history.settle(newest[1], now=now)
    return said


def _looked_at(files: TopicFiles, newest: JournalHead | None) -> _Newest | None:
    """None where there is nothing to mend. One file that somebody made a link of keeps no other memory from being saved."""
    if newest is None:
        return None
    try:
        return newest, files.root.read_bytes(newest.file, MOST_READ)
    except DiskError:
        return None


def _unlisted(newest: _Newest, files: TopicFiles, index: IndexFile, history: MemoryHistory) -> Topic | None:
    """The memory whose save ended between its file and its index line, or whose removal ended between the line and the file."""
    change, data = newest
    if data is None or not _half_done(change, files):
        return None
    if digest_of(data) != (change.before if change.action == "remove" else change.digest):
        return None
    topic = read_topic(change.file, decode_text(data), 0)
    line = index.line(change.file)
    return topic if line is None or _is_old(line, topic, change, history) else None


def _is_old(line: str, topic: Topic, change: JournalHead, history: MemoryHistory) -> bool:
    """Whether the index has the line we wrote for the content before. One that a person worded is theirs."""
    if line == entry_line(entry_of(topic)):
        return False
    text = history.content_of(change.before)
    before = read_topic(change.file, text, 0) if text is not None else None
    return before is not None and line == entry_line(entry_of(before))


def _half_done(change: JournalHead, files: TopicFiles) -> bool:
    """Whether the change may lack its index line. One that a person took out later stays out: then the index is newer than the file."""
    if change.action not in ("save", "restore"):
        return change.action == "remove"
    file, index = files.root.stat(change.file), files.root.stat(INDEX)
    return file is not None and index is not None and index.st_mtime_ns <= file.st_mtime_ns


# Files put back


class FileToRestore(NamedTuple):
    """A file as it shall be: `data` None: gone. `known` are the digests of what it may hold to be replaced; empty stands for no file."""

    file: str
    data: bytes | None
    known: Collection[str]
    mtime_ns: int = 0


class RestoreResult(NamedTuple):
    """`back`: as they were; `left`: changed by somebody else."""

    back: tuple[str, ...]
    left: tuple[str, ...]


def restore_files(
    store: DirectoryStore,
    wanted: Sequence[FileToRestore],
    *,
    index: Callable[[str, Collection[str]], str | None],
    why: ChangeReason,
) -> RestoreResult:
    """`index` gets the index as it is and the files that are back, and says how it shall be; None: there was none."""
    back, left = list[str](), list[str]()
    with hold_guard(store.root):
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
