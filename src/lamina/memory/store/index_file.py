"""`MEMORY.md` on disk: read, changed and made again (S3, S6).

Owns the file; what its lines say is `index`. Invariants: a change is made of the index as it is at that moment, so a person's edit is
merged and never lost; bytes that are no UTF-8 pass through unchanged; one that is too long to be an index is left alone.

A crash at any line leaves the old index or the new one. Writers hold the store's guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...core.errors import DiskError
from ...disk.temp_files import Durability
from ...disk.trees.rootdir import RootDir
from .index import INDEX, Entry, entries, line_of, with_entry, without_entry
from .scan import Header
from .topic import Topic, folded

# An index is sent up to 25,000 bytes; one a hundred times as long is no index.
MOST_INDEX = 4 << 20
# Each lost round means that somebody saved the index in that very moment.
_ROUNDS = 10


class IndexFile:
    __slots__ = ("_durability", "_root")

    def __init__(self, root: RootDir, *, durability: Durability = "full") -> None:
        self._root = root
        self._durability: Durability = durability

    def data(self) -> bytes | None:
        return self._root.read_bytes(INDEX, MOST_INDEX)

    def there(self) -> bool:
        return self._root.stat(INDEX) is not None

    def text(self) -> str:
        return (self.data() or b"").decode("utf-8", "replace")

    def line(self, file: str) -> str | None:
        """The line that points at this file, as it stands there."""
        key = folded(file)
        rows = (row.rstrip("\r") for row in self.text().split("\n") if "](" in row)
        return next((row for row in rows if any(folded(entry.file) == key for entry in entries(row))), None)

    def add(self, topic: Topic) -> None:
        self.edit(lambda text: with_entry(text, Entry(topic.name, topic.file, topic.description)))

    def drop(self, file: str) -> None:
        self.edit(lambda text: without_entry(text, file))

    def rebuild(self, headers: Iterable[Header]) -> None:
        """Ordered by file, which is by topic: where `with_entry` would put them one by one."""
        ordered = sorted(headers, key=lambda header: folded(header.file))
        lines = (line_of(Entry(header.name, header.file, header.description)) for header in ordered)
        text = "".join(f"{line}\n" for line in lines)
        self.edit(lambda there: there or text)

    def edit(self, change: Callable[[str], str]) -> None:
        for _ in range(_ROUNDS):
            old = self.data()
            if old is not None and len(old) >= MOST_INDEX:
                raise too_long()
            new = change((old or b"").decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
            if new == old or self._root.replace_if(INDEX, new, expected=old, durability=self._durability):
                return
        raise never_still()


def too_long() -> DiskError:
    return DiskError(INDEX, f"is larger than {MOST_INDEX >> 20} MiB", "move it away, it is rebuilt from the memories")


def never_still() -> DiskError:
    return DiskError(INDEX, "is changed again and again by another program", "close it there and try again")
