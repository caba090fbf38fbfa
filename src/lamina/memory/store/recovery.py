"""Recovery: complete a single change that was interrupted in a memory directory; `change_sets` undoes an unfinished set.

Only the newest change of the journal can be half done, because every writer repairs before it writes, under the store's
guard. Invariants: an index line that the user removed stays out, and one that the user worded stays unchanged. A removal
that did not reach its file did not happen. Every repair is reported. A crash at any line is repaired by the next writer.
"""

from __future__ import annotations

from typing import TypeAlias

from ...core.errors import DiskError
from ...language.wording import counted
from .contract import MOST_READ
from .history import MemoryHistory
from .index import INDEX, entry_line, entry_of
from .index_file import IndexFile
from .journal import JournalHead, digest_of
from .topic import Topic, read_topic
from .topic_files import TopicFiles, decode_text

# The newest change, and its file's current content; None if the file is gone.
_Newest: TypeAlias = tuple[JournalHead, bytes | None]


def needs_repair(files: TopicFiles, index: IndexFile, history: MemoryHistory) -> bool:
    if not index.there():
        return bool(files.files())
    last = history.newest()
    if last is not None and last.part:
        return True
    newest = _looked_at(files, last) if not index.is_too_long() else None
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
    if newest is None or newest.file == INDEX:
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
