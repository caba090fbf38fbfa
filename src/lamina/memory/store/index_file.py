"""The file `MEMORY.md`, and which memories have a line in it.

Invariants: a new line is within what a session receives. If the index is full, lines of ours leave: those of missing files
first, then the least used, then the oldest. The newest quarter leaves last, because a new memory had no time to be used. The
memories stay, and recall finds them. A line that the user worded stays. A change is applied to the index as it is at that
moment, so a user's edit is merged and never lost. Bytes that are not UTF-8 pass through unchanged. A file too long for an index
is left alone.

A crash at any line leaves the old index or the new one. Writers hold the store's guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from ...core.errors import DiskError
from ...disk.temp_files import Durability
from ...disk.trees.rootdir import RootDir
from ...disk.trees.scan import modification_times
from ...language.text import Text
from .contract import MOST_READ
from .index import (
    MOST_INDEX,
    MOST_LINES,
    choose_lines,
    drop_entry,
    entry_line,
    entry_of,
    is_over,
    make_room,
    put_entry,
    read_entries,
)
from .topic import INDEX, Topic, fold_name, read_topic
from .topic_files import TopicHeader, decode_text
from .uses import read_uses

# Each failed round means that another program saved the index at that very moment.
_ROUNDS = 10


class IndexFile:
    __slots__ = ("_durability", "_root")

    def __init__(self, root: RootDir, *, durability: Durability = "full") -> None:
        self._root = root
        self._durability: Durability = durability

    def data(self) -> bytes | None:
        return self._root.read_bytes(INDEX, MOST_INDEX)

    def exists(self) -> bool:
        return self._root.stat(INDEX) is not None

    def is_too_long(self) -> bool:
        status = self._root.stat(INDEX)
        return status is not None and status.st_size >= MOST_INDEX

    def text(self) -> str:
        return (self.data() or b"").decode("utf-8", "replace")

    def line(self, file: str) -> str | None:
        """Return the line that points at this file, unchanged."""
        key = fold_name(file)
        rows = (row.rstrip("\r") for row in self.text().split("\n") if "](" in row)
        return next((row for row in rows if any(fold_name(entry.file) == key for entry in read_entries(row))), None)

    def add(self, topic: Topic, *, was: str = "") -> None:
        """Add or renew the line of a memory; `was` is its former file. If the index is full, other lines leave."""
        uses = read_uses(self._root)

        def added(text: str) -> str:
            new = put_entry(text, entry_of(topic), was=was, uses=uses)
            return make_room(new, self._leaving(new, topic.file, uses), keep=topic.file) if is_over(new) else new

        self.edit(added)

    def _leaving(self, text: str, keep: str, uses: Mapping[str, int]) -> Iterator[str]:
        """Yield the files whose lines may leave the index, the least important first."""
        own = fold_name(keep)
        # A line that leads elsewhere is not ours.
        times = modification_times(self._root, {entry.file for entry in read_entries(text) if fold_name(entry.file) != own})
        lines = {row.removesuffix("\r") for row in text.split("\n")}
        for file in reversed(_most_important(times, uses)):
            if times[file]:
                topic = read_topic(file, decode_text(self._root.read_bytes(file, MOST_READ)), 0)
                if entry_line(entry_of(topic)) not in lines:  # the user worded it
                    continue
            yield file

    def drop(self, file: str) -> None:
        if not self.is_too_long():
            self.edit(lambda text: drop_entry(text, file))

    def rebuild(self, headers: Iterable[TopicHeader]) -> None:
        """Write a new index, if there is none, with as many memories as a session receives."""
        uses, by_file = read_uses(self._root), {header.file: header for header in headers}
        ranked = _most_important({file: header.mtime_ns for file, header in by_file.items()}, uses)
        text = choose_lines((entry_of(by_file[file]) for file in ranked), uses)
        self.edit(lambda old: old or text)

    def edit(self, change: Callable[[str], str | None]) -> None:
        """Write the result of `change`, which may be called several times; None leaves the file alone."""
        for _ in range(_ROUNDS):
            old = self.data()
            if old is not None and len(old) >= MOST_INDEX:
                raise DiskError(
                    INDEX,
                    Text("is larger than {limit} MiB", limit=MOST_INDEX >> 20),
                    "move it away, and it is rebuilt from the memories",
                )
            text = change((old or b"").decode("utf-8", "surrogateescape"))
            new = old if text is None else text.encode("utf-8", "surrogateescape")
            if new is None or new == old or self._root.replace_if(INDEX, new, expected=old, durability=self._durability):
                return
        raise DiskError(INDEX, "another program keeps changing it", "close it there and try again")


def _most_important(times: Mapping[str, int], uses: Mapping[str, int]) -> list[str]:
    """Sort files by importance: the newest, then the most used, then the newer. A time of 0 means a missing file."""
    newest = set(sorted(times, key=lambda file: -times[file])[: min(MOST_LINES, len(times)) // 4])

    def rank(file: str) -> tuple[bool, bool, int, int, str]:
        return not times[file], file not in newest, -uses.get(fold_name(file), 0), -times[file], file

    return sorted(times, key=rank)
