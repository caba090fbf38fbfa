"""Whether a review is made, which messages it is about, and what it is asked (X1-X5). Pure; the words are in `prompts/`.

The cursor is the last record a review has covered. Where it is no longer in view, all that is visible is new. In a directive the lines
with the range, the day and the directories have a fixed form, which the offline rules read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...core.blocks import ToolResult, ToolUse
from ...core.fence import escape, fence
from ...core.prompt_files import prompt_sections
from ...core.settings.kinds import printable
from ...core.view import Item
from ...memory.recall.plan import user_words
from ...memory.store.scopes import MemoryLocation
from ...prompt.instruction_files import shown
from .sources import UserWords
from .writer import MOST_FILES

# Stop reasons of an answer that is final; one that was cut off, refused or paused is none.
FINAL = frozenset({"end_turn", "stop_sequence"})
# A provider that fails this often in a row fails for a reason that the next turn does not mend either.
MOST_FAILURES = 3

_WRITERS = frozenset({"Write", "Edit"})

WROTE = "the conversation wrote to memory itself"
UNSAID = "the person said nothing new"

# X5: reads, writes, a word at the end, and two for what was refused.
ROUNDS = 5
# Enough of a message to know it by.
FIRST_CHARS = 60

_COUNT = re.compile(
    r"^- New since the last review (?:are the person's last (?P<count>\d+) messages|is the person's last message)", re.M
)
_TODAY = re.compile(r"^- Today is (?P<today>\d{4}-\d\d-\d\d)\.", re.MULTILINE)
_MEMORY = re.compile(r"^- Memory directory: (?P<path>.+)$", re.MULTILINE)
_TEAM = re.compile(r"^- Team memory directory: (?P<path>.+?)\. A project or reference memory", re.MULTILINE)
_LISTED = re.compile(r"^<memory-index>\n(?P<list>.*?)\n</memory-index>$", re.MULTILINE | re.DOTALL)


def stop_reason(*, remote: bool, writable: bool, failures: int) -> str | None:
    """Why no review is made in this session, behind the gates of the trigger. `writable`: one of the scopes takes changes."""
    if remote:
        return "this machine is thrown away"
    if not writable:
        return "memory is read-only"
    return f"it failed {MOST_FAILURES} times in a row" if failures >= MOST_FAILURES else None


def is_final(items: Sequence[Item]) -> bool:
    """X1: the conversation ends with an answer that calls for no tool. The records of one answer share its stop reason."""
    last = items[-1] if items else None
    return last is not None and last.role == "assistant" and last.stop_reason in FINAL


def range_start(items: Sequence[Item], cursor: str | None) -> int:
    """Where the range begins."""
    return next((at + 1 for at in range(len(items) - 1, -1, -1) if items[at].uuid == cursor), 0)


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


def skip_reason(items: Sequence[Item], is_memory: Callable[[str], bool]) -> str | None:
    """Why these messages need no review; only `WROTE` moves the cursor."""
    if wrote_memory(items, is_memory):
        return WROTE
    return None if any(user_words(item) for item in items) else UNSAID


class ExtractDirective(NamedTuple):
    """A directive, read again by who answers without a model."""

    messages: int  # the person's texts in the range
    today: str
    memory: str
    team: str
    listed: str


def render_directive(said: Sequence[UserWords], manifest: Sequence[str], place: MemoryLocation, *, today: str) -> str:
    texts = prompt_sections(__file__, "extract")
    first = escape(printable(said[0].words, FIRST_CHARS)) if said else ""
    span = texts["range one" if len(said) == 1 else "range last"].format(count=len(said), first=first)
    team = texts["team"].format(team=shown(place.team)) + "\n" if place.team is not None else ""
    return texts["directive"].format(
        range=span,
        today=today,
        memory=shown(place.path),
        team=team,
        manifest=fence("memory-index", "\n".join(manifest)) if manifest else texts["nothing"],
        rounds=ROUNDS,
        files=MOST_FILES,
    )


def read_directive(text: str) -> ExtractDirective:
    count, today, memory, team = (pattern.search(text) for pattern in (_COUNT, _TODAY, _MEMORY, _TEAM))
    listed = _LISTED.search(text)
    return ExtractDirective(
        int(count["count"] or 1) if count else 0,
        today["today"] if today else "",
        memory["path"].strip() if memory else "",
        team["path"].strip() if team else "",
        listed["list"] if listed else "",
    )
