"""The vectors of a directory's memories, in one file next to the journal, and the memories closest to a question.

A vector is valid for exactly the file (time, size, inode) it was made from. What is missing or changed is encoded at the next
search, and the file is replaced as a whole. A missing or damaged file, or one of another encoder, is made anew. Vectors are
stored as bytes and compared after subtracting their mean: what all memories of a store share tells none of them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ...core.errors import DiskError
from ...disk.trees.rootdir import RootDir
from ..store.topic_files import TopicHeader
from .encoders import Encoder

if TYPE_CHECKING:
    import numpy as np

FILE = ".history/vectors.msgpack"
MOST_BYTES = 512 << 20
# What an encoder learned from a store is learned again when the store has doubled.
GROWTH = 2
_VERSION = 1

Texts = Callable[[Sequence[TopicHeader]], Sequence[str]]


class _Source(NamedTuple):
    file: str
    mtime_ns: int
    size: int
    inode: int


class _Stored(msgspec.Struct, array_like=True):
    version: int
    encoder: str
    fitted: bytes
    fitted_with: int  # the number of memories
    sources: list[_Source]
    data: bytes  # one byte per dimension, row by row


class VectorTable:
    """The vectors of one directory. Not thread-safe."""

    __slots__ = ("_mean", "_numbers", "_rows", "_stored", "changes", "encoder")

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.changes = -1  # the state of the search index that these vectors belong to
        self._stored = _Stored(_VERSION, encoder.name, b"", 0, [], b"")
        self._numbers: dict[str, int] = {}
        self._rows: np.ndarray[Any, Any] | None = None

    def follow(self, root: RootDir, headers: Sequence[TopicHeader], texts: Texts) -> None:
        """Encode what is new, and store it."""
        wanted = [_Source(header.file, header.mtime_ns, header.size, header.inode) for header in headers]
        if self._rows is not None and wanted == self._stored.sources:
            return
        stored = self._stored if self._rows is not None else self._load(root)
        if wanted != stored.sources:
            stored = self._encoded(stored, headers, wanted, texts)
            with suppress(DiskError, UnicodeEncodeError):  # vectors that cannot be stored are made again
                root.replace(FILE, msgspec.msgpack.encode(stored), durability="process")
        self._take(stored)

    def _load(self, root: RootDir) -> _Stored:
        try:
            stored = msgspec.msgpack.decode(root.read_bytes(FILE, MOST_BYTES) or b"", type=_Stored)
        except (DiskError, msgspec.DecodeError):
            return self._stored
        whole = stored.version == _VERSION and stored.encoder == self.encoder.name
        return stored if whole and stored.sources and len(stored.data) % len(stored.sources) == 0 else self._stored

    def _encoded(self, stored: _Stored, headers: Sequence[TopicHeader], wanted: list[_Source], texts: Texts) -> _Stored:
        import numpy as np

        fitted, fitted_with = stored.fitted, stored.fitted_with
        if not stored.sources or not fitted_with <= GROWTH * len(wanted) <= GROWTH * GROWTH * fitted_with:
            fitted, fitted_with = self.encoder.fit(texts(headers)), len(wanted)
            stored = _Stored(_VERSION, self.encoder.name, fitted, fitted_with, [], b"")
        size = len(stored.data) // max(1, len(stored.sources))
        known = {source: stored.data[size * at : size * (at + 1)] for at, source in enumerate(stored.sources)}
        new = [at for at, source in enumerate(wanted) if source not in known]
        if new:
            found = _normed(self.encoder.encode(texts([headers[at] for at in new]), fitted))
            rows = np.round(found * 127 / np.maximum(np.abs(found).max(1, keepdims=True), 1e-9)).astype(np.int8)
            known |= {wanted[at]: row.tobytes() for at, row in zip(new, rows, strict=True)}
        return _Stored(_VERSION, self.encoder.name, fitted, fitted_with, wanted, b"".join(known[each] for each in wanted))

    def _take(self, stored: _Stored) -> None:
        import numpy as np

        rows = np.frombuffer(stored.data, np.int8).astype(np.float32).reshape(len(stored.sources), -1)
        rows = _normed(rows)
        self._mean = rows.mean(0)
        self._rows = _normed(rows - self._mean)
        self._numbers = {source.file: at for at, source in enumerate(stored.sources)}
        self._stored = stored

    def similarities(self, question: str, beside: Sequence[str], most: int) -> Mapping[str, float]:
        """Return the cosine to the question for the closest files, and for the files `beside`."""
        import numpy as np

        if self._rows is None or not len(self._rows):
            return {}
        asked = _normed(_normed(self.encoder.encode([question], self._stored.fitted)) - self._mean)[0]
        if asked.shape[0] != self._rows.shape[1]:
            return {}
        found = self._rows @ asked
        closest: list[int] = np.argpartition(-found, min(most, len(found)) - 1)[:most].tolist() if most > 0 else []
        sources, numbers = self._stored.sources, self._numbers
        return {sources[at].file: float(found[at]) for at in closest} | {
            file: float(found[numbers[file]]) for file in beside if file in numbers
        }


def _normed(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np

    found: np.ndarray[Any, Any] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return found
