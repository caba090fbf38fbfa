"""What a server holds between requests: its settings, its caches, its script, and every request it received."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from ..core.cache import CacheModel, CacheUse, Count, Prompt, count_block, openai_cache
from .received_request import Announcements, Received, Wire
from .request_validation import Judged, Limits
from .script import MAX_DELAY, Delay, Script

# As the API documents it for the Messages endpoint.
BODY_LIMIT = 32 * 1024 * 1024
# More requests than any test sends; the oldest are forgotten so that a soak test does not fill the memory.
KEEP_REQUESTS = 10_000
# Answers that `diagnostics.previous_message_id` can still name.
KEEP_PROMPTS = 1_000
# How often a waiting answer looks whether the server is being closed.
_GLANCE = 0.05
# 2026-01-01T00:00:00Z: any fixed moment, so that a run gives the same answer twice.
START = 1_767_225_600.0


class Clock:
    """A clock that stands still until a test moves it; callable like time.time."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class ServerState:
    """Settings may be changed at any time; what is locked is what connections change."""

    def __init__(
        self,
        *,
        key: str | None = None,
        clock: Callable[[], float] | None = None,
        count: Count = count_block,
        body_limit: int = BODY_LIMIT,
        limits: Limits | None = None,
    ) -> None:
        """`key`: the only API key that is taken; None takes any. `clock`: what the cache goes by; default: it stands still."""
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
        """The next one: ids of requests, messages and calls are made of it."""
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
        """The answer begins: what the request wrote can be read from now on."""
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
        """Until the event is set or the seconds are over; never beyond MAX_DELAY, never beyond the server's life."""
        if delay is None:
            return
        event = delay if isinstance(delay, threading.Event) else self.closing
        end = time.monotonic() + (MAX_DELAY if isinstance(delay, threading.Event) else min(delay, MAX_DELAY))
        while not self.closing.is_set() and (left := end - time.monotonic()) > 0:
            if event.wait(min(left, _GLANCE)):
                return
