"""Work that may take longer than a click: it is begun in a thread, and whoever asks again gets its result.

Invariants: the same work runs once at a time, however often a view asks for it. A result is given once, so the next one is as new as its
question; those that nobody came back for are dropped. A stopping server waits for none of it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from .views_made import Stopped, ViewsMade, Work

T = TypeVar("T")
# Results that are kept for a view that asks again.
MOST = 8
# A wait of fewer seconds comes before other work in the background.
SHORT = 1.0
# Seconds between two looks whether the server stops.
LOOK = 0.2


class SlowWork:
    def __init__(self, views: ViewsMade) -> None:
        self._views = views
        self._lock = threading.Lock()
        self._begun: OrderedDict[Hashable, Future[Any]] = OrderedDict()

    def is_begun(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._begun

    def ask(self, key: Hashable, make: Callable[[], T], seconds: float) -> Future[T] | None:
        """Return what `make` made, or raised; None if that takes longer than so many seconds. The next one to ask waits for the same."""
        with self._lock:
            made: Future[T] | None = self._begun.get(key)
            if made is None:
                made = self._begun[key] = Future()
                threading.Thread(target=_run, args=(made, make), name="lamina-slow", daemon=True).start()
                while len(self._begun) > MOST:
                    self._begun.popitem(last=False)
        end = time.monotonic() + seconds
        with self._views.waiting(Work.INDEX if seconds < SHORT else Work.DATA):
            while not made.done() and (left := end - time.monotonic()) > 0 and not self._views.stopping():
                wait([made], min(left, LOOK))
        if not made.done() or isinstance(made.exception(), Stopped):
            return None
        with self._lock:
            if self._begun.get(key) is made:
                del self._begun[key]
        return made


def _run(made: Future[T], make: Callable[[], T]) -> None:
    try:
        made.set_result(make())
    except Exception as error:  # noqa: BLE001  # raised where the result is asked for
        made.set_exception(error)
