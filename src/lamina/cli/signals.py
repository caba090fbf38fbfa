"""Stopping: a signal becomes a wish to stop, never an exception in the middle of a write.

Owns the signal handlers while `lamina` runs. Invariants: while a turn is under way a signal only marks that somebody wants its
end; the agent's own abort ends it, and what was said so far is in the transcript before the process ends. Outside a turn nothing is
being written, and the signal ends the program at once. A second Ctrl-C does not wait any longer; a third waits for nothing at all.
A signal the parent has set to be ignored stays ignored.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ..core.blocks import Wire
from ..core.errors import Aborted
from ..core.reply import Reply
from ..providers import Capabilities, OnEvent, Provider

# As shells count: a program that a signal ended.
ENDED_BY = 128
# Numbers, since Windows has no names for them.
SIGHUP = 1
SIGPIPE = 13

_HEARD = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class StopRequest:
    """Who wants an end, and what has to be told."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._abort: Callable[[], None] | None = None
        self._asking = False
        self._interrupts = 0
        self.signal = 0  # the last one heard

    @property
    def requested(self) -> bool:
        return self._requested.is_set()

    @property
    def leaving(self) -> bool:
        """Whether the program is to end, and not only the turn."""
        return self.signal not in (0, signal.SIGINT) or self._interrupts > 1

    @property
    def code(self) -> int:
        """The exit code; a reader that has seen enough is no failure."""
        return 0 if self.signal in (0, SIGPIPE) else ENDED_BY + self.signal

    def request(self, number: int) -> None:
        """May be called from a handler and from any thread."""
        self.signal = number
        self._requested.set()
        if self._abort is not None:
            self._abort()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While the program runs. Python lets only its main thread listen; elsewhere the caller's own handlers stay."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        heard = {number: signal.getsignal(number) for number in _HEARD}
        mine = [number for number, before in heard.items() if before is not signal.SIG_IGN and before is not None]
        for number in mine:
            signal.signal(number, self._hear)
        try:
            yield
        finally:
            for number in mine:
                signal.signal(number, heard[number])

    @contextmanager
    def turn(self, abort: Callable[[], None]) -> Iterator[None]:
        """While a turn is under way, `abort` is what ends it."""
        self._interrupts = 0
        if not self.leaving:
            self._requested.clear()
            self.signal = 0
        self._abort = abort
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            # Line editors put their own handler in place of ours and do not always put ours back.
            signal.signal(signal.SIGINT, self._hear)
        try:
            yield
        finally:
            self._abort = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While a person is asked something in the middle of a turn: a signal is an answer, KeyboardInterrupt."""
        self._asking = True
        try:
            yield
        finally:
            self._asking = False

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self._asking and self._abort is not None:
            self.request(number)
            raise KeyboardInterrupt
        if self._abort is None:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            self.signal = number
            raise SystemExit(ENDED_BY + number)
        self._interrupts += number == signal.SIGINT
        if self._interrupts > 2:
            os._exit(ENDED_BY + number)
        self.request(number)
        if self._interrupts == 2:
            raise KeyboardInterrupt


class StoppableProvider:
    """A provider that begins no call once an end is wished, and counts the time of its calls.

    An agent forgets an abort when a turn begins; a signal that came just before must not be lost.
    """

    def __init__(self, provider: Provider, stop: StopRequest) -> None:
        self._provider = provider
        self._stop = stop
        self.seconds = 0.0
        self.name, self.model = provider.name, provider.model
        self.render, self.read, self.ask_async = provider.render, provider.read, provider.ask_async

    @property
    def capabilities(self) -> Capabilities:
        """A provider learns what its server refuses."""
        return self._provider.capabilities

    def with_model(self, model: str) -> Provider:
        change: Callable[[str], Provider] | None = getattr(self._provider, "with_model", None)
        return StoppableProvider(change(model), self._stop) if change is not None else self

    def ask(
        self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None, abort: threading.Event | None = None
    ) -> Reply:
        if self._stop.requested:
            raise Aborted
        began = time.monotonic()
        try:
            return self._provider.ask(request, purpose=purpose, on_event=on_event, abort=abort)
        finally:
            self.seconds += time.monotonic() - began
