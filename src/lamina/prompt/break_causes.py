"""Cache break detection: explain why the provider read fewer tokens from its cache than the previous call left there.

The session knows whether the request bytes changed. If they did, it announced the break beforehand and nothing is reported
here. Otherwise the cause is outside: the entry expired, or the provider evicted it. If the provider sends its own
diagnosis, that is the reported cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..core.usage import Usage
from ..language.wording import counted, plural

# A shortfall below either limit is rounding or a block border, not a break.
SHARE = 0.05
TOKENS = 2_000

TTL_SECONDS = {"5m": 300, "1h": 3_600}


class CacheBreak(msgspec.Struct, frozen=True):
    lost: int  # tokens that should have been read from the cache
    cause: str  # system | tools | model | messages | ttl | provider | unexplained: …
    detail: str  # one sentence

    def sentence(self) -> str:
        return f"{counted(self.lost, 'token')} {plural(self.lost, 'was', 'were')} not read from the cache: {self.detail}"


def readable_after(usage: Usage) -> int:
    """Return the number of tokens a call leaves in the cache for the next one, as far as the provider reports it."""
    return usage.cache_read + usage.cache_write


def judge(
    *, readable: int, usage: Usage, announced: str | None, idle: float, ttl: str | None, diagnosis: Mapping[str, Any] | None
) -> CacheBreak | None:
    """Return the break, or None if nothing was lost or the break was announced. `announced` is the reason in the break
    record that precedes this call."""
    lost = readable - usage.cache_read
    if lost <= TOKENS or lost <= readable * SHARE or announced not in (None, "unexplained"):
        return None
    reason = (diagnosis or {}).get("cache_miss_reason")
    if isinstance(reason, Mapping) and isinstance(reason.get("type"), str):
        return CacheBreak(lost, str(reason["type"]), f"the provider reports {reason['type']}.")
    if announced == "unexplained":
        return CacheBreak(
            lost, "messages", "the request did not start with the previous one, and no layer had announced a change."
        )
    if idle >= TTL_SECONDS.get(ttl or "5m", 300):
        return CacheBreak(
            lost, "ttl", f"{counted(round(idle / 60), 'minute')} passed between the calls, and a cache entry lives {ttl or '5m'}."
        )
    return CacheBreak(lost, "provider", "the request was unchanged and the entry had not expired; the provider evicted it.")
