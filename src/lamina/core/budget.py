"""The daily budget of background work: the usage of each call, the total of a day, and which limit is exhausted.

Each line of the ledger is one call. Totals do not depend on the order of lines, so any number of processes may write them. A failed
call counts as a call. If the price of a model is unknown, its tokens count but its cost does not; the number of such calls is
reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ..language.text import Text
from ..language.wording import plural
from .settings import Billing, Settings
from .usage import Usage

# A token read from the cache costs a tenth of an uncached one, and forks read far more than they send.
READS_PER_TOKEN = 10

What: TypeAlias = Literal["calls", "tokens", "dollars"]


class Limits(msgspec.Struct, frozen=True):
    """Daily limits for all sessions of a Lamina home together. A limit of 0 disables background work."""

    calls: int
    tokens: int
    dollars: float


def limits_of(settings: Settings) -> Limits:
    return Limits(settings.budget_calls, settings.budget_tokens, settings.budget_dollars)


class LedgerLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One background call."""

    time: float
    purpose: str
    project: str
    session: str = ""
    model: str = ""
    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    usd: float | None = None  # None: the prices of the model are unknown
    failed: bool = False  # there was no answer, so its usage is unknown


class Spent(NamedTuple):
    calls: int = 0
    usage: Usage = Usage()
    usd: float = 0.0
    unpriced: int = 0  # answered calls whose model has unknown prices
    failed: int = 0

    @property
    def tokens(self) -> int:
        """Tokens as the budget counts them: a cached token counts as a tenth."""
        usage = self.usage
        return usage.input_tokens + usage.cache_write + usage.output_tokens + usage.cache_read // READS_PER_TOKEN

    def with_line(self, line: LedgerLine) -> Spent:
        """Add a line of the ledger. Negative counts are invalid and count as 0, so they never increase the budget."""
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


class Out(msgspec.Struct, frozen=True):
    """A daily limit that is exhausted."""

    what: What
    used: float
    limit: float

    def sentence(self, billing: Billing = "list") -> str:
        unit = plural(int(self.limit), self.what[:-1])
        amount = f"{self.used:,} of {self.limit:,} {unit}"
        if self.what == "dollars":
            amount = f"${self.used:.2f} of ${self.limit:.2f}" if billing == "list" else "the limit of its cost"
        return Text(
            "Background work is paused until tomorrow: today's budget is used up ({amount}). The conversation "
            "continues without it. Run `lamina stats --ledger` for details, or raise the limit with "
            "lamina.budget{what}.",
            amount=amount,
            what=self.what.capitalize(),
        )


def ran_out(spent: Spent, limits: Limits) -> Out | None:
    """Return the first exhausted limit, or None if no limit is exhausted."""
    amounts: tuple[tuple[What, float, float], ...] = (
        ("calls", spent.calls, limits.calls),
        ("tokens", spent.tokens, limits.tokens),
        ("dollars", spent.usd, limits.dollars),
    )
    return next((Out(*limit) for limit in amounts if limit[1] >= limit[2]), None)


def left(spent: Spent, limits: Limits) -> dict[What, float]:
    return {
        "calls": max(0, limits.calls - spent.calls),
        "tokens": max(0, limits.tokens - spent.tokens),
        "dollars": max(0.0, limits.dollars - spent.usd),
    }
