"""How the interpreter runs the page: when it collects garbage, how threads take turns, and where their memory comes from.

A full collection looks at every object and takes 150 ms with a large home, in which no view is made. So it waits until nobody clicks.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from contextlib import suppress

from .views_made import Stopped, ViewsMade

# New objects between two collections, and how many of these until one looks at what they left, in 10 ms. A full one never starts by itself.
COLLECT_AFTER = 5_000
COLLECT_LEFT_AFTER = 5
NEVER = 1_000_000
# Collections of what was left until a full one is due: two million new objects.
FULL_AFTER = 80
# Seconds without a click before it, and the most that it waits for them.
QUIET = 2.0
MOST = 60.0
# Seconds until a thread that works lets another one run. A view waits that long whenever it has read a file beside such a thread.
SWITCH = 0.001
# glibc gives each thread an arena of its own, and what one of them has freed is of no use to the others: with many threads the server took
# half as much memory again. Only one thread of Python runs at a time, so that one arena makes none of them wait. The number is malloc.h's.
ARENA_MAX = -8
ARENAS = 1


def tune_process() -> None:
    """Set this process up for the page. Call it before it starts threads."""
    gc.set_threshold(COLLECT_AFTER, COLLECT_LEFT_AFTER, NEVER)
    sys.setswitchinterval(SWITCH)
    with suppress(OSError, TypeError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(ARENA_MAX, ARENAS)


class Garbage:
    """Collects all garbage now and then, when nobody clicks."""

    def __init__(self, views: ViewsMade) -> None:
        self._views = views
        self._due = threading.Lock()  # held from when a collection is due until it is done

    @property
    def is_due(self) -> bool:
        return self._due.locked()

    def look(self) -> None:
        """See whether a collection is due. It costs nothing."""
        if gc.get_count()[2] >= FULL_AFTER and self._due.acquire(blocking=False):
            threading.Thread(target=self._collect, name="lamina-garbage", daemon=True).start()

    def _collect(self) -> None:
        try:
            with suppress(Stopped):
                self._views.wait_for_quiet(QUIET, MOST)
                gc.collect()
        finally:
            self._due.release()
