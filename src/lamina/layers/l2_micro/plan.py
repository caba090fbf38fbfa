"""Decide what to clear, and whether clearing is worth its cache break.

By size (M2): when the window fills up and old results take much of it, the oldest are cleared until enough room is free.
After a pause (M3): the cache has expired, so the whole prompt is written again anyway and clearing costs nothing.

The cost model (`micro.must_pay`), in units of the price of one uncached input token: a clearing causes a cache break. Everything
after the first cleared result leaves the cached prefix and is written again, at the price of a write instead of a read. The
benefit depends on what would happen without the clearing.

*With autocompaction* the conversation moves in cycles. It grows by `growth` tokens per call up to the threshold, is summarised,
and starts again from what a compaction leaves (`base`). A cycle costs the reads on the way plus the summary: one more read of the
prompt, the summary's output tokens, and the cache write of what is left. Divided by the calls in a cycle, this is the long-run
cost per call. A clearing adds `saved ÷ growth` calls before the conversation is back at its present size. It pays if these calls,
with their reads and the break, cost less than the same number of calls in the cycle:

    (write − read) × rewritten + read × sizes of the calls  ≤  calls gained × long-run cost per call

This is stricter than "it saves more than the break costs": clearing keeps the context large, and reading a large context on every
call costs more than an occasional summary. The detail that a summary loses has no price here; turn `must_pay` off if it matters
more to you.

*Without autocompaction* the cleared tokens would be read in every call until the window is full. Clearing pays if that costs more
than the break:

    read × saved × calls left  ≥  (write − read) × rewritten

A conversation that is too young to measure its growth, or that does not grow, is not cleared. With a cold cache (the pause was
longer than the lifetime of its entries, or there is no cache) nothing is lost, so clearing always pays.
"""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from ...conversation.request import CacheEdits
from ...providers.models import UNITS_OUTPUT, UNITS_READ, UNITS_WRITE, UNITS_WRITE_1H
from .registry import Clearable, Registry

# Assumed lifetime of entries in an automatic cache, whose provider guarantees none: they expire after an hour at the latest.
AUTOMATIC_SECONDS = 3_600
SECONDS = {"5m": 300, "1h": 3_600}
# The median summary has 12,181 characters, measured in 470 sessions of one agent.
SUMMARY_TOKENS = 3_000


class Clearing(msgspec.Struct, frozen=True):
    """A planned clearing and the state of the conversation."""

    tokens: int  # tokens of the next request without the clearing
    saved: int
    rewritten: int  # remaining tokens after the first cleared result
    growth: float | None  # tokens per call
    limit: int  # the threshold of autocompaction, or of a full window


class Cycle(msgspec.Struct, frozen=True):
    """The tokens left by a compaction: the fixed part before the messages, the summary, and the messages kept verbatim."""

    fixed: int
    kept: int

    @property
    def base(self) -> int:
        return self.fixed + SUMMARY_TOKENS + self.kept


def pays(this: Clearing, *, after_compaction: Cycle | None, cold: bool, hour: bool = False) -> bool:
    """Return whether a clearing pays for its cache break.

    `after_compaction` is None if autocompaction is off. `hour` means that cache entries are written with a lifetime of one
    hour."""
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


def has_expired(idle: float, ttl: str | None, *, automatic: bool) -> bool:
    """Return whether the last request has expired from the cache. Without a `ttl` there are no cache marks, so only an automatic
    cache may still hold it."""
    if ttl is not None:
        return idle >= SECONDS.get(ttl, AUTOMATIC_SECONDS)
    return not automatic or idle >= AUTOMATIC_SECONDS


def plan_edits(registry: Registry, edits: CacheEdits, *, over: int, keep: int) -> list[Clearable]:
    """Return the results to mark for deletion: if more than `over` are unmarked, all but the last `keep`.

    Every marked result is in the registry (`CacheEdits.prune`), so counting the unmarked ones is a subtraction."""
    if len(registry) - len(edits.marked) <= over:
        return []
    return [row for row in registry.rows[: max(0, len(registry) - keep)] if row.block.tool_use_id not in edits.marked]


# The newest result always stays: the model was just working with it (M3).
LEAST_KEPT = 1


def plan_idle(registry: Registry, *, idle: float, minutes: int, keep: int) -> list[Clearable]:
    """Return all but the newest `keep` results after a pause longer than `minutes`, else nothing. `idle` is in seconds."""
    if idle <= minutes * 60:
        return []
    return registry.oldest(len(registry) - max(LEAST_KEPT, keep))


def plan_size(
    registry: Registry, *, above_warning: bool, keep_tokens: int, keep_last: int, save_at_least: int
) -> list[Clearable]:
    """Return the oldest results to clear, or nothing if that would not save enough. A binary search, however long the view is."""
    excess = registry.total - keep_tokens
    if not above_warning or excess <= 0:
        return []
    # The smallest number of oldest results whose removal leaves at most `keep_tokens`.
    count = min(bisect_left(registry.sums, excess) + 1, len(registry) - keep_last)
    if count <= 0 or registry.saved_by(count) < save_at_least:
        return []
    return registry.oldest(count)
