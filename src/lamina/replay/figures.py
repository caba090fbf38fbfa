"""What one policy comes to: a row of the report, for one session or for many. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from ..core.usage import Usage
from ..providers.models import UNITS_READ, UNITS_WRITE, UNITS_WRITE_1H, cost
from .model_answers import Asked

# Figures of which the greatest counts; all others add up.
GREATEST = frozenset({"peak_tokens"})


class Figures(msgspec.Struct, frozen=True):
    """Tokens and money count the conversation's calls and those beside it; `calls`, `peak_tokens` and what follows only the former."""

    usage: Usage = Usage()
    usd: float = 0.0
    calls: int = 0
    side_calls: int = 0
    unpriced: int = 0  # calls of models whose prices are not known
    compactions: int = 0
    clearings: int = 0
    spills: int = 0
    breaks: int = 0  # requests that did not start with the one before
    expired: int = 0  # requests that found the cache gone after a pause
    regrets: int = 0  # a file or a result read again after it was taken out of view
    rereads: int = 0  # read again at all, in view or not
    peak_tokens: int = 0
    over_window: int = 0  # requests longer than the model's window
    stopped: int = 0  # sessions that ended early because the window was full
    not_played: int = 0  # the calls they lack
    failures: int = 0  # times a layer stepped aside
    facts: int = 0  # probe facts looked for, and those that stood in the context
    facts_kept: int = 0
    files: int = 0  # files used so far, and those the context still named
    files_kept: int = 0
    asked: Asked = Asked()  # what a provider answered, where one was asked
    memory_tokens: int = 0  # of the index and of what recall brought, each counted when it was put in

    def __add__(self, other: Figures) -> Figures:
        both = ((name, getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)
        return Figures(**{name: max(one, two) if name in GREATEST else one + two for name, one, two in both})

    @property
    def input_units(self) -> float:
        """What was sent, in prices of one uncached input token. Answers are not in it: they are the same whatever the policy."""
        five_minutes = self.usage.cache_write - self.usage.cache_write_1h
        return (
            self.usage.input_tokens
            + self.usage.cache_read * UNITS_READ
            + five_minutes * UNITS_WRITE
            + self.usage.cache_write_1h * UNITS_WRITE_1H
        )

    @property
    def cost_usd(self) -> float | None:
        """None where no call has a known price."""
        return None if self.unpriced and self.unpriced >= self.calls + self.side_calls else self.usd

    def to_json(self) -> dict[str, Any]:
        usd = self.cost_usd
        return {
            "input_units": round(self.input_units, 1),
            "cost_usd": round(usd, 6) if usd is not None else None,
            "input_tokens": self.usage.input_tokens,
            "cached_tokens": self.usage.cache_read,
            "written_tokens": self.usage.cache_write,
            "output_tokens": self.usage.output_tokens,
            "compactions": self.compactions,
            "breaks": self.breaks,
            "regrets": self.regrets,
            "peak_tokens": self.peak_tokens,
            "written_1h_tokens": self.usage.cache_write_1h,
            "calls": self.calls,
            "side_calls": self.side_calls,
            "unpriced_calls": self.unpriced,
            "clearings": self.clearings,
            "spills": self.spills,
            "expired": self.expired,
            "repeated_reads": self.rereads,
            "over_window": self.over_window,
            "stopped_sessions": self.stopped,
            "calls_not_played": self.not_played,
            "layer_failures": self.failures,
            "facts": self.facts,
            "facts_in_context": self.facts_kept,
            "files": self.files,
            "files_in_context": self.files_kept,
            "memory_tokens": self.memory_tokens,
            **({"asked": self.asked.to_json()} if self.asked.calls or self.asked.failed else {}),
        }


def billed(model: str, usage: Usage, *, side: bool = False, window: int = 0) -> Figures:
    """One call."""
    usd = cost(model, usage).usd
    return Figures(
        usage=usage,
        usd=usd or 0.0,
        unpriced=usd is None,
        calls=not side,
        side_calls=side,
        peak_tokens=0 if side else usage.prompt,
        over_window=not side and bool(window) and usage.prompt > window,
    )
