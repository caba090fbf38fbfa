"""Which views are being made: long work in the background goes on when there is none, so that a click comes first.

Python runs one thread at a time, so a view that is made beside a long computation takes about twice as long.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from starlette.types import ASGIApp, Receive, Scope, Send

T = TypeVar("T")
# The most seconds that a slice of work waits for views.
HOLD = 0.5
# Items between two looks: a few milliseconds of work.
SLICE = 50
# The stream stays open, and the blocks of a request come after its panel.
BEHIND = ("/live", "/blocks")
_is_view: ContextVar[bool] = ContextVar("_is_view", default=False)


class ViewsMade:
    def __init__(self) -> None:
        self.count = 0  # of views that are being made
        self._none = threading.Condition()

    def change(self, by: int) -> None:
        with self._none:
            self.count += by
            self._none.notify_all()

    def wait(self) -> None:
        """Wait until no view is being made. A view itself does not wait."""
        if self.count and not _is_view.get():
            with self._none:
                self._none.wait_for(lambda: not self.count, HOLD)

    def after(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, with a wait for views now and then."""
        for at, item in enumerate(items):
            if at % SLICE == 0:
                self.wait()
            yield item


class CountedViews:
    """Counts the views that `app` makes."""

    def __init__(self, app: ASGIApp, views: ViewsMade) -> None:
        self._app, self._views = app, views

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].endswith(BEHIND):
            await self._app(scope, receive, send)
            return
        self._views.change(1)
        _is_view.set(True)
        try:
            await self._app(scope, receive, send)
        finally:
            self._views.change(-1)
