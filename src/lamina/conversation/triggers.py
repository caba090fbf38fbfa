"""Cheap checks whether an expensive step could have work to do, so that most conversations never import it.

A step makes its own, finer checks when it is called. A check here is False only if the step would do nothing.
"""

from __future__ import annotations

from .state import Conversation


def blocking(c: Conversation) -> bool:
    return c.count.judged >= c.limits.blocking


def compaction(c: Conversation) -> bool:
    """Return whether layer 4 should compact, or prepare a summary ahead of time."""
    ahead = c.limits.scaled(c.policy.compact.ahead_tokens)
    return c.autocompact and not c.settings.collapse and c.count.judged >= c.limits.autocompact - ahead


def collapse(c: Conversation) -> bool:
    return c.settings.collapse and c.count.judged >= c.limits.effective * c.policy.compact.collapse_percent // 100


def notes(c: Conversation) -> bool:
    """Return whether layer 3 may update its notes. The first update waits until the conversation has reached a minimum size."""
    if c.directory is None or not (c.settings.session_notes and c.autocompact):
        return False
    begun = "notes" in c.log.events or c.resumed.get("notes")
    return bool(begun) or c.count.tokens >= c.limits.scaled(c.policy.notes.first_at)
