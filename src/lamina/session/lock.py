"""The lock of a session: one thread at a time, and none after it was closed."""

from __future__ import annotations

import threading
from collections.abc import Callable


class SessionLock:
    """The session's lock as a context manager. Checks after the wait that the session was not closed in the meantime."""

    __slots__ = ("_check", "_lock")

    def __init__(self, lock: threading.RLock, check: Callable[[], None]) -> None:
        self._lock = lock
        self._check = check

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._check()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._lock.release()
