"""The budget of background work (B9): what one call used, what a day's calls come to, and what of the day's limits ran out. Pure.

A line of the ledger is one call. Sums are made of lines in any order, so any number of processes may write them. A call that failed
counts as a call. Where a model has no known price its tokens count and its dollars do not, and how many such calls there were is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from .settings import Settings
from .usage import Usage

# A token read from the cache costs a tenth of one that is sent anew, and forks read far more than they send.
READS_PER_TOKEN = 10

What: TypeAlias = Literal["calls", "tokens", "dollars"]


class Limits(NamedTuple):
    """Of one day, over all sessions of a home. 0 of one of them: there is no background work."""

    calls: int
    tokens: int
    dollars: float


def limits_of(settings: Settings) -> Limits:
    return Limits(settings.budget_calls, settings.budget_tokens, settings.budget_dollars)


class LedgerLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One call beside a conversation."""

    time: float
    purpose: str
    project: str
    session: str = ""
    model: str = ""
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    usd: float | None = None  # None: the model's prices are unknown
    failed: bool = False  # no answer came: what it used is not known


class Spent(NamedTuple):
    calls: int = 0
    usage: Usage = Usage()
    usd: float = 0.0
    unpriced: int = 0  # calls that were answered by a model without known prices
    failed: int = 0

    @property
    def tokens(self) -> int:
        """As the budget counts them: those read from the cache by a tenth."""
        usage = self.usage
        return usage.input_tokens + usage.cache_write + usage.output_tokens + usage.cache_read // READS_PER_TOKEN

    def with_line(self, line: LedgerLine) -> Spent:
        """A count below nothing is nobody's: it gives nothing back."""
        used = Usage(max(0, line.input), max(0, line.cache_read), max(0, line.cache_write), 0, max(0, line.output))
        unpriced = line.usd is None and not line.failed
        return self | Spent(1, used, max(0.0, line.usd or 0.0), int(unpriced), int(line.failed))

    def __or__(self, other: Spent) -> Spent:
        return Spent._make(map(add, self, other))


def spent_in(lines: Iterable[LedgerLine]) -> Spent:
    total = Spent()
    for line in lines:
        total = total.with_line(line)
    return total


class Out(NamedTuple):
    """What of the day's limits is used up."""

    what: What
    used: float
    limit: float

    def sentence(self) -> str:
        money = self.what == "dollars"
        amount = f"${self.used:.2f} of ${self.limit:.2f}" if money else f"{self.used:,} of {self.limit:,} {self.what}"
        return (
            f"Background work rests until tomorrow: it has used {amount} of today's budget. The conversation goes on without it; "
            f"lamina stats --ledger shows what it was used for, and lamina.budget{self.what.capitalize()} sets the limit."
        )


def ran_out(spent: Spent, limits: Limits) -> Out | None:
    """The first limit that is reached; None while there is something left of each."""
    used: tuple[tuple[What, float, float], ...] = (
        ("calls", spent.calls, limits.calls),
        ("tokens", spent.tokens, limits.tokens),
        ("dollars", spent.usd, limits.dollars),
    )
    return next((Out(*one) for one in used if one[1] >= one[2]), None)


def left(spent: Spent, limits: Limits) -> dict[What, float]:
    return {
        "calls": max(0, limits.calls - spent.calls),
        "tokens": max(0, limits.tokens - spent.tokens),
        "dollars": max(0.0, limits.dollars - spent.usd),
    }
