"""Clearing by the provider itself (M5): asked for once, in the options of every request, and reported in every response.

The conversation stays whole on our side. What the server applied is the same again in the next response until it clears more, so
only a change of it is news.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.blocks import Wire

CLEAR_RESULTS = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"
# M5: what the model thought last is what it goes on from.
THINKING_TURNS = 1


class Applied(NamedTuple):
    tokens: int
    edits: tuple[Wire, ...]


def api_options(*, trigger: int, clear_at_least: int, excluded: Sequence[str], thinking: bool) -> Wire:
    """The request's `context_management`. Thinking stands first, as the API demands; it may be cleared only where it is on."""
    results: Wire = {
        "type": CLEAR_RESULTS,
        "trigger": {"type": "input_tokens", "value": trigger},
        "clear_at_least": {"type": "input_tokens", "value": clear_at_least},
    }
    if excluded:
        results["exclude_tools"] = list(excluded)
    thoughts = {"type": CLEAR_THINKING, "keep": {"type": "thinking_turns", "value": THINKING_TURNS}}
    return {"context_management": {"edits": [thoughts, results] if thinking else [results]}}


def clears_by_itself(options: Mapping[str, Any]) -> bool:
    """Whether requests with these options ask the provider to clear results."""
    return any(edit.get("type") == CLEAR_RESULTS for edit in _mappings(options.get("context_management"), "edits"))


def read_applied(note: Any) -> Applied:
    """What a response says was cleared from its request."""
    edits = tuple(dict(edit) for edit in _mappings(note, "applied_edits"))
    counts = (edit.get("cleared_input_tokens") for edit in edits)
    return Applied(sum(count for count in counts if isinstance(count, int)), edits)


def _mappings(value: Any, name: str) -> Iterable[Mapping[str, Any]]:
    found = value.get(name) if isinstance(value, Mapping) else None
    return [edit for edit in found if isinstance(edit, Mapping)] if isinstance(found, list | tuple) else []
