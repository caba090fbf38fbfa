"""The usage that a model call reports: tokens by price class, counted once per response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The tokens of one model call, by price class."""

    input_tokens: int = 0  # neither read from nor written to the cache
    cache_read: int = 0
    cache_write: int = 0  # all lifetimes together
    cache_write_1h: int = 0  # the part of cache_write with a lifetime of one hour
    output_tokens: int = 0

    @property
    def prompt(self) -> int:
        """Total tokens of the request."""
        return self.input_tokens + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """Tokens in the window after the response is added."""
        return self.prompt + self.output_tokens

    @property
    def hit_rate(self) -> float:
        """Share of the request that was read from the cache."""
        return round(self.cache_read / self.prompt, 4) if self.prompt else 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.cache_write_1h + other.cache_write_1h,
            self.output_tokens + other.output_tokens,
        )

    def __sub__(self, other: Usage) -> Usage:
        """Return what is more than in `other`."""
        both = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return Usage(*(max(0, mine - theirs) for mine, theirs in both))

    def wire(self) -> dict[str, Any]:
        """Return the usage in the format of the Messages API."""
        return {
            "input_tokens": self.input_tokens,
            "cache_read_input_tokens": self.cache_read,
            "cache_creation_input_tokens": self.cache_write,
            "cache_creation": {
                "ephemeral_5m_input_tokens": self.cache_write - self.cache_write_1h,
                "ephemeral_1h_input_tokens": self.cache_write_1h,
            },
            "output_tokens": self.output_tokens,
        }


def read_usage(raw: Mapping[str, Any] | None) -> Usage | None:
    """Read usage in the format of the Messages API; return None if it is missing, invalid or reports an empty prompt."""
    if not isinstance(raw, Mapping):
        return None
    split = raw.get("cache_creation")
    hour = count_of(split.get("ephemeral_1h_input_tokens")) if isinstance(split, Mapping) else 0
    usage = Usage(
        count_of(raw.get("input_tokens")),
        count_of(raw.get("cache_read_input_tokens")),
        count_of(raw.get("cache_creation_input_tokens")),
        hour,
        count_of(raw.get("output_tokens")),
    )
    return usage if usage.prompt > 0 else None


def count_of(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
