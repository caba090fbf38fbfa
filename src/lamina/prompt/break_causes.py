"""Break detection (K2): the provider read less from its cache than the last call made readable. Why?

The session knows whether the bytes changed (it announced that beforehand, K3, and then nothing is reported), so what is left has
a cause outside: the entry expired, or the provider let it go. Where the provider gives its own diagnosis, that is the cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..core.usage import Usage

# Below both, a shortfall is rounding and block borders, not a break.
SHARE = 0.05
TOKENS = 2_000

TTL_SECONDS = {"5m": 300, "1h": 3_600}


class CacheBreak(msgspec.Struct, frozen=True):
    lost: int  # tokens that should have been read from the cache
    cause: str  # system | tools | model | messages | ttl | provider | unexplained: …
    detail: str  # one sentence

    def sentence(self) -> str:
        return f"{self.lost:,} tokens were not read from the cache: {self.detail}"


def readable_after(usage: Usage) -> int:
    """What a call leaves in the cache for the next one, as far as the provider reports it."""
    return usage.cache_read + usage.cache_write


def judge(
    *, readable: int, usage: Usage, announced: str | None, idle: float, ttl: str | None, diagnosis: Mapping[str, Any] | None
) -> CacheBreak | None:
    """None: nothing was lost, or it was announced. `announced` is the reason of the break record before this call."""
    lost = readable - usage.cache_read
    if lost <= TOKENS or lost <= readable * SHARE or announced not in (None, "unexplained"):
        return None
    reason = (diagnosis or {}).get("cache_miss_reason")
    if isinstance(reason, Mapping) and isinstance(reason.get("type"), str):
        return CacheBreak(lost, str(reason["type"]), f"the provider names {reason['type']} as the reason.")
    if announced == "unexplained":
        return CacheBreak(lost, "messages", "the request did not start with the one before, and no layer had decided that.")
    if idle >= TTL_SECONDS.get(ttl or "5m", 300):
        return CacheBreak(lost, "ttl", f"{idle / 60:.0f} minutes had passed and an entry lives {ttl or '5m'}.")
    return CacheBreak(lost, "provider", "the request was unchanged and the entry young; the provider let it go.")
