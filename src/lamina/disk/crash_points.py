"""Crash points: every system call that changes the disk has a name, and a test can stop the process right before it.

Owns the one global watcher. Invariant: without a watcher (always, outside tests) a point does nothing and a write is one
`os.write`, so production runs the same code that tests kill at every line.

A watcher is called with the name of the point and, for writes, the number of bytes about to be written. It may end the process (a
crash), raise OSError (a failed call) or return how many bytes may be written (a short write). None lets the call proceed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watcher = Callable[[str, int], int | None]

# The largest single write that every system accepts; macOS rejects larger ones with EINVAL.
MAX_WRITE = 1 << 30

_watcher: Watcher | None = None


def point(name: str) -> None:
    """Mark the position right before one system call. The watcher's return value matters only for a write."""
    if _watcher is not None:
        _watcher(name, 0)


def write(name: str, fd: int, data: bytes | memoryview) -> int:
    """Call `os.write` with a crash point. Like `os.write`, it may write less than it was given."""
    if _watcher is None:
        return os.write(fd, data)
    limit = _watcher(name, len(data))
    return os.write(fd, data if limit is None else data[:limit])


def write_all(name: str, fd: int, data: bytes | memoryview) -> None:
    """Write all of `data`, with a crash point before each piece."""
    unwritten = memoryview(data)
    while unwritten:
        written = write(name, fd, unwritten[:MAX_WRITE])
        if written <= 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        unwritten = unwritten[written:]


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Call `watcher` at every crash point of this process until the block ends."""
    global _watcher
    before, _watcher = _watcher, watcher
    try:
        yield
    finally:
        _watcher = before
