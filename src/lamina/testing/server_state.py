"""The state of a server between requests: its settings, caches and script, and every request it received."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from ..core.cache import CacheModel, CacheUse, Count, Prompt, count_block, openai_cache
from .received_request import Announcements, Received, Wire
from .request_validation import Judged, Limits
from .script import MAX_DELAY, Delay, Script

# The documented limit of the Messages endpoint.
BODY_LIMIT = 32 * 1024 * 1024
# More requests than a usual test sends. The oldest are dropped, so that a soak test does not fill the memory.
KEEP_REQUESTS = 10_000
# Number of answers that `diagnostics.previous_message_id` can refer to.
KEEP_PROMPTS = 1_000
# Seconds between two checks of a waiting answer whether the server is being closed.
_GLANCE = 0.05
# 2026-01-01T00:00:00Z: an arbitrary fixed time, so that runs are reproducible.
START = 1_767_225_600.0


class Clock:
    """A clock that stands still until a test advances it. Callable like time.time."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class ServerState:
    """Settings may be changed at any time. Everything that connections change is protected by a lock."""

    def __init__(
        self,
        *,
        key: str | None = None,
        clock: Callable[[], float] | None = None,
        count: Count = count_block,
        body_limit: int = BODY_LIMIT,
        limits: Limits | None = None,
    ) -> None:
        """Create a server.

        Args:
            key: The only accepted API key; None accepts any.
            clock: The time source of the cache. Defaults to a `Clock`, which stands still.
            count: Counts the tokens of a block.
            body_limit: Maximum size of a request in bytes.
            limits: The window, the models and the features.
        """
        self.key = key
        self.clock: Callable[[], float] = clock or Clock()
        self.count = count
        self.body_limit = body_limit
        self.limits = limits or Limits()
        self.cache = CacheModel(count=count)
        self.chat_cache = openai_cache(count=count)
        self.script = Script()
        self.announcements = Announcements()
        self.requests: list[Received] = []
        self.closing = threading.Event()
        self._prompts: dict[str, Prompt] = {}
        self._numbers = 0
        self._lock = threading.Lock()

    def number(self) -> int:
        """Return the next number, for the ids of requests, messages and calls."""
        with self._lock:
            self._numbers += 1
            return self._numbers

    def record(self, received: Received) -> None:
        with self._lock:
            index = self.requests[-1].index + 1 if self.requests else 0
            self.requests.append(msgspec.structs.replace(received, index=index))
            del self.requests[:-KEEP_REQUESTS]

    def look(self, judged: Judged, wire: Wire, now: float) -> CacheUse | None:
        if judged.seen is None or wire == "count":
            return None
        with self._lock:
            return self.chat_cache.look(judged.seen, now) if wire == "chat" else self.cache.look(judged.seen, now)

    def commit(self, judged: Judged, received: Received) -> None:
        """Store the request in the cache once its answer begins."""
        if judged.seen is None or received.use is None:
            return
        with self._lock:
            if received.wire == "chat":
                self.chat_cache.commit(judged.seen, received.at)
            else:
                self.cache.commit(received.use, received.at)

    def prompt_of(self, name: str) -> Prompt | None:
        with self._lock:
            return self._prompts.get(name)

    def keep_prompt(self, name: str, prompt: Prompt) -> None:
        with self._lock:
            self._prompts[name] = prompt
            while len(self._prompts) > KEEP_PROMPTS:
                del self._prompts[next(iter(self._prompts))]

    def wait(self, delay: Delay | None) -> None:
        """Wait until the event is set or the time has passed, but at most MAX_DELAY seconds or until the server closes."""
        if delay is None:
            return
        event = delay if isinstance(delay, threading.Event) else self.closing
        end = time.monotonic() + (MAX_DELAY if isinstance(delay, threading.Event) else min(delay, MAX_DELAY))
        while not self.closing.is_set() and (left := end - time.monotonic()) > 0:
            if event.wait(min(left, _GLANCE)):
                return
