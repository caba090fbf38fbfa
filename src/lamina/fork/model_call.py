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

from ..core.cache import FORK_HEADER, SESSION_HEADER
from ..core.effects import Ask
from ..core.errors import Aborted
from ..core.records import new_id
from ..core.reply import Reply
from ..providers import OnEvent, Provider

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

# How long an abort can go unnoticed: below what a person feels, and 20 wake-ups a second cost nothing.
GLANCE = 0.05

_Arrival: TypeAlias = "dict[str, Any] | Reply | BaseException | _Ready"


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


def ask_until(abort: Event, provider: Provider, ask: Ask, on_event: OnEvent | None = None) -> Reply:
    """The reply; Aborted when the call was left because of the abort."""
    hear = on_event or ask.on_event
    came: queue.SimpleQueue[_Arrival] = queue.SimpleQueue()
    heard, left = Semaphore(0), Event()

    def pass_on(event: dict[str, Any]) -> None:
        came.put(event)
        heard.acquire()
        if left.is_set():
            raise _Left

    def call() -> None:
        try:
            if (prepare := getattr(provider, "prepare", None)) is not None:
                prepare()
            came.put(_Ready())
            came.put(provider.ask(ask.request, purpose=ask.purpose, on_event=pass_on, abort=left))
        except BaseException as error:  # noqa: BLE001  # it is raised again in the thread that waits
            came.put(error)

    try:
        # Ctrl-C may arrive in here already, when the thread has begun and its start has not returned.
        Thread(target=copy_context().run, args=(call,), name="lamina-ask", daemon=True).start()
        while not abort.is_set():
            try:
                arrived = came.get(timeout=GLANCE)
            except queue.Empty:
                continue
            match arrived:
                case Reply():
                    return arrived
                case BaseException():
                    raise arrived
                case _Ready():
                    _begin(abort)
                case _:
                    if hear is not None:
                        hear(arrived)
                    heard.release()
        raise Aborted
    finally:
        left.set()
        heard.release()


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


def own_headers(purpose: str) -> dict[str, str]:
    """Of a call that shares no prefix with the conversation: a server that keeps watch over prefixes takes it for one of its own."""
    name = f"{purpose}-{new_id()[-8:]}"
    return {SESSION_HEADER: name, FORK_HEADER: name}
