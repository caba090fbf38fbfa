"""The data that the views share: settings, homes, the list of sessions, small caches, counts for the navigation, things to watch."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from ..core.errors import LaminaError
from ..core.settings import Settings
from ..disk.paths.project import slug
from ..disk.regular_file import FileStamp, stamp
from ..disk.settings_files import lamina_home, settings_in_force
from ..history.places import Origin
from ..history.recalls import Recalls, sum_recalls
from ..history.sessions import SourceSession, homes_of
from .dream_jobs import DreamJobs
from .kept_windows import KeptWindows
from .memory_index import MemoryIndex
from .memory_places import MemoryPlaces
from .replay_jobs import ReplayJobs
from .session_index import Listing, SessionIndex
from .slow_work import SlowWork
from .views_made import ViewsMade, Work

T = TypeVar("T")
# Files whose results are kept: the session that is shown, and the one before it.
KEPT = 4
# Seconds that the counts in the navigation are kept: every view shows them.
COUNTS_FRESH = 1.0
# Seconds that the recalls of memories are kept.
RECALLS_FRESH = 10.0


class Site:
    """One run of `lamina ui`. Views only read it; whatever they register, they register when the server is built."""

    def __init__(
        self,
        *,
        cwd: Path,
        environ: Mapping[str, str] | None = None,
        read_only: bool = False,
        secret: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.cwd = cwd
        self.environ = os.environ if environ is None else environ
        self.home = lamina_home(self.environ)
        self.read_only = read_only
        self.secret = secret
        self.clock = clock
        # Whether the server is about to stop.
        self.stopping: Callable[[], bool] = lambda: False
        self._lock = threading.Lock()
        self._settings = settings_in_force(cwd, environ=self.environ)
        self.views = ViewsMade()
        self.slow = SlowWork(self.views)
        self.index = SessionIndex(self.home, lambda: self.settings, self.environ, self.views, in_memory=read_only)
        self.windows = KeptWindows(self.index)
        self.replays = ReplayJobs(cwd, self.home, self.environ, clock, lambda: self.stopping(), read_only=read_only)
        self.places = MemoryPlaces(
            cwd=cwd,
            home=self.home,
            settings=lambda: self.settings,
            homes=lambda: self.homes,
            projects=self._project_paths,
            environ=self.environ,
            read_only=read_only,
        )
        self.memories = MemoryIndex(self.places, self._recall_counts, self.views)
        self.dreams = DreamJobs()
        self._projects: tuple[Listing, dict[str, str]] = (Listing(), {})
        self._recalls: Mapping[str, Recalls] = {}
        self._recalled_at = float("-inf")
        # Set when the server stops, and by nothing else: work that a view started ends then.
        self.closing = threading.Event()
        # View → function that counts what waits for the user there.
        self.counters: dict[str, Callable[[], int]] = {"memories": self.memories.count_waiting}
        # Name → function that returns the state of the thing with a key: `session:claude-code/ID` asks `session`.
        self.watches: dict[str, Callable[[str], Any]] = {"sessions": lambda _: self._list_state(), "replay": self._replay_state}
        self._counted: tuple[float, dict[str, int]] = (float("-inf"), {})
        self._kept: OrderedDict[tuple[str, str], tuple[FileStamp, Any]] = OrderedDict()
        self._making: dict[tuple[str, str], threading.Lock] = {}

    @property
    def settings(self) -> Settings:
        """The settings in force now."""
        with self._lock:
            self._settings = self._settings.refreshed()
            return self._settings

    @property
    def homes(self) -> dict[Origin, Path]:
        """The directories that sessions and memories are read from."""
        return homes_of(self.settings, self.environ)

    def sessions(self) -> Listing:
        return self.index.current()

    def session(self, origin: str, id: str) -> SourceSession | None:
        """Return the session with this address. One that started just now is looked for once more."""
        return self.index.find(origin, id)

    def counts(self) -> dict[str, int]:
        """Return how much waits in each view."""
        at, counted = self._counted
        if time.monotonic() - at > COUNTS_FRESH:
            counted = {view: count() for view, count in self.counters.items()}
            self._counted = (time.monotonic(), counted)
        return counted

    def count_again(self) -> None:
        """Count and look anew for the next view: a change was made."""
        self.memories.distrust()
        self._counted = (float("-inf"), {})

    def kept(self, name: str, path: str, make: Callable[[], T]) -> T:
        """Return what `make` makes of a file, made anew when the file changed. Raises OSError if the file is gone.

        Whoever asks while it is being made waits for it, so that the work is done once.
        """
        now, key = stamp(os.stat(path)), (name, path)
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with self.views.waiting(Work.DATA):
            making.acquire()
        try:
            with self._lock:
                held = self._kept.get(key)
            made = cast(T, held[1]) if held is not None and held[0] == now else make()
            with self._lock:
                self._kept[key] = (now, made)
                self._kept.move_to_end(key)
                self._making.pop(key, None)
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            return made
        finally:
            making.release()

    def can_watch(self, watch: str) -> bool:
        return watch.partition(":")[0] in self.watches

    def state(self, watch: str) -> Any:
        """Return the state of what a watch names; None if it cannot be looked at."""
        name, _, key = watch.partition(":")
        try:
            return self.watches[name](key)
        except OSError:
            return None

    def look(self, *watches: str) -> dict[str, str]:
        """Return a stamp of each watch's state. A view looks before it reads: what changes afterwards has another stamp."""
        return {watch: stamp_of_state(self.state(watch)) for watch in watches}

    def _project_paths(self) -> dict[str, str]:
        """Return the paths of projects by the names of their directories, as far as sessions tell them."""
        listing = self.index.listing
        if self._projects[0] is not listing:
            paths = dict.fromkeys(one.project for one in listing.sessions if one.project)
            self._projects = (listing, {slug(path): path for path in paths})
        return self._projects[1]

    def _recall_counts(self) -> Mapping[str, Recalls]:
        """Return the recalls as of the last count. They are counted again in a thread: no view waits for the index of sessions."""
        if time.monotonic() - self._recalled_at > RECALLS_FRESH:
            self._recalled_at = time.monotonic()
            threading.Thread(target=self._count_recalls, name="lamina-recalls", daemon=True).start()
        return self._recalls

    def _count_recalls(self) -> None:
        with suppress(RuntimeError, OSError, LaminaError):  # the server stops, or the index cannot be read now
            self.index.current()
            counted = self.index.use(lambda catalogue: sum_recalls(catalogue.rows("session")))
            if counted != self._recalls:  # else what was made of them stays
                self._recalls = counted

    def _list_state(self) -> Any:
        listing = self.index.current()
        return [len(listing.sessions), listing.done, listing.of, max((one.modified for one in listing.sessions), default=0.0)]

    def _replay_state(self, id: str) -> Any:
        job = self.replays.get(id)
        return job.state if job is not None else None

    def close(self) -> None:
        self.closing.set()
        self.dreams.close()
        self.index.close()
        self.replays.close()


def stamp_of_state(state: Any) -> str:
    return blake2b(msgspec.json.encode(state), digest_size=8).hexdigest()
