"""One line on standard error for whoever waits longer than a second: what is being done, for how long, and how to stop it.

On a terminal it is gone before anything else is printed. Elsewhere it is never seen, or where `line_seconds` says so, now and then.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# A shorter wait needs no explanation.
QUIET_SECONDS = 1.0
TICK = 0.2
_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Shows the newest of what it is told, at most every TICK; a context manager, and nothing else may be printed in it."""

    def __init__(self, ending: str = "; Ctrl-C stops", *, line_seconds: float | None = None) -> None:
        self._ending = ending
        self._terminal = sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
        self._pause = TICK if self._terminal else line_seconds
        self._next = time.monotonic() + QUIET_SECONDS
        self._drawn = False

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn and self._terminal:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def show(self, text: str) -> None:
        now = time.monotonic()
        if self._pause is None or now < self._next:
            return
        self._next, self._drawn = now + self._pause, True
        line = f"{_CLEAR}{text}{self._ending}" if self._terminal else f"lamina: {text}\n"
        print(line, end="", file=sys.stderr, flush=True)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Shows for how long it takes already, while the block runs."""
    began, done = time.monotonic(), threading.Event()

    def draw() -> None:
        while not done.wait(TICK):
            progress.show(f"{what}, {time.monotonic() - began:.0f} s")

    with ProgressLine() as progress:
        thread = threading.Thread(target=draw, name="lamina-waiting", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
