"""Clearing after a pause (M3): the cache has expired, so that everything is written again whatever is cleared."""

from __future__ import annotations

from .registry import Clearable, Registry

# M3's floor: the newest result is what the model was just looking at.
LEAST_KEPT = 1


def plan_idle(registry: Registry, *, idle: float, minutes: int, keep: int) -> list[Clearable]:
    """All but the newest results; none before the pause is over. `idle` is in seconds."""
    if idle <= minutes * 60:
        return []
    return registry.oldest(len(registry) - max(LEAST_KEPT, keep))
