"""The project that a server speaks for: its settings, its memory, and a limit on changes.

Settings are read again before each call, so a switch that is turned off applies at once. Invariant: no call leaves memory open.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from ..core.errors import UsageError
from ..core.settings import Settings
from ..memory.memory import Memory

# More than an agent saves in a minute of work; a loop that saves is stopped here.
MOST_CHANGES = 60
PER_SECONDS = 60.0


class ServedProject:
    def __init__(
        self,
        cwd: Path,
        *,
        home: Path | None = None,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cwd = cwd
        self.home = home
        self._settings = settings
        self._clock = clock
        self._changes: deque[float] = deque(maxlen=MOST_CHANGES)
        self._lock = threading.Lock()

    @property
    def settings(self) -> Settings:
        """The settings in force now."""
        with self._lock:
            old = self._settings
            self._settings = Settings.load(self.cwd, home=self.home) if old is None else old.refreshed()
            return self._settings

    def open_memory(self) -> Memory:
        return Memory.open(self.cwd, home=self.home, settings=self.settings)

    def count_change(self) -> None:
        """Count a change of memory. Raises UsageError if there were too many in the last minute."""
        with self._lock:
            now = self._clock()
            while self._changes and now - self._changes[0] >= PER_SECONDS:
                self._changes.popleft()
            if len(self._changes) >= MOST_CHANGES:
                wait = PER_SECONDS - (now - self._changes[0])
                raise UsageError(f"Memory accepts {MOST_CHANGES} changes per minute from a client. Try again in {wait:.0f} s.")
            self._changes.append(now)
