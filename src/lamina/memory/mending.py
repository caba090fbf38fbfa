"""What a writer that was stopped left undone in a memory directory, found and finished (S6, Z12).

Owns no files. Only the newest change of the journal can be half done: every writer mends before it writes, under the store's guard.
Invariants: a line that a person took out of the index stays out, and one that they worded stays as it is; a removal that did not reach
its file did not happen; whatever is mended is said. A crash at any line is mended by the next one.
"""

from __future__ import annotations

from ..disk.paths import RootDir
from .history import History
from .index import INDEX, Entry, line_of
from .index_file import IndexFile
from .journal import Last, digest_of
from .shelf import Shelf, shown
from .store import MOST_READ
from .topic import Topic, read_topic


def needs_mending(shelf: Shelf, index: IndexFile, history: History) -> bool:
    return unlisted(shelf, index, history) is not None or (index.data() is None and bool(shelf.scanner.files()))


def mend(shelf: Shelf, index: IndexFile, history: History, *, now: float) -> tuple[str, ...]:
    """A missing index is made from the memories, a line that is missing is added, and a change that did not happen is noted."""
    said: tuple[str, ...] = ()
    path = shelf.root.path / INDEX
    if index.data() is None and (headers := shelf.scanner.headers()):
        index.rebuild(headers)
        said = (f"{path} was missing and was made again from {len(headers)} memories.",)
    elif (topic := unlisted(shelf, index, history)) is not None:
        index.add(topic)
        said = (f"{path} lacked the line of {topic.file}, whose change was interrupted; it was added.",)
    # Last: the journal's word of the change is what the line above was found by.
    if (newest := history.newest()) is not None and shelf.plain(newest.file):
        history.settle(shelf.root.read_bytes(newest.file, MOST_READ), now=now)
    return said


def unlisted(shelf: Shelf, index: IndexFile, history: History) -> Topic | None:
    """The memory whose save ended between its file and its index line, or whose removal ended between the line and the file."""
    newest = history.newest()
    if newest is None or not shelf.plain(newest.file):
        return None
    file = shelf.root.stat(newest.file)
    if file is None or not _half_done(newest, shelf.root):
        return None
    data = shelf.root.read_bytes(newest.file, MOST_READ)
    if data is None or digest_of(data) != (newest.before if newest.action == "remove" else newest.digest):
        return None
    topic = read_topic(newest.file, shown(data), file.st_mtime)
    line = index.line(newest.file)
    return topic if line is None or _is_old(line, topic, newest, history) else None


def _is_old(line: str, topic: Topic, newest: Last, history: History) -> bool:
    """Whether the index has the line we wrote for the content before. One that a person worded is theirs."""
    if line == line_of(Entry(topic.name, topic.file, topic.description)):
        return False
    text = history.content_of(newest.before)
    before = read_topic(newest.file, text, 0) if text is not None else None
    return before is not None and line == line_of(Entry(before.name, before.file, before.description))


def _half_done(newest: Last, root: RootDir) -> bool:
    """Whether the change may lack its index line. One that a person took out later stays out: then the index is newer than the file."""
    file, index = root.stat(newest.file), root.stat(INDEX)
    if file is None or index is None:
        return False
    match newest.action:
        case "remove":
            return True
        case "save" | "restore":
            return index.st_mtime_ns <= file.st_mtime_ns
        case _:
            return False
