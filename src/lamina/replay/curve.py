"""The size of the context over many calls, in bounded memory: where there are too many, two become one, and the greater is kept."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

# Far more than a picture has columns.
MOST_POINTS = 4_096


class Curve:
    def __init__(self) -> None:
        self.points: list[int] = []
        self.stride = 1  # calls in one point
        self._open: list[int] = []  # the calls of the point under way

    def extend(self, sizes: Iterable[int]) -> None:
        for size in sizes:
            self._open.append(size)
            if len(self._open) == self.stride:
                self.points.append(max(self._open))
                self._open = []
                if len(self.points) == MOST_POINTS:
                    self.points = [max(self.points[at : at + 2]) for at in range(0, MOST_POINTS, 2)]
                    self.stride *= 2

    def shown(self, columns: int) -> list[int]:
        """At most so many points."""
        points = [*self.points, *([max(self._open)] if self._open else [])]
        if len(points) <= columns:
            return points
        edges = [at * len(points) // columns for at in range(columns + 1)]
        return [max(points[start:end]) for start, end in pairwise(edges)]
