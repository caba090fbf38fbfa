"""Cheap checks whether an expensive step could have work to do, so that most conversations never import it.

A step makes its own, finer checks when it is called. A check here is False only if the step would do nothing.

The *base* of a conversation is the part of its requests that a compaction cannot remove: the system prompt, the tools, and the
first reminder, which follows every summary. Thresholds and targets of compaction are set without it.
"""

from __future__ import annotations

import msgspec

from ..core.records import Boundary
from ..fork.background import LOCAL
from .state import Conversation
from .window.estimate import estimate
from .window.features import measure_all

FIRST_REMINDER = "attachment:instructions"
# Distance to the blocking limit, in tokens of a full-sized window, at which a delayed compaction starts: one round before blocking.
NEAR = 3_000


def blocking(c: Conversation) -> bool:
    return c.count.judged >= c.limits.blocking


def compaction(c: Conversation) -> bool:
    """Return whether layer 4 should compact, or prepare a summary ahead of time."""
    ahead = c.limits.scaled(c.policy.compact.ahead_tokens)
    return c.autocompact and not c.settings.collapse and c.count.judged >= c.limits.autocompact - ahead


def most_unseen(c: Conversation) -> int:
    """Return the maximum tokens of new tool results: with a summary before them, they must fit below the threshold."""
    room = compaction_room(c)
    return max(1, (room.at - room.base) // 2)


def collapse(c: Conversation) -> bool:
    return c.settings.collapse and c.count.judged >= c.limits.effective * c.policy.compact.collapse_percent // 100


def notes(c: Conversation) -> bool:
    """Return whether layer 3 may update its notes. The first update waits until the conversation has reached a minimum size."""
    if c.directory is None or not (c.settings.session_notes and c.autocompact and notes_pay(c)):
        return False
    begun = "notes" in c.log.events or c.resumed.get("notes")
    return bool(begun) or c.count.tokens >= c.limits.scaled(c.policy.notes.first_at)


def notes_pay(c: Conversation) -> bool:
    """Return whether updates of the notes are worth their calls: one costs as much as the summary that the notes replace."""
    if not c.policy.notes.must_pay or c.prompt.model == LOCAL:
        return True
    from ..providers.models import is_free

    return is_free(c.prompt.model)


def base(c: Conversation) -> int:
    """Return the tokens that are in every request, whatever is compacted."""
    reminder = [block for item in c.log.view.items if item.kind == FIRST_REMINDER for block in item.blocks]
    return c.count.before_messages + estimate(measure_all(reminder, c.memo), c.count.calibration)


class CompactionRoom(msgspec.Struct, frozen=True):
    """The tokens that a compaction can work with."""

    base: int
    at: int  # the count at which automatic compaction starts
    enough: bool  # whether it is worth its call; if not, it starts just before blocking


def compaction_room(c: Conversation) -> CompactionRoom:
    """Return where automatic compaction starts, and whether it is worth its call."""
    policy, limits, fixed = c.policy.compact, c.limits, base(c)
    starts = limits.starts_at(fixed)
    least = limits.scaled(policy.tail_min) + limits.scaled(policy.least_room)
    enough = starts - fixed >= min(least, limits.autocompact)
    return CompactionRoom(fixed, starts if enough else max(starts, nearly_full(c)), enough)


def last_compaction(c: Conversation) -> Boundary | None:
    return next((decision for decision in reversed(c.log.decisions.values()) if isinstance(decision, Boundary)), None)


def compaction_at(c: Conversation) -> int:
    return compaction_room(c).at


def nearly_full(c: Conversation) -> int:
    return c.limits.blocking - c.limits.scaled(NEAR)
