"""What to clear, and whether it pays.

By size (M2): when the window fills up and old results are much of it, the oldest go until enough is left.
After a pause (M3): the cache has expired, so that everything is written again whatever is cleared.

Whether a clearing pays for the break it causes (`micro.must_pay`).

Theory, in prices of one uncached input token. A clearing costs a break: what stands behind the first cleared result is no longer
the prefix the provider knows and is written once more, at the price of a write instead of a read. What it brings depends on what
would happen without it.

*Compaction comes by itself.* Then the conversation goes in cycles: it grows by `growth` tokens a call to the threshold, a summary is
made, and it starts again from what a compaction leaves (`base`). One cycle costs the reads on the way and the summary: the prompt
read once more, the summary written by the model, and what is left written to the cache. Divided by the calls of a cycle that is
what a call costs in the long run. A clearing puts `saved ÷ growth` calls in between, after which the conversation stands where it
stood. So it pays when those calls, at the sizes they are read at and with the break, cost less than as many calls of the cycle:

    (write − read) × rewritten + read × sizes of the calls  ≤  calls gained × cost of a call in the long run

This is a higher bar than "it saves more than it breaks": a large context that is read on every call costs more than a summary now
and then, and clearing keeps the context large. What a summary loses is not in these prices; who minds sets `must_pay` off.

*It does not.* Then the cleared tokens are read in every call until the window is full, and it pays when that is more than the break:

    read × saved × calls left  ≥  (write − read) × rewritten

A conversation too young to show its growth, or one that does not grow, is not cleared. Where the cache is cold (the pause was longer
than its entries live, or there is none) nothing is lost: it always pays.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from ...conversation.request import CacheEdits
from ...providers.models import UNITS_OUTPUT, UNITS_READ, UNITS_WRITE, UNITS_WRITE_1H
from .registry import Clearable, Registry

# How long an entry lives at a provider that caches by itself and promises nothing: it is gone after an hour at the latest.
AUTOMATIC_SECONDS = 3_600
SECONDS = {"5m": 300, "1h": 3_600}
# A summary's median length: 12,181 characters in 470 sessions of one agent.
SUMMARY_TOKENS = 3_000


class Clearing(NamedTuple):
    """What is planned, and where the conversation stands."""

    tokens: int  # of the next request without it
    saved: int
    rewritten: int  # what stays behind the first cleared result
    growth: float | None  # tokens a call
    limit: int  # where compaction begins, or where the window is full


class Cycle(NamedTuple):
    """What a compaction leaves: what stands before the messages, the summary, what is kept verbatim."""

    fixed: int
    kept: int

    @property
    def base(self) -> int:
        return self.fixed + SUMMARY_TOKENS + self.kept


def pays(this: Clearing, *, after_compaction: Cycle | None, cold: bool, hour: bool = False) -> bool:
    """`after_compaction` None: none comes by itself. `hour`: entries are written to live for one."""
    if cold:
        return True
    if this.growth is None or this.growth <= 0 or this.saved <= 0:
        return False
    write = UNITS_WRITE_1H if hour else UNITS_WRITE
    loss = (write - UNITS_READ) * max(0, this.rewritten)
    before = max(0, this.limit - this.tokens) / this.growth
    after = max(0, this.limit - this.tokens + this.saved) / this.growth
    if after_compaction is None:
        return UNITS_READ * this.saved * (1 + after) >= loss
    reads = after * (this.tokens - this.saved + this.limit) / 2 - before * (this.tokens + this.limit) / 2
    gained = (after - before) * _call_in_the_long_run(after_compaction, this.limit, this.growth, write)
    return gained >= loss + UNITS_READ * reads


def _call_in_the_long_run(left: Cycle, limit: int, growth: float, write: float) -> float:
    calls = max(1.0, (limit - left.base) / growth)
    summary = UNITS_READ * limit + UNITS_OUTPUT * SUMMARY_TOKENS + write * (left.base - left.fixed)
    return summary / calls + UNITS_READ * (left.base + limit) / 2


def is_cold(idle: float, ttl: str | None, *, automatic: bool) -> bool:
    """Whether nothing of the last request is left in the cache. `ttl` None: no marks, so only an automatic cache may hold it."""
    if ttl is not None:
        return idle >= SECONDS.get(ttl, AUTOMATIC_SECONDS)
    return not automatic or idle >= AUTOMATIC_SECONDS


def plan_edits(registry: Registry, edits: CacheEdits, *, over: int, keep: int) -> list[Clearable]:
    """The results to mark now: with more than `over` that are not marked yet, the oldest beyond the last `keep`. What is marked
    is in the registry (`CacheEdits.prune`), so that counting is a subtraction."""
    if len(registry) - len(edits.marked) <= over:
        return []
    return [row for row in registry.rows[: max(0, len(registry) - keep)] if row.block.tool_use_id not in edits.marked]


# M3's floor: the newest result is what the model was just looking at.
LEAST_KEPT = 1


def plan_idle(registry: Registry, *, idle: float, minutes: int, keep: int) -> list[Clearable]:
    """All but the newest results; none before the pause is over. `idle` is in seconds."""
    if idle <= minutes * 60:
        return []
    return registry.oldest(len(registry) - max(LEAST_KEPT, keep))


def plan_size(
    registry: Registry, *, above_warning: bool, keep_tokens: int, keep_last: int, save_at_least: int
) -> list[Clearable]:
    """The results to clear; none where it would not save enough. A binary search, whatever the view holds."""
    excess = registry.total - keep_tokens
    if not above_warning or excess <= 0:
        return []
    # The fewest of the oldest whose going leaves no more than is to be kept.
    count = min(bisect_left(registry.sums, excess) + 1, len(registry) - keep_last)
    if count <= 0 or registry.saved_by(count) < save_at_least:
        return []
    return registry.oldest(count)
