"""One call to a model that can be left at any moment.

A provider's call blocks: on a server that says nothing, between two tries, between two words. It runs in a thread of its own; what
arrives is heard in the caller's thread, one event at a time, so a listener never runs beside what comes after the call. A call that
was left sends no further request and ends with the next event it gets; what it still brings is dropped, and nobody waits for it.
"""

from __future__ import annotations

import queue
from contextvars import copy_context
from threading import Event, Semaphore, Thread
from typing import Any, TypeAlias

from ..core.effects import Ask
from ..core.reply import Reply
from ..providers import OnEvent, Provider

# How long an abort can go unnoticed: below what a person feels, and 20 wake-ups a second cost nothing.
GLANCE = 0.05

Came: TypeAlias = dict[str, Any] | Reply | BaseException


class _Left(Exception):
    """Nobody waits for this call any more."""


def ask_until(abort: Event, provider: Provider, ask: Ask, on_event: OnEvent) -> Reply | None:
    """The reply; None when the call was left because of the abort."""
    call = _Call(provider, ask)
    Thread(target=copy_context().run, args=(call.run,), name="lamina-ask", daemon=True).start()
    try:
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
                case _:
                    on_event(came)
                    call.heard.release()
        return None
    finally:
        call.left.set()
        call.heard.release()


class _Call:
    def __init__(self, provider: Provider, ask: Ask) -> None:
        self._provider = provider
        self._ask = ask
        self.came: queue.SimpleQueue[Came] = queue.SimpleQueue()
        self.heard = Semaphore(0)
        self.left = Event()

    def run(self) -> None:
        try:
            self.came.put(self._provider.ask(self._ask.request, purpose=self._ask.purpose, on_event=self._tell, abort=self.left))
        except BaseException as error:  # noqa: BLE001  # it is raised again in the thread that waits
            self.came.put(error)

    def _tell(self, event: dict[str, Any]) -> None:
        self.came.put(event)
        self.heard.acquire()
        if self.left.is_set():
            raise _Left
