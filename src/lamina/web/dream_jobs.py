"""The dreams that the server runs, each in its own thread with its own Event. They end with the server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# Seconds that a stopping server waits for its dreams to record their end. They give up a model call at once.
ENDING = 2.0


class DreamJobs:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[threading.Thread, threading.Event] = {}
        self._closed = False

    def start(self, run: Callable[[threading.Event], None]) -> None:
        """Run a dream in a thread. Its Event is set when the server stops, and by the dream itself when it is stopped."""
        abort = threading.Event()
        thread = threading.Thread(target=self._run, args=(run, abort), name="lamina-dream", daemon=True)
        with self._lock:
            if self._closed:
                abort.set()
            thread.start()
            self._running[thread] = abort

    def _run(self, run: Callable[[threading.Event], None], abort: threading.Event) -> None:
        try:
            run(abort)
        finally:
            with self._lock:
                del self._running[threading.current_thread()]

    def close(self) -> None:
        """Stop all dreams, and wait a moment until they have recorded it. Without a dream, nothing is waited for."""
        with self._lock:
            self._closed, running = True, dict(self._running)
        for abort in running.values():
            abort.set()
        until = time.monotonic() + ENDING
        for thread in running:
            thread.join(max(0.0, until - time.monotonic()))
