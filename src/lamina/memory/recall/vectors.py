"""The vectors of a directory's memories, in a file per encoder next to the journal, and the memories closest to a question.

The first line of a file says what made the vectors; each further line has those of one memory, valid for exactly the file (time,
size, inode) they were made from. A save appends a line. The next search encodes missing and changed memories. Each line has a
checksum: a damaged line counts as missing. A file that is missing, or of another encoder, is made anew. Vectors are stored as
bytes. An encoder may give several vectors for a memory; the closest counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self
from zlib import crc32

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError
from ...disk.trees.rootdir import RootDir
from ..store.search_index import IndexState, is_text
from ..store.topic_files import TopicHeader
from .centred_rows import CentredRows, normed
from .encoders import Encoder, WeightedEncoder

if TYPE_CHECKING:
    import numpy as np

FILE = ".history/vectors-{}.jsonl"
MOST_BYTES = 1 << 30
# What an encoder learned from a store is learned again when the store has doubled. A file with as many outdated lines as valid
# ones is written anew.
GROWTH = 2
# A save makes the vectors of all memories if there are none yet and the memories are few. Otherwise the next search does.
MOST_AT_SAVE = 50
_VERSION = 3

Texts = Callable[[Sequence[TopicHeader]], Sequence[str]]


class _Head(msgspec.Struct, array_like=True):
    version: int
    encoder: str
    fitted: bytes
    fitted_with: int  # the number of memories
    check: int

    @classmethod
    def of(cls, encoder: Encoder, fitted: bytes, fitted_with: int) -> Self:
        return cls(_VERSION, encoder.name, fitted, fitted_with, crc32(fitted))

    def is_of(self, encoder: Encoder) -> bool:
        return (self.version, self.encoder, self.check) == (_VERSION, encoder.name, crc32(self.fitted))


class _Row(msgspec.Struct, array_like=True, gc=False):
    file: str
    mtime_ns: int
    size: int
    inode: int
    data: bytes  # one byte per dimension, vector by vector
    check: int

    def is_of(self, header: TopicHeader) -> bool:
        return (self.mtime_ns, self.size, self.inode) == (header.mtime_ns, header.size, header.inode)


class VectorTable:
    """The vectors that one encoder made for one directory. Not thread-safe."""

    __slots__ = ("_compared", "_end", "_file", "_head", "_inode", "_rows", "_stored", "encoder")

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._file = FILE.format(encoder.kind)
        self._forget()

    def _forget(self) -> None:
        self._head = _Head.of(self.encoder, b"", 0)
        self._rows: dict[str, _Row] = {}
        self._compared: CentredRows | None = None
        self._inode = self._end = self._stored = 0  # of the file as read; the number of its lines

    def follow(self, root: RootDir, headers: Sequence[TopicHeader], texts: Texts, new: Sequence[int]) -> None:
        """Encode what is new, and store it. The cosines are in the order of `headers`; all but those at the places `new` had
        vectors before."""
        changed, count, whole = [headers[at] for at in new], len(headers), True
        if self._compared is None or self._missing(changed):
            whole = self._read(root)
        if not self._rows or not self._head.fitted_with <= GROWTH * count <= GROWTH * GROWTH * self._head.fitted_with:
            head, whole = _Head.of(self.encoder, self.encoder.fit(texts(headers)), count), False
            if head.fitted != self._head.fitted:
                self._rows = {}
            self._head, self._compared = head, None
        if self._compared is None:  # nothing was read before, or the file is another one now
            changed = list(headers)
        made = self._encoded(self._missing(changed), texts)
        if self._has_other_sizes(made):
            made, whole, self._compared = self._encoded(headers, texts), False, None
        self._rows |= {row.file: row for row in made}
        if not whole or self._stored + len(made) > GROWTH * max(count, MOST_AT_SAVE):
            self._rows = {header.file: self._rows[header.file] for header in headers}
            self._replace(root)
        elif made:
            self._append(root, made)
        few = self._compared if len(new) < count else None  # all of them may be in another order
        if few is None or not few.put({at: self._rows[headers[at].file].data for at in new}):
            self._compared = CentredRows([self._rows[header.file].data for header in headers], self.encoder.dimensions)

    def add(
        self, root: RootDir, headers: Sequence[TopicHeader], everything: Callable[[], Sequence[TopicHeader]], texts: Texts
    ) -> None:
        """Encode saved memories and append their vectors; `everything` returns all memories."""
        self._read(root)
        if self._rows:
            made = self._encoded(self._missing(headers), texts)
            self._append(root, made)
            self._rows |= {row.file: row for row in made}
        elif len(there := everything()) <= MOST_AT_SAVE:
            self.follow(root, there, texts, range(len(there)))
            self._compared = None  # the next search has its own order

    def _missing(self, headers: Sequence[TopicHeader]) -> list[TopicHeader]:
        rows = self._rows
        return [each for each in headers if (row := rows.get(each.file)) is None or not row.is_of(each)]

    def _has_other_sizes(self, made: Sequence[_Row]) -> bool:
        """Tell whether a server gives vectors of another size than those in the file."""
        known = next(iter(self._rows.values()), None)
        return bool(made) and known is not None and self.encoder.dimensions is None and len(known.data) != len(made[0].data)

    def _encoded(self, headers: Sequence[TopicHeader], texts: Texts) -> list[_Row]:
        import numpy as np

        if not headers:
            return []
        parts = [self.encoder.parts(text) for text in texts(headers)]
        found = normed(self.encoder.encode([part for some in parts for part in some], self._head.fitted))
        rows = np.round(found * 127 / np.maximum(np.abs(found).max(1, keepdims=True), 1e-9)).astype(np.int8)
        made, at = list[_Row](), 0
        for header, some in zip(headers, parts, strict=True):
            data = rows[at : at + len(some)].tobytes()
            made.append(_Row(header.file, header.mtime_ns, header.size, header.inode, data, crc32(data)))
            at += len(some)
        return made

    # The file

    def _read(self, root: RootDir) -> bool:
        """Read what was added to the file since the last look. Return False if it must be written anew."""
        data, inode = self._tail(root)
        lines, whole = data.split(b"\n"), data.endswith(b"\n") or bool(self._end and not data)
        try:
            if not self._end:
                self._head = msgspec.json.decode(lines.pop(0), type=_Head)
                if not self._head.is_of(self.encoder):
                    raise msgspec.DecodeError
        except UNDECODABLE:
            self._forget()
            return False
        self._inode, self._end = inode, self._end + len(data)
        decode = msgspec.json.Decoder(_Row).decode
        for line in filter(None, lines):
            self._stored += 1
            try:
                row = decode(line)
                if row.check != crc32(row.data):
                    raise msgspec.DecodeError
                self._rows[row.file] = row
            except UNDECODABLE:
                whole = False
        return whole

    def _tail(self, root: RootDir) -> tuple[bytes, int]:
        """Return what follows the part of the file that was read, and the file's inode. Another file is read from its beginning."""
        try:
            with os.fdopen(root.open_read(self._file), "rb") as file:
                found = os.fstat(file.fileno())
                if found.st_ino != self._inode or found.st_size < self._end:
                    self._forget()
                file.seek(self._end)
                return file.read(MOST_BYTES), found.st_ino
        except (DiskError, OSError):
            self._forget()
            return b"", 0

    def _replace(self, root: RootDir) -> None:
        lines = [msgspec.json.encode(each) for each in (self._head, *self._rows.values())]
        data = b"\n".join([*lines, b""])
        self._inode = 0
        with suppress(DiskError):  # vectors that cannot be stored are made again
            root.replace(self._file, data, durability="process")
            if (found := root.stat(self._file)) is not None:
                self._inode, self._end, self._stored = found.st_ino, len(data), len(self._rows)

    def _append(self, root: RootDir, rows: Sequence[_Row]) -> None:
        lines = [msgspec.json.encode(row) for row in rows]
        with suppress(DiskError):
            if root.append(self._file, lines, durability="process") == self._end:  # else another process appended, too
                self._end, self._stored = self._end + sum(map(len, lines)) + len(lines), self._stored + len(lines)

    def cosines(self, question: str) -> np.ndarray[Any, Any] | None:
        """Return the cosine of each memory to the question; None if the encoder gives vectors of another size now."""
        if self._compared is None:
            return None
        return self._compared.cosines(self.encoder.encode([question], self._head.fitted)[0])


class VectorTables:
    """The tables of all encoders for one directory. Not thread-safe."""

    __slots__ = ("_places", "_tables", "encoders", "headers", "state")

    def __init__(self, encoders: Sequence[WeightedEncoder]) -> None:
        self.encoders = tuple(encoders)
        self.state = IndexState(-1, None)  # of the search index that these vectors belong to
        self._tables = [(VectorTable(each.encoder), each.share) for each in encoders]
        self.headers: dict[str, TopicHeader] = {}  # of the memories compared, by file
        self._places: dict[str, int] = {}

    def follow(self, root: RootDir, headers: Sequence[TopicHeader], texts: Texts) -> None:
        """Make the vectors of these memories."""
        self.headers, self._places = {}, {}
        self.follow_new(root, [header for header in headers if is_text(header.file)], texts)

    def follow_new(self, root: RootDir, new: Sequence[TopicHeader], texts: Texts) -> None:
        """Make the vectors of new and changed memories; the others are as they were at the last call."""
        for header in new:
            self.headers[header.file] = header
            self._places.setdefault(header.file, len(self._places))
        for table, _ in self._tables:
            table.follow(root, list(self.headers.values()), texts, [self._places[header.file] for header in new])

    def add(
        self, root: RootDir, headers: Sequence[TopicHeader], everything: Callable[[], Sequence[TopicHeader]], texts: Texts
    ) -> None:
        headers = [header for header in headers if is_text(header.file)]
        for table, _ in self._tables:
            table.add(root, headers, everything, texts)

    def similarities(self, question: str, beside: Sequence[str], most: int) -> Mapping[str, float]:
        """Return how close the closest files are to the question, and the files `beside`, by the weighted mean cosine."""
        import numpy as np

        given = [(share, cosines) for table, share in self._tables if (cosines := table.cosines(question)) is not None]
        if not given:
            return {}
        found = np.sum([share * cosines for share, cosines in given], axis=0) / sum(share for share, _ in given)
        closest: list[int] = np.argpartition(-found, min(most, len(found)) - 1)[:most].tolist() if most > 0 else []
        files, near = list(self.headers), (self._places[file] for file in beside if file in self._places)
        return {files[at]: float(found[at]) for at in (*closest, *near)}
