"""Due: whether the notes are to be updated after this answer (N3).

Pure. Invariants: growth in tokens is always required; only a success moves the cursor it is measured from. A view that shrank moves the
cursor down with it, so that notes go on after a compaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from ...core.policy import NotesPolicy

Why: TypeAlias = Literal["first", "grown"]


class Cursor(msgspec.Struct, frozen=True):
    """What the last successful update recorded."""

    tokens: int  # the count at that time
    covered: str  # the last record the notes know of


class Failed(msgspec.Struct, frozen=True):
    """Updates that failed in a row, and the count at the last of them."""

    times: int = 0
    tokens: int = 0


NONE_FAILED = Failed()


def due(
    cursor: Cursor | None,
    *,
    tokens: int,
    calls: Callable[[], int],
    called: bool,
    policy: NotesPolicy,
    scaled: Callable[[int], int],
    failed: Failed = NONE_FAILED,
    retries: int = 0,
) -> Why | None:
    """`calls` counts the tool calls since the cursor; `called` says whether the last answer called a tool.

    An update that failed is tried again after the next answers, `retries` times; from then on the conversation must grow before
    each further try, so that what cannot work costs no more than what works.
    """
    growth = scaled(policy.growth)
    if failed.times > retries and tokens - failed.tokens < growth:
        return None
    if cursor is None:
        return "first" if tokens >= scaled(policy.first_at) else None
    if tokens - cursor.tokens < growth:
        return None
    return "grown" if not called or calls() >= policy.tool_calls else None


def lowered(cursor: Cursor, tokens: int) -> Cursor:
    """The cursor under a count that fell: what was said since then counts as growth again."""
    return cursor if tokens >= cursor.tokens else Cursor(tokens, cursor.covered)
