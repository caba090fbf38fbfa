"""A clock that stands still until a test moves it."""

from __future__ import annotations

# 2026-01-01T00:00:00Z: any fixed moment, so that a run gives the same answer twice.
START = 1_767_225_600.0


class Clock:
    """Callable like time.time."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds
