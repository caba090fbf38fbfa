"""The dreams that the server runs, each in its own thread with its own Event. They end with the server.

A start may take longer than a click: what dreams need is loaded after the views, and a large memory is copied first. Until a dream has
begun, its place is among those that start; if it cannot begin, the reason is kept until the next start there, or until it is dismissed.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from typing import NamedTuple, TypeAlias

from ..core.errors import InputError, LaminaError
from .views_made import Stopped

# What dreams need beyond the views. Each takes up to 40 ms to load.
NEEDED = tuple(
    f"{__package__.rpartition('.')[0]}.{name}"
    for name in (
        "memory.guard.contradictions",
        "layers.l6_dream.tidy",
        "layers.l6_dream.directive",
        "agent.manual_dream",
    )
)
# Seconds that a stopping server waits for its dreams to record their end. They give up a model call at once.
ENDING = 2.0

# Runs a dream until its Event is set, and calls the function once the dream has begun.
Run: TypeAlias = Callable[[threading.Event, Callable[[], None]], None]


def is_loaded() -> bool:
    return sys.modules.keys() >= set(NEEDED)


def load_needed(pause: Callable[[], None]) -> None:
    """Load what dreams need, with a pause before each module that is not loaded yet."""
    for name in NEEDED:
        if name not in sys.modules:
            pause()
        import_module(name)


class DreamStart(NamedTuple):
    at: float
    begun: Future[None]

    @property
    def error(self) -> Exception | None:
        """Why the dream could not begin; None if it may still."""
        found = self.begun.exception() if self.begun.done() else None
        return found if isinstance(found, Exception) else None


class DreamJobs:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[threading.Thread, threading.Event] = {}
        self._starts: dict[str, DreamStart] = {}  # by place: those that have not begun
        self._dismissed: dict[str, DreamStart] = {}  # by place: the last that failed and is no longer shown
        self._closed = False

    def start(self, place: str, run: Run) -> Future[None]:
        """Run a dream in a thread, and return what is done once it has begun, or raises why it cannot. A start that goes on is joined.

        Its Event is set when the server stops, and by the dream itself when it is stopped.
        """
        with self._lock:
            known = self._starts.get(place)
            if known is not None and not known.begun.done():
                return known.begun
            begun, abort = Future[None](), threading.Event()
            if self._closed:
                abort.set()
            self._starts[place] = DreamStart(time.time(), begun)
            self._dismissed.pop(place, None)
            thread = threading.Thread(target=self._run, args=(place, run, abort, begun), name="lamina-dream", daemon=True)
            thread.start()
            self._running[thread] = abort
            return begun

    def _run(self, place: str, run: Run, abort: threading.Event, begun: Future[None]) -> None:
        def tell(error: Exception | None = None) -> None:
            with self._lock:
                if begun.done():
                    return
                if error is None:
                    del self._starts[place]
                    begun.set_result(None)
                else:
                    begun.set_exception(error)

        try:
            run(abort, tell)
            tell()
        except (LaminaError, Stopped) as error:
            tell(error)
        except Exception as error:  # noqa: BLE001  # whoever started it is told
            tell(InputError("dream", str(error) or type(error).__name__))
        finally:
            with self._lock:
                del self._running[threading.current_thread()]

    @property
    def starts(self) -> dict[str, DreamStart]:
        """The starts that go on or failed, by place."""
        with self._lock:
            return dict(self._starts)

    def forget(self, place: str) -> None:
        """Forget a start that failed, once its reason was told."""
        with self._lock:
            self._starts.pop(place, None)

    def dismiss(self, place: str, at: str) -> bool:
        """Show a start that failed no longer. False if there is no such start, so that a later one is not dismissed unseen."""
        return self._move(self._starts, self._dismissed, place, at)

    def show_again(self, place: str, at: str) -> bool:
        """Show a start again that was dismissed. False if there is none, or another one since."""
        return self._move(self._dismissed, self._starts, place, at)

    def _move(self, here: dict[str, DreamStart], there: dict[str, DreamStart], place: str, at: str) -> bool:
        with self._lock:
            found = here.get(place)
            if found is None or found.error is None or str(found.at) != at:
                return False
            there[place] = here.pop(place)
            return True

    def state(self) -> list[object]:
        return [[place, start.at, start.begun.done()] for place, start in self.starts.items()]

    def close(self) -> None:
        """Stop all dreams, and wait a moment until they have recorded it. Without a dream, nothing is waited for."""
        with self._lock:
            self._closed, running = True, dict(self._running)
        for abort in running.values():
            abort.set()
        until = time.monotonic() + ENDING
        for thread in running:
            thread.join(max(0.0, until - time.monotonic()))
