"""Clearing by size (M2): when the window fills up and old results are much of it, the oldest go until enough is left."""

from __future__ import annotations

from bisect import bisect_left

from .registry import Clearable, Registry


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
