"""The topic files of a memory directory, as they are found and read (S5).

Owns which file a name means. Invariants: two names are one memory only if `same_name` says so, whatever their files are called; a file
that is no plain text of a size that can be journaled is read and never changed; nothing here writes.
"""

from __future__ import annotations

import msgspec

from ...core.errors import DiskError
from ...disk.trees.rootdir import RootDir
from .contract import MOST_READ, READ_IN_PART
from .scan import Scanner, is_topic
from .topic import Topic, file_name, folded, read_topic, same_name


class Shelf:
    __slots__ = ("root", "scanner")

    def __init__(self, root: RootDir, *, after: Shelf | None = None) -> None:
        """`after` was a shelf of the same directory: what it knows is looked at again, not read again."""
        self.root = root
        self.scanner: Scanner = Scanner(root, after=after.scanner if after is not None else None)

    def topic(self, file: str) -> Topic | None:
        """None where there is none, or it cannot be read."""
        try:
            data = self.root.read_bytes(file, MOST_READ)
            found = self.root.stat(file)
        except (DiskError, UnicodeEncodeError):
            return None  # a name that is no text is no file's
        if data is None or found is None:
            return None
        topic = read_topic(file, shown(data), found.st_mtime)
        if len(data) < MOST_READ:
            return topic
        return msgspec.structs.replace(topic, problems=(*topic.problems, READ_IN_PART))

    def find(self, name: str) -> str | None:
        """The file of the memory of this name, or the file of that name."""
        if name.endswith(".md"):
            return self._with_file(name) or self.named(name)
        return self.named(name) or self._with_file(f"{name}.md")

    def meant(self, name: str) -> str | None:
        """The file a save of this name changes. A name is a name; only what is spelled as a file may mean one."""
        return self.find(name) if name.endswith(".md") else self.named(name)

    def named(self, name: str) -> str | None:
        """The file its name would have is looked at first: most saves need no scan."""
        key, direct = same_name(name), file_name(name)
        if (topic := self.topic(direct)) is not None and same_name(topic.name) == key:
            return direct
        return min((header.file for header in self.scanner.headers() if same_name(header.name) == key), default=None)

    def _with_file(self, file: str) -> str | None:
        """As it is spelled, which needs no scan; else in whatever case it has."""
        if is_topic(file) and self.topic(file) is not None:
            return file
        key = folded(file)
        return min((found.file for found in self.scanner.files() if folded(found.file) == key), default=None)

    def whole(self, file: str) -> bytes | None:
        """The bytes of a file that may be changed; None where there is none."""
        data = self.root.read_bytes(file, MOST_READ)
        if data is not None and len(data) >= MOST_READ:
            raise DiskError(file, f"is larger than {MOST_READ >> 10} KiB", "move it away, it is no memory")
        # The journal holds texts: what it could not give back byte for byte is not touched.
        if data is not None and shown(data).encode() != data:
            raise DiskError(file, "is no UTF-8 text", "convert it, or remove it by hand")
        return data

    def there(self, file: str) -> bytes:
        """As `whole`, of a file that was there a moment ago."""
        data = self.whole(file)
        if data is None:
            raise changed(file)
        return data

    def free(self, name: str) -> str:
        """A file name that no other memory has, in any spelling."""
        from .draft import other_file  # a look at memories loads nothing that only writers need

        first = file_name(name)
        for file in (first, other_file(first, same_name(name)), other_file(first, name)):
            # A link or a device there is refused before anything is written; a directory of that name is as good as taken.
            if self.root.stat(file) is None and self.root.twin(file) is None:
                return file
        raise DiskError(first, "is taken by another memory", "give this one another name")


def shown(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def changed(file: str) -> DiskError:
    return DiskError(file, "was changed by somebody else at this moment", "read it again and save what still holds")
