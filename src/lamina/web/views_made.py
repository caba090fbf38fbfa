"""Which views are being made: long work in the background goes on when there is none, so that a click comes first.

Python runs one thread at a time, so a view that is made beside a long computation takes about twice as long. A view that waits for work in
the background lets that work go on, and still comes before all later work. When the server stops, the work ends at its next look.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from typing import TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

T = TypeVar("T")
# The most seconds that a slice of work waits for views.
HOLD = 0.5
# Seconds after a view in which later work waits for the next one: clicks come in quick succession.
QUIET = 0.3
# Items between two looks: a few milliseconds of work.
SLICE = 50
# The data of the chart, and the blocks of a request, come after the view that shows them. The event stream stays open, so nothing
# waits for it.
BEHIND = ("/series", "/blocks")
STREAM = "/live"


class Work(IntEnum):
    """What comes first."""

    VIEW = 0
    INDEX = 1  # the index of sessions, and the modules of the views
    DATA = 2  # a session or the memories that are shown
    LATER = 3  # what the next views may need


_asked_for: ContextVar[Work | None] = ContextVar("_asked_for", default=None)  # by a browser; None in the background


class Stopped(RuntimeError):
    """Work in the background ends: the server stops, or the work was asked to."""


class ViewsMade:
    def __init__(self) -> None:
        self._counts = [0 for _ in Work]  # of views, by what is being done for them
        self._changed = threading.Condition()
        self._shown = float("-inf")  # when the last view was done
        self.stopping: Callable[[], bool] = lambda: False

    @property
    def count(self) -> int:
        """How many views are being made, without those that wait."""
        return self._counts[Work.VIEW]

    def change(self, by: int, work: Work = Work.VIEW) -> None:
        with self._changed:
            self._counts[work] += by
            if by < 0 and work is Work.VIEW:
                self._shown = time.monotonic()
            self._changed.notify_all()

    def wait(self, work: Work = Work.DATA) -> None:
        """Wait until nothing is done for a view that comes before this work. A view itself does not wait.

        Raises Stopped in the background when the server stops.
        """
        if _asked_for.get() is None and self.stopping():
            raise Stopped
        if _asked_for.get() is Work.VIEW or not self._is_late(work):
            return
        end = time.monotonic() + HOLD
        with self._changed:
            while self._is_late(work) and (left := end - time.monotonic()) > 0:
                self._changed.wait(min(left, QUIET))

    def wait_for_quiet(self, seconds: float, most: float) -> None:
        """Wait until no view was made for so many seconds, from now on, or for `most` seconds. Raises Stopped when the server stops."""
        began = time.monotonic()
        while (left := began + most - time.monotonic()) > 0:
            quiet = seconds if any(self._counts[: Work.LATER]) else max(began, self._shown) + seconds - time.monotonic()
            if quiet <= 0:
                return
            with self._changed:
                self._changed.wait(min(left, quiet, QUIET))
            if self.stopping():
                raise Stopped

    def _is_late(self, work: Work) -> bool:
        """Whether something else comes first."""
        return any(self._counts[:work]) or (work is Work.LATER and time.monotonic() - self._shown < QUIET)

    def pause(self, work: Work) -> Callable[[], None]:
        return lambda: self.wait(work)

    @contextmanager
    def waiting(self, work: Work) -> Iterator[None]:
        """Count a view that waits for work in the background as that work."""
        by = 1 if _asked_for.get() is Work.VIEW else 0
        self.change(-by)
        self.change(by, work)
        try:
            yield
        finally:
            self.change(-by, work)
            self.change(by)

    def after(self, items: Iterable[T], work: Work = Work.DATA, slice: int = SLICE) -> Iterator[T]:
        """Yield the items, with a wait for views before each slice of them."""
        for at, item in enumerate(items):
            if at % slice == 0:
                self.wait(work)
            yield item


class CountedViews:
    """Counts the views that `app` makes, and calls `after` when one is done."""

    def __init__(self, app: ASGIApp, views: ViewsMade, after: Callable[[], None] = lambda: None) -> None:
        self._app, self._views, self._after = app, views, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        work = Work.LATER if scope["path"] == STREAM else Work.DATA if scope["path"].endswith(BEHIND) else Work.VIEW
        self._views.change(1, work)
        _asked_for.set(work)
        try:
            await self._app(scope, receive, send)
        finally:
            self._views.change(-1, work)
            self._after()
