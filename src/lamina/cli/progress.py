"""One line on the terminal for whoever waits longer than a second: what is being done, for how long, and how to stop it.

It goes to standard error, is gone before anything else is printed, and is never seen where nobody watches.
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
TICK = 0.5
_CLEAR = "\r\x1b[K"


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """While the block runs. Nothing else may be printed in it."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_draw, args=(what, done), name="lamina-waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _draw(what: str, done: threading.Event) -> None:
    began = time.monotonic()
    if done.wait(QUIET_SECONDS):
        return
    while not done.is_set():
        _write(f"{_CLEAR}{what}, {time.monotonic() - began:.0f} s; Ctrl-C stops")
        done.wait(TICK)
    _write(_CLEAR)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
