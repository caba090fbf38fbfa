"""Vectors of memories in one array, compared with a question after subtracting their mean.

What all memories of a store share tells none of them apart, so the mean is subtracted. It changes with every memory. The rows are
therefore stored as they are, and the mean is subtracted from the products: a changed memory costs its own rows, and the next question
one more pass over all. Invariant: the cosines are those of an array that was made anew, whatever was put in before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

# Room for further rows, as a share of those that are there.
ROOM = 0.25


class CentredRows:
    """One or more vectors for each memory, in the order of the memories; the closest one counts."""

    __slots__ = ("_distances", "_mean", "_rows", "_sizes", "_squares", "_starts", "_sum", "dimensions")

    def __init__(self, vectors: Sequence[bytes], dimensions: int | None) -> None:
        """`vectors` has the bytes of each memory: one byte per dimension, vector by vector."""
        import numpy as np

        sizes = np.fromiter(map(len, vectors), np.int64, len(vectors))
        self.dimensions = dimensions or int(min(sizes, default=1))
        self._sizes = sizes // self.dimensions
        self._rows = _units(b"".join(vectors), self.dimensions)
        self._squares = np.einsum("ij,ij->i", self._rows, self._rows)  # 1, or 0 for a row of zeros
        self._sum = self._rows.sum(0, np.float64)
        self._arrange()

    def _arrange(self) -> None:
        self._starts = self._sizes.cumsum() - self._sizes
        self._mean = (self._sum / max(1, len(self._squares))).astype("float32")
        self._distances: Array | None = None  # of the rows from the mean

    def put(self, vectors: Mapping[int, bytes]) -> bool:
        """Replace the vectors of the memories at these places; places after the last one add memories. Return False, with nothing
        changed, if a memory has another number of vectors now."""
        known = {place: data for place, data in vectors.items() if place < len(self._sizes)}
        if any(len(data) != self._sizes[place] * self.dimensions for place, data in known.items()):
            return False
        for place, data in known.items():
            self._write(int(self._starts[place]), _units(data, self.dimensions))
        self._add([vectors[place] for place in sorted(vectors.keys() - known.keys())])
        self._arrange()
        return True

    def _add(self, vectors: Sequence[bytes]) -> None:
        import numpy as np

        new, used = _units(b"".join(vectors), self.dimensions), len(self._squares)
        if used + len(new) > len(self._rows):
            room = np.empty((len(new) + int(used * (1 + ROOM)), self.dimensions), np.float32)
            room[:used] = self._rows[:used]
            self._rows = room
        self._rows[used : used + len(new)] = 0
        self._squares = np.append(self._squares, np.zeros(len(new), np.float32))
        self._sizes = np.append(self._sizes, [len(data) // self.dimensions for data in vectors]).astype(np.int64)
        self._write(used, new)

    def _write(self, start: int, new: Array) -> None:
        import numpy as np

        old = self._rows[start : start + len(new)]
        self._sum += new.sum(0, np.float64) - old.sum(0, np.float64)
        self._squares[start : start + len(new)] = np.einsum("ij,ij->i", new, new)
        old[:] = new

    def cosines(self, asked: Array) -> Array | None:
        """Return the cosine of each memory to a vector; None without memories, or if the vector is of another size."""
        import numpy as np

        rows, mean = self._rows[: len(self._squares)], self._mean
        if not len(rows) or len(asked) != self.dimensions:
            return None
        # `@` on arrays of this size would wake threads, which takes longer than the work on a busy machine.
        if self._distances is None:
            squares = self._squares - 2 * np.einsum("ij,j->i", rows, mean) + mean @ mean
            self._distances = np.sqrt(np.maximum(squares, 1e-18))
        question = normed(normed(asked[None]) - mean)[0]
        found = (np.einsum("ij,j->i", rows, question) - mean @ question) / self._distances
        closest: Array = np.maximum.reduceat(found, self._starts)
        return closest


def _units(data: bytes, dimensions: int) -> Array:
    import numpy as np

    return normed(np.frombuffer(data, np.int8).reshape(-1, dimensions).astype(np.float32))


def normed(rows: Array) -> Array:
    """Return the rows with length 1; a row of zeros stays one."""
    import numpy as np

    found: Array = rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1e-9)[:, None]
    return found
