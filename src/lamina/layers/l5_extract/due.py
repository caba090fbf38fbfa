"""When a review is due, and what it is about (X1–X4): gates, the turns between two reviews, the range since the cursor. Pure.

The cursor is the last record a review has covered. Where it is no longer in view, all that is visible is new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...core.blocks import ToolResult, ToolUse
from ...core.view import Item
from ...memory.recall.plan import user_words

# Stop reasons of an answer that is final; one that was cut off, refused or paused is none.
FINAL = frozenset({"end_turn", "stop_sequence"})
# A provider that fails this often in a row fails for a reason that the next turn does not mend either.
MOST_FAILURES = 3

_WRITERS = frozenset({"Write", "Edit"})

WROTE = "the conversation wrote to memory itself"
UNSAID = "the person said nothing new"


class Gates(NamedTuple):
    """What must be so for a review to be made at all (X2)."""

    on: bool  # the switch; rules of the settings turn it off where memory is off and in assistant mode
    remote: bool
    lent: bool  # the main agent of a conversation with memory has lent its desk
    writable: bool  # one of the scopes takes changes
    interactive: bool
    asked_for: bool  # the switch for runs without a person
    failures: int = 0


def why_not(gates: Gates) -> str | None:
    """What stands in the way, the cheapest first."""
    checks = (
        (not gates.on, "extraction is off"),
        (gates.remote, "this machine is thrown away"),
        (not gates.lent, "this is no main agent with memory"),
        (not (gates.interactive or gates.asked_for), "nobody is there, and lamina.extractionNonInteractive is off"),
        (not gates.writable, "memory is read-only"),
        (gates.failures >= MOST_FAILURES, f"it failed {MOST_FAILURES} times in a row"),
    )
    return next((reason for stops, reason in checks if stops), None)


def is_final(items: Sequence[Item]) -> bool:
    """X1: the conversation ends with an answer that calls for no tool. The records of one answer share its stop reason."""
    last = items[-1] if items else None
    return last is not None and last.role == "assistant" and last.stop_reason in FINAL


def begins(items: Sequence[Item], cursor: str | None) -> int:
    """Where the range begins."""
    if cursor is not None:
        for at in range(len(items) - 1, -1, -1):
            if items[at].uuid == cursor:
                return at + 1
    return 0


def wrote_memory(items: Sequence[Item], is_memory: Callable[[str], bool]) -> bool:
    """X3: a Write or an Edit of a memory file that succeeded."""
    wrote: set[str] = set()
    for item in items:
        for block in item.blocks:
            if isinstance(block, ToolUse) and block.name in _WRITERS and isinstance(block.input, dict):
                path = block.input.get("file_path")
                if isinstance(path, str) and path and is_memory(path):
                    wrote.add(block.id)
            elif isinstance(block, ToolResult) and block.tool_use_id in wrote and not (block.is_error or item.synthetic):
                return True
    return False


def skips(items: Sequence[Item], is_memory: Callable[[str], bool]) -> str | None:
    """Why these messages need no review; only `WROTE` moves the cursor."""
    if wrote_memory(items, is_memory):
        return WROTE
    return None if any(user_words(item) for item in items) else UNSAID
