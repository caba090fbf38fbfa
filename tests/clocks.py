"""A clock for tests of timeouts: time is up when the program under test is ready, however long it takes to start."""

from __future__ import annotations

import time
from pathlib import Path

# Longer than any timeout.
AGES = 1e9


class UpWhenReady:
    """Stands in for the module `time`: the clock stands still until the file `ready` exists, then every timeout has passed.

    The first reading is always the early one: a deadline is made of it, and the program may be ready before that.
    """

    def __init__(self, ready: Path) -> None:
        self._ready = ready
        self._began: float | None = None
        self._late = False

    def monotonic(self) -> float:
        if self._began is None:
            self._began = time.monotonic()
            return self._began
        self._late = self._late or self._ready.exists()
        return time.monotonic() + AGES if self._late else self._began

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


# CPU seconds, which do not count what other programs use: linear work on these texts takes a fraction of one, quadratic work minutes.
FAR_TOO_LONG = 30.0
