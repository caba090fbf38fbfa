"""The vectors of a directory's memories, in a file per encoder next to the journal, and the memories closest to a question.

The first line of a file says what made the vectors; each further line has those of one memory, valid for exactly the file (time,
size, inode) they were made from. A save appends a line. The next search encodes missing and changed memories. Each line has a
checksum: a damaged line counts as missing. A file that is missing, or of another encoder, is made anew. Vectors are stored as
bytes and compared after subtracting their mean: what all memories of a store share tells none of them apart. An encoder may give
several vectors for a memory; the closest counts.
"""

from __future__ import annotations

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

    __slots__ = ("_end", "_file", "_head", "_inode", "_matrix", "_mean", "_rows", "_starts", "_stored", "encoder")

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self._file = FILE.format(encoder.kind)
        self._matrix: np.ndarray[Any, Any] | None = None
        self._forget()

    def _forget(self) -> None:
        self._head = _Head.of(self.encoder, b"", 0)
        self._rows: dict[str, _Row] = {}
        self._inode = self._end = self._stored = 0  # of the file as read; the number of its lines

    def follow(self, root: RootDir, headers: Sequence[TopicHeader], texts: Texts, new: Sequence[TopicHeader]) -> None:
        """Encode what is new, and store it. The cosines are in the order of `headers`; all but `new` had vectors before."""
        whole = self._read(root) if self._matrix is None or self._missing(new) else True
        count = len(headers)
        if not self._rows or not self._head.fitted_with <= GROWTH * count <= GROWTH * GROWTH * self._head.fitted_with:
            head = _Head.of(self.encoder, self.encoder.fit(texts(headers)), count)
            if head.fitted != self._head.fitted:
                self._rows = {}
            self._head, whole, new = head, False, headers
        made = self._encoded(self._missing(new), texts)
        if self._has_other_sizes(made):
            made, whole = self._encoded(headers, texts), False
        self._rows |= {row.file: row for row in made}
        if not whole or self._stored + len(made) > GROWTH * max(count, MOST_AT_SAVE):
            self._rows = {header.file: self._rows[header.file] for header in headers}
            self._replace(root)
        elif made:
            self._append(root, made)
        self._take([self._rows[header.file].data for header in headers])

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
            self.follow(root, there, texts, there)

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
        found = _normed(self.encoder.encode([part for some in parts for part in some], self._head.fitted))
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
        try:
            found = root.stat(self._file)
            data = (root.read_bytes(self._file, MOST_BYTES) or b"") if found is not None else b""
        except DiskError:
            found, data = None, b""
        if found is None or found.st_ino != self._inode or len(data) < self._end:
            self._forget()
        lines, whole = data[self._end :].split(b"\n"), data.endswith(b"\n")
        try:
            if not self._end:
                self._head = msgspec.json.decode(lines.pop(0), type=_Head)
                if not self._head.is_of(self.encoder):
                    raise msgspec.DecodeError
        except UNDECODABLE:
            self._forget()
            return False
        self._inode, self._end = found.st_ino if found is not None else 0, len(data)
        decode = msgspec.json.Decoder(_Row).decode
        for line in filter(None, lines):
            try:
                row = decode(line)
                if row.check != crc32(row.data):
                    raise msgspec.DecodeError
                self._rows[row.file] = row
            except UNDECODABLE:
                whole = False
        self._stored += len(lines)
        return whole

    def _replace(self, root: RootDir) -> None:
        lines = [msgspec.json.encode(each) for each in (self._head, *self._rows.values())]
        self._inode = 0
        with suppress(DiskError):  # vectors that cannot be stored are made again
            root.replace(self._file, b"\n".join([*lines, b""]), durability="process")

    def _append(self, root: RootDir, rows: Sequence[_Row]) -> None:
        with suppress(DiskError):
            root.append(self._file, [msgspec.json.encode(row) for row in rows], durability="process")

    # Comparison

    def _take(self, vectors: list[bytes]) -> None:
        import numpy as np

        sizes = np.fromiter(map(len, vectors), np.int64, len(vectors))
        dimensions = self.encoder.dimensions or int(min(sizes, default=1))
        found = np.frombuffer(b"".join(vectors), np.int8).reshape(-1, dimensions).astype(np.float32)
        found /= _lengths(found)
        self._starts = (sizes.cumsum() - sizes) // dimensions
        self._mean = found.mean(0) if len(found) else np.zeros(dimensions, np.float32)
        found -= self._mean
        found /= _lengths(found)
        self._matrix = found

    def cosines(self, question: str) -> np.ndarray[Any, Any] | None:
        """Return the cosine of each memory to the question; None if the encoder gives vectors of another size now."""
        import numpy as np

        asked = _normed(self.encoder.encode([question], self._head.fitted))
        if self._matrix is None or not len(self._matrix) or asked.shape[1] != self._matrix.shape[1]:
            return None
        # `@` would wake threads, which takes longer than the work on a busy machine.
        found = np.einsum("ij,j->i", self._matrix, _normed(asked - self._mean)[0])
        closest: np.ndarray[Any, Any] = np.maximum.reduceat(found, self._starts)
        return closest


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
            table.follow(root, list(self.headers.values()), texts, new)

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


def _normed(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = rows / _lengths(rows)
    return found


def _lengths(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the length of each row, as a column to divide by."""
    import numpy as np

    found: np.ndarray[Any, Any] = np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1e-9)[:, None]
    return found
