"""Room for one turn that ended while a review was under way (X4): the latest wins, and the review takes it when it is done.

Invariant: what was put in is taken by the job that runs, or `put` says no and the caller starts another; nothing falls between.
"""

from __future__ import annotations

from threading import Event, Lock

from .run import Order


class Slot:
    def __init__(self) -> None:
        self._lock = Lock()
        self._order: Order | None = None
        self._open = False
        self._abort = Event()  # of the job that runs
        self.reached: str | None = None  # the cursor behind the last review, before it has landed

    def open(self, cursor: str | None) -> None:
        with self._lock:
            self._open, self._order, self.reached = True, None, cursor
            self._abort = Event()

    def watch(self, abort: Event) -> None:
        """A job that was told to end takes nothing more."""
        with self._lock:
            self._abort = abort

    def put(self, order: Order) -> bool:
        """Whether a job will take it."""
        with self._lock:
            if self._abort.is_set():
                self._open, self._order = False, None
            if self._open:
                self._order = order
            return self._open

    def take(self, cursor: str | None) -> Order | None:
        """The next one, after a review that came as far as `cursor`; None closes the slot."""
        with self._lock:
            self.reached = cursor
            order, self._order = self._order, None
            if self._abort.is_set():
                order = None
            self._open = order is not None
            return order

    def close(self) -> None:
        with self._lock:
            self._open, self._order = False, None
