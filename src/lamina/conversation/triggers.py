"""Whether a dear step can have anything to do now: cheap looks, so that what most conversations never need is not even loaded.

A step asks its own, finer questions when it is called; a look here only ever says no where the step would.
"""

from __future__ import annotations

from .state import Conversation


def blocking(c: Conversation) -> bool:
    return c.count.judged >= c.limits.blocking


def compaction(c: Conversation) -> bool:
    """Layer 4, or a summary ahead of it."""
    ahead = c.limits.scaled(c.policy.compact.ahead_tokens)
    return c.autocompact and not c.settings.collapse and c.count.judged >= c.limits.autocompact - ahead


def collapse(c: Conversation) -> bool:
    return c.settings.collapse and c.count.judged >= c.limits.effective * c.policy.compact.collapse_percent // 100


def notes(c: Conversation) -> bool:
    """Layer 3: before the first update the conversation must have reached a size."""
    if c.directory is None or not (c.settings.session_notes and c.autocompact):
        return False
    begun = "notes" in c.log.events or c.resumed.get("notes")
    return bool(begun) or c.count.tokens >= c.limits.scaled(c.policy.notes.first_at)
