"""The provider of a replay: recorded answers for the conversation, local functions for background calls, and a bill for both.

It makes no calls. Each request is billed with a model of the provider's cache at the recorded time. Summaries and notes are
billed too, with the length that the local function produces. Use one instance per conversation.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import msgspec

from ..conversation.cache_life import KEEP_ALIVE
from ..core.blocks import Wire
from ..core.cache import CacheModel, CacheUse, PrefixCache, Prompt, openai_cache
from ..core.errors import SettingError
from ..core.reply import Reply, read_response
from ..core.usage import Usage
from ..providers import Capabilities, read_spec
from ..providers.offline import DEFAULT_TABLE
from ..session.provider import offline
from .figures import ReplayFigures, bill_call
from .token_scale import TokenCounter

# The model of recordings without a model name: billed with the default cache model, without a price.
UNKNOWN = "unknown"


class CacheLookup(NamedTuple):
    prompt: Prompt
    use: CacheUse


class RecordedProvider:
    """A provider that answers from the recording.

    The player sets `now`, the recorded time in seconds, and `answered_by`, the model of the recorded answer: its price is paid and
    its cache is used, also by forks."""

    name = "replay"
    can_call = True

    def __init__(self, model: str, count: TokenCounter) -> None:
        self.model = self.answered_by = model or UNKNOWN
        automatic = _by_openai(self.model)
        # No cache edits and no clearing by the provider: what a server does on its own is not modelled.
        marked = Capabilities("messages", cache_marks=True, cache_ttl_1h=True, thinking=True)
        self.capabilities = Capabilities("chat") if automatic else marked
        self.now = 0.0
        self.side = ReplayFigures()
        self._count = count
        self._cache: CacheModel | PrefixCache = (
            openai_cache(count=count, shared=True) if automatic else CacheModel(count=count, shared=True)
        )
        self._local = offline({**DEFAULT_TABLE, KEEP_ALIVE: lambda _: [{"type": "text", "text": "ok"}]})
        self._lock = threading.Lock()  # forks call from their own threads

    def bill(self, request: Wire, output: int) -> Usage:
        """Bill a request that is answered at once."""
        return self.commit(self.look(request), output)

    def look(self, request: Wire) -> CacheLookup:
        """Return what a request finds in the cache when it is sent."""
        with self._lock:
            prompt = self._cache.reader.read({**request, "model": self.answered_by})
            return CacheLookup(prompt, self._cache.look(prompt, self.now))

    def commit(self, found: CacheLookup, output: int) -> Usage:
        """Store what the request leaves in the cache when it is answered, and return its usage."""
        with self._lock:
            if isinstance(self._cache, CacheModel):
                self._cache.commit(found.use, self.now)
            else:
                self._cache.commit(found.prompt, self.now)
        return found.use.usage(output)

    def render(self, request: Wire) -> Wire:
        return request

    def read(self, response: object) -> Reply:
        return read_response(response)

    def ask(self, request: Wire, *, purpose: str = "chat", **options: Any) -> Reply:
        reply = self._local.ask(request, purpose=purpose, **options)
        usage = self.bill(request, self._count.of(reply.blocks))
        with self._lock:
            self.side += bill_call(self.answered_by, usage, side=True)
        return msgspec.structs.replace(reply, model=self.model, usage=usage)

    async def ask_async(self, request: Wire, **options: Any) -> Reply:
        return self.ask(request, **options)


def _by_openai(model: str) -> bool:
    """Return whether this is an OpenAI model, whose cache needs no marks and is free to write."""
    try:
        return read_spec(model).provider == "openai"
    except SettingError:
        return False
