"""Which results to delete in the provider's cache (M4); the marks themselves are the conversation's (`conversation/cache_edits.py`)."""

from __future__ import annotations

from ...conversation.cache_edits import CacheEdits
from .registry import Clearable, Registry


def plan_edits(registry: Registry, edits: CacheEdits, *, over: int, keep: int) -> list[Clearable]:
    """The results to mark now: with more than `over` that are not marked yet, the oldest beyond the last `keep`. What is marked
    is in the registry (`CacheEdits.prune`), so that counting is a subtraction."""
    if len(registry) - len(edits.marked) <= over:
        return []
    return [row for row in registry.rows[: max(0, len(registry) - keep)] if row.block.tool_use_id not in edits.marked]
