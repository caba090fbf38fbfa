"""`diagnostics.previous_message_id` → why the prompt cache could not be reused: the first thing that differs, by its kind."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.blocks import Wire
from ..core.cache import Piece, Prompt


def cache_miss_reason(before: Prompt | None, after: Prompt) -> Wire | None:
    """None: nothing that was sent before has changed."""
    if before is None:
        return {"type": "previous_message_not_found"}
    if before.model != after.model:
        return _changed("model_changed", before.pieces)
    for section, kind in (("system", "system_changed"), ("tools", "tools_changed")):
        old, new = _section(before, section), _section(after, section)
        at = first_change(old, new)
        if at is not None or len(old) != len(new):
            changed = old[at if at is not None else min(len(old), len(new)) :]
            return _changed(kind, [*changed, *_section(before, "messages")])
    at = first_change(_section(before, "messages"), _section(after, "messages"))
    if at is not None:
        return _changed("messages_changed", _section(before, "messages")[at:])
    if (before.system_key, before.messages_key) != (after.system_key, after.messages_key):
        return {"type": "unavailable"}
    return None


def first_change(before: Sequence[Piece], after: Sequence[Piece]) -> int | None:
    """Index of the first block of `before` that is not in its place in `after`; None: `after` starts with all of them."""
    for at, piece in enumerate(before):
        if at >= len(after) or after[at].digest != piece.digest or after[at].role != piece.role:
            return at
    return None


def _section(prompt: Prompt, section: str) -> list[Piece]:
    return [piece for piece in prompt.pieces if piece.at[0] == section]


def _changed(kind: str, lost: Sequence[Piece]) -> Wire:
    return {"type": kind, "cache_missed_input_tokens": sum(piece.tokens for piece in lost)}
