"""Signal handling: a signal becomes a stop request, never an exception in the middle of a write.

Owns the signal handlers while `lamina` runs. Invariants: during a turn a signal only requests a stop; the agent's own abort
ends the turn, and everything received so far is in the transcript before the process ends. Outside a turn nothing is being
written, so the signal ends the program at once. A second Ctrl-C interrupts the turn without waiting; a third exits immediately.
A signal that the parent process set to be ignored stays ignored.
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
from .interrupts import is_importing, send_again

# The exit code of a program ended by signal N is 128 + N, as in shells.
ENDED_BY = 128
# Plain numbers, since Windows does not define these names.
SIGHUP = 1
SIGPIPE = 13

_HEARD = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class StopRequest:
    """A request to stop the turn or the program, and the function that aborts the current turn."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._abort: Callable[[], None] | None = None
        self._asking = False
        self._interrupts = 0
        self.signal = 0  # the last signal received

    @property
    def requested(self) -> bool:
        return self._requested.is_set()

    @property
    def leaving(self) -> bool:
        """Whether to end the program, not only the turn."""
        return self.signal not in (0, signal.SIGINT) or self._interrupts > 1

    @property
    def code(self) -> int:
        """The exit code. A closed pipe counts as success."""
        return 0 if self.signal in (0, SIGPIPE) else ENDED_BY + self.signal

    def request(self, number: int) -> None:
        """Request a stop. May be called from a signal handler and from any thread."""
        self.signal = number
        self._requested.set()
        if self._abort is not None:
            self._abort()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Install the signal handlers. Python allows this only in the main thread; in others, nothing changes."""
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
        """Let a stop request call `abort` while a turn runs."""
        self._interrupts = 0
        if not self.leaving:
            self._requested.clear()
            self.signal = 0
        self._abort = abort
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            # Line editors replace our handler and do not always restore it.
            signal.signal(signal.SIGINT, self._hear)
        try:
            yield
        finally:
            self._abort = None

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Turn a signal into KeyboardInterrupt while the user is asked something during a turn."""
        self._asking = True
        try:
            yield
        finally:
            self._asking = False

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if is_importing(frame):
            send_again(number)
            return
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
    """A provider that starts no call after a stop request and adds up the time of its calls.

    An agent resets its abort flag when a turn begins, so a signal just before that would otherwise be lost.
    """

    def __init__(self, provider: Provider, stop: StopRequest) -> None:
        self._provider = provider
        self._stop = stop
        self.seconds = 0.0
        self.name, self.model = provider.name, provider.model
        self.render, self.read, self.ask_async = provider.render, provider.read, provider.ask_async

    @property
    def capabilities(self) -> Capabilities:
        """Read anew each time, since a provider learns what its server rejects."""
        return self._provider.capabilities

    def with_model(self, model: str) -> Provider:
        change: Callable[[str], Provider] | None = getattr(self._provider, "with_model", None)
        return StoppableProvider(change(model), self._stop) if change is not None else self

    def close(self) -> None:
        end: Callable[[], None] | None = getattr(self._provider, "close", None)
        if end is not None:
            end()

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
