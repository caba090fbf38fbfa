"""The project that a server speaks for: its settings, its memory, and a limit on changes.

Settings are read again before each call, so a switch that is turned off applies at once. Invariant: no call leaves memory open.

Inside Claude Code there is one memory. While Claude Code's own is on, that is the one: Claude Code writes it, and Lamina searches, journals
and repairs it. Otherwise it is Lamina's.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from ..core.errors import UsageError
from ..core.settings import Settings
from ..disk.settings_files import lamina_home, user_home
from ..memory.store.scopes import MemoryLocation, locate_memory, project_root

if TYPE_CHECKING:  # a hook that opens no memory loads none of it
    from ..history.sessions import SourceSession
    from ..memory.memory import Memory
    from ..memory.recall.library import MemoryLibrary
    from ..memory.store.topic_files import TopicHeader

# More than an agent saves in a minute of work; a loop that saves is stopped here.
MOST_CHANGES = 60
PER_SECONDS = 60.0

# The agent whose hooks a process answers.
HookAgent: TypeAlias = Literal["claude-code", "codex"]


class ServedProject:
    def __init__(
        self,
        cwd: Path,
        *,
        home: Path | None = None,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.monotonic,
        agent: HookAgent | None = None,
    ) -> None:
        self.cwd = cwd
        self.home = home
        self.agent = agent
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
        if self.agent != "claude-code":
            return self._settings
        from ..memory.auto_memory import own_memory

        return own_memory(self._settings)

    def open_memory(self) -> Memory:
        from ..memory.memory import Memory

        return Memory.open(self.cwd, path=self.agent_memory(), home=self.home, settings=self.settings)

    def agent_memory(self) -> Path | None:
        """Return the memory directory of the agent itself if it writes one, else None: the memory is Lamina's."""
        if self.agent != "claude-code":
            return None
        from ..memory.auto_memory import auto_memory

        found = auto_memory(self.cwd, os.environ)
        return found.path if found.on else None

    def locate_memory(self, settings: Settings) -> MemoryLocation | None:
        """Return the memory directories, for reading. Nothing is created."""
        if (path := self.agent_memory()) is not None:
            return MemoryLocation(path, None, "Claude Code")
        home = self.home or lamina_home(os.environ)
        if home is None:
            return None
        return locate_memory(cwd=self.cwd, home=home, settings=settings, user_home=user_home(os.environ) or home)

    def open_library(self, place: MemoryLocation, settings: Settings) -> MemoryLibrary:
        """Open memory for reading, which takes a third of the time that the store takes."""
        from ..memory.recall.library import MemoryLibrary

        return MemoryLibrary.open(place, settings=settings, project=project_root(self.cwd))

    def list_sessions(self) -> list[SourceSession]:
        """Return the project's sessions of all agents, newest first."""
        from ..history.sessions import sessions

        return sessions(self.settings, self.cwd)

    def list_memories(self) -> list[TopicHeader]:
        """Return all memories without their texts, newest first. Nothing is created, and no store is opened: clients ask at their start."""
        settings = self.settings
        place = self.locate_memory(settings) if settings.memory else None
        if place is None or not place.path.is_dir():
            return []
        with self.open_library(place, settings) as memory:
            return memory.headers()

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
