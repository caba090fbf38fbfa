"""How the interpreter runs the page: when it collects garbage, how threads take turns, and where their memory comes from."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress

# New objects between two collections. A session that is shown holds many records without cycles, and each full collection walks over them.
COLLECT_AFTER = 20_000
# Seconds until a thread that works lets another one run. A view waits that long whenever it has read a file beside such a thread.
SWITCH = 0.001
# glibc gives each thread an arena of its own, and what one of them has freed is of no use to the others: with many threads the server took
# half as much memory again. Only one thread of Python runs at a time, so that one arena makes none of them wait. The number is malloc.h's.
ARENA_MAX = -8
ARENAS = 1


def tune_process() -> None:
    """Set this process up for the page. Call it before it starts threads."""
    gc.set_threshold(COLLECT_AFTER)
    sys.setswitchinterval(SWITCH)
    with suppress(OSError, TypeError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(ARENA_MAX, ARENAS)
