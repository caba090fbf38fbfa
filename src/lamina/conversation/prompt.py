"""What stands before the messages of a request: model, system, tools and options. Frozen, replaced as a whole."""

from __future__ import annotations

from ..core.blocks import Wire, canonical
from ..core.prefix import base_chain
from ..prompt.cache_marks import marked_last

# How long a provider keeps a cache entry that nobody asks for, unless a session says otherwise.
DEFAULT_TTL = "5m"
# Options that are part of a provider's cache key.
KEYED_OPTIONS = ("thinking", "tool_choice", "betas", "context_management")


def cache_keys(model: str, options: Wire) -> bytes:
    """Return what two requests must share, besides their prefix, to share a cache entry."""
    return canonical([model, *(options.get(name) for name in KEYED_OPTIONS)])


class Prompt:
    def __init__(
        self, model: str, max_tokens: int, system: list[Wire], tools: list[Wire], options: Wire, ttl: str | None
    ) -> None:
        self.model = model
        self.max_tokens = max_tokens
        self.system = system
        self.tools = tools
        self.options = options
        self.ttl = ttl  # of the cache marks; None: no marks
        self.base = base_chain(tools, system)
        self.keys = cache_keys(model, options)
        self.head: Wire = {"model": model, "max_tokens": max_tokens}
        for name, blocks in (("system", system), ("tools", tools)):
            if blocks:
                self.head[name] = marked_last(blocks, ttl) if ttl else blocks
