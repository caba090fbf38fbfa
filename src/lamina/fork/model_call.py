"""One call to a model that can be left at any moment.

A provider's call blocks: on a server that says nothing, between two tries, between two words. It runs in a thread of its own; what
arrives is heard in the caller's thread, one event at a time, so a listener never runs beside what comes after the call. A call that
was left sends no further request and ends with the next event it gets; what it still brings is dropped, and nobody waits for it.
"""

from __future__ import annotations

import queue
import time
from contextvars import copy_context
from threading import Event, Semaphore, Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.effects import Ask
from ..core.errors import Aborted
from ..core.reply import Reply
from ..providers import OnEvent, Provider

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

# How long an abort can go unnoticed: below what a person feels, and 20 wake-ups a second cost nothing.
GLANCE = 0.05

Came: TypeAlias = "dict[str, Any] | Reply | BaseException | _Ready"


class Deadline(Event):
    """An abort that comes by itself, `seconds` after the call can be made; others may come first."""

    def __init__(self, seconds: float, *stops: Event | None) -> None:
        super().__init__()
        self._seconds = seconds
        self._end: float | None = None
        self._stops = tuple(stop for stop in stops if stop is not None)

    def begin(self) -> None:
        """What the call takes is loaded: from here on somebody else is slow."""
        self._end = time.monotonic() + self._seconds

    @property
    def stopped(self) -> bool:
        """Somebody else wants it to end."""
        return any(stop.is_set() for stop in self._stops)

    def is_set(self) -> bool:
        return self.stopped or (self._end is not None and time.monotonic() >= self._end)


class _Ready:
    """The client is loaded; importing one takes a second or two, which no server is to blame for."""


class _Left(Exception):
    """Nobody waits for this call any more."""


def ask_until(abort: Event, provider: Provider, ask: Ask, on_event: OnEvent) -> Reply | None:
    """The reply; None when the call was left because of the abort."""
    call = _Call(provider, ask)
    try:
        # Ctrl-C may arrive in here already, when the thread has begun and its start has not returned.
        Thread(target=copy_context().run, args=(call.run,), name="lamina-ask", daemon=True).start()
        while not abort.is_set():
            try:
                came = call.came.get(timeout=GLANCE)
            except queue.Empty:
                continue
            match came:
                case Reply():
                    return came
                case BaseException():
                    raise came
                case _Ready():
                    _begin(abort)
                case _:
                    on_event(came)
                    call.heard.release()
        return None
    finally:
        call.left.set()
        call.heard.release()


def _begin(abort: Event) -> None:
    if isinstance(abort, Deadline):
        abort.begin()


def ask_on_loop(loop: AbstractEventLoop, abort: Event, provider: Provider, ask: Ask) -> Reply:
    """The reply of a provider whose client belongs to an event loop, from any other thread; an abort, and the end of the loop, leave
    the call."""
    import asyncio
    from concurrent.futures import CancelledError, wait

    if not loop.is_running():
        raise Aborted
    call = provider.ask_async(ask.request, purpose=ask.purpose, on_event=ask.on_event)
    future = asyncio.run_coroutine_threadsafe(call, loop)
    _begin(abort)
    while not future.done():
        if abort.is_set() or not loop.is_running():
            future.cancel()
            raise Aborted
        wait([future], GLANCE)
    try:
        return future.result()
    except CancelledError as error:  # by the loop, as it ended
        raise Aborted from error


class _Call:
    def __init__(self, provider: Provider, ask: Ask) -> None:
        self._provider = provider
        self._ask = ask
        self.came: queue.SimpleQueue[Came] = queue.SimpleQueue()
        self.heard = Semaphore(0)
        self.left = Event()

    def run(self) -> None:
        try:
            if (prepare := getattr(self._provider, "prepare", None)) is not None:
                prepare()
            self.came.put(_Ready())
            self.came.put(self._provider.ask(self._ask.request, purpose=self._ask.purpose, on_event=self._tell, abort=self.left))
        except BaseException as error:  # noqa: BLE001  # it is raised again in the thread that waits
            self.came.put(error)

    def _tell(self, event: dict[str, Any]) -> None:
        self.came.put(event)
        self.heard.acquire()
        if self.left.is_set():
            raise _Left
