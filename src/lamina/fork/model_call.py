"""A model call that can be aborted at any moment.

A provider's call blocks: on a silent server, between two retries, between two words. So it runs in its own thread. The caller's thread
handles its events one at a time, so a listener never runs in parallel with what follows the call. An aborted call sends no further
request and ends with its next event; its remaining output is dropped, without waiting for it.
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

# How long an abort can go unnoticed: too short to feel, and 20 wake-ups a second cost nothing.
GLANCE = 0.05

_Arrival: TypeAlias = "dict[str, Any] | Reply | BaseException | _Ready"


class Deadline(Event):
    """An abort that fires by itself, `seconds` after the call is ready to be made; other events may abort it earlier."""

    def __init__(self, seconds: float, *stops: Event | None) -> None:
        super().__init__()
        self._seconds = seconds
        self._end: float | None = None
        self._stops = tuple(stop for stop in stops if stop is not None)

    def begin(self) -> None:
        """Start the clock. The client is loaded, so any further delay is the server's."""
        self._end = time.monotonic() + self._seconds

    @property
    def stopped(self) -> bool:
        """Whether another event aborted the call."""
        return any(stop.is_set() for stop in self._stops)

    def is_set(self) -> bool:
        return self.stopped or (self._end is not None and time.monotonic() >= self._end)


class _Ready:
    """The client is loaded. Importing one takes a second or two, which does not count against the server."""


class _Left(Exception):
    """Raised in the call's thread after the call was aborted."""


def ask_until(abort: Event, provider: Provider, ask: Ask, on_event: OnEvent | None = None) -> Reply:
    """Return the reply. Raises Aborted if the abort is set first."""
    listener = on_event or ask.on_event
    arrivals: queue.SimpleQueue[_Arrival] = queue.SimpleQueue()
    heard, abandoned = Semaphore(0), Event()

    def pass_on(event: dict[str, Any]) -> None:
        arrivals.put(event)
        heard.acquire()
        if abandoned.is_set():
            raise _Left

    def call() -> None:
        try:
            if (prepare := getattr(provider, "prepare", None)) is not None:
                prepare()
            arrivals.put(_Ready())
            arrivals.put(provider.ask(ask.request, purpose=ask.purpose, on_event=pass_on, abort=abandoned))
        except BaseException as error:  # noqa: BLE001  # re-raised in the waiting thread
            arrivals.put(error)

    try:
        # Ctrl-C may already arrive here, when the thread has begun but start() has not returned.
        Thread(target=copy_context().run, args=(call,), name="lamina-ask", daemon=True).start()
        while not abort.is_set():
            try:
                arrival = arrivals.get(timeout=GLANCE)
            except queue.Empty:
                continue
            match arrival:
                case Reply():
                    return arrival
                case BaseException():
                    raise arrival
                case _Ready():
                    _begin(abort)
                case _:
                    if listener is not None:
                        listener(arrival)
                    heard.release()
        raise Aborted
    finally:
        abandoned.set()
        heard.release()


def _begin(abort: Event) -> None:
    if isinstance(abort, Deadline):
        abort.begin()


def ask_on_loop(loop: AbstractEventLoop, abort: Event, provider: Provider, ask: Ask) -> Reply:
    """Return the reply of a provider whose client belongs to an event loop, called from another thread. An abort, and the end of the
    loop, abort the call."""
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
    except CancelledError as error:  # by the loop when it ended
        raise Aborted from error


def own_headers(purpose: str) -> dict[str, str]:
    """Return headers for a call that shares no prefix with the conversation, so that a server that checks prefixes treats it separately."""
    name = f"{purpose}-{new_id()[-8:]}"
    return {SESSION_HEADER: name, FORK_HEADER: name}
