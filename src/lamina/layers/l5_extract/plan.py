"""Decides whether a review runs, which messages it covers, and what it is asked. Pure; the texts are in `prompts/`.

The cursor is the last record that a review has covered. If it is no longer in view, every visible message is new. The directive's lines
with the range, the date and the directories have a fixed form, because the offline rules parse them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...core.blocks import ToolResult, ToolUse
from ...core.fence import escape, fence
from ...core.prompt_files import prompt_sections
from ...core.reach import MEMORY_SAVE
from ...core.settings.kinds import printable
from ...core.view import Item
from ...language.text import Text
from ...memory.guard.sources import UserWords
from ...memory.instructions import what_to_save
from ...memory.recall.plan import user_words
from ...memory.store.scopes import MemoryLocation
from ...prompt.instruction_files import shown
from .writer import MOST_FILES

# Stop reasons of a final answer. One that was cut off, refused or paused is not final.
FINAL = frozenset({"end_turn", "stop_sequence"})
# After this many failures in a row, the next turn would most likely fail too.
MOST_FAILURES = 3

_WRITERS = frozenset({"Write", "Edit"})
# A review calls these. If the model has other tools, it is asked for one answer instead.
NEEDED = frozenset({"Read", "Write"})

WROTE = "the conversation wrote to memory itself"
UNSAID = "the user wrote nothing new"

# Reads, writes, a closing sentence, and two more for what was refused.
ROUNDS = 5
# Enough to recognise a message by.
FIRST_CHARS = 60

_COUNT = re.compile(
    r"^- New since the last review (?:are the user's last (?P<count>\d+) messages|is the user's last message)", re.M
)
_TODAY = re.compile(r"^- Today is (?P<today>\d{4}-\d\d-\d\d)\.", re.MULTILINE)
_MEMORY = re.compile(r"^- Memory directory: (?P<path>.+)$", re.MULTILINE)
_TEAM = re.compile(r"^- Team memory directory: (?P<path>.+?)\. A project or reference memory", re.MULTILINE)
_LISTED = re.compile(r"^<memory-index>\n(?P<list>.*?)\n</memory-index>$", re.MULTILINE | re.DOTALL)


def stop_reason(*, remote: bool, off: str | None, writable: bool, failures: int) -> str | None:
    """Return why this session makes no reviews, past the trigger's gates. `off` is why private memory is off. `writable`: at least
    one scope accepts changes."""
    if remote:
        return "ephemeral machine"
    if not writable:
        return off or "memory is read-only"
    return Text("{limit} failures in a row", limit=MOST_FAILURES) if failures >= MOST_FAILURES else None


def is_final(items: Sequence[Item]) -> bool:
    """Whether the conversation ends with an answer without tool calls. All records of one answer share its stop reason."""
    last = items[-1] if items else None
    return last is not None and last.role == "assistant" and last.stop_reason in FINAL


def range_start(items: Sequence[Item], cursor: str | None) -> int:
    """Return the position where the range begins."""
    return next((at + 1 for at in range(len(items) - 1, -1, -1) if items[at].uuid == cursor), 0)


def wrote_memory(items: Sequence[Item], is_memory: Callable[[str], bool]) -> bool:
    """Whether a Write or Edit of a memory file, or a MemorySave, succeeded."""
    wrote: set[str] = set()
    for item in items:
        for block in item.blocks:
            if isinstance(block, ToolUse) and block.name == MEMORY_SAVE:
                wrote.add(block.id)
            elif isinstance(block, ToolUse) and block.name in _WRITERS and isinstance(block.input, dict):
                path = block.input.get("file_path")
                if isinstance(path, str) and path and is_memory(path):
                    wrote.add(block.id)
            elif isinstance(block, ToolResult) and block.tool_use_id in wrote and not (block.is_error or item.synthetic):
                return True
    return False


def skip_reason(items: Sequence[Item], is_memory: Callable[[str], bool]) -> str | None:
    """Return why these messages need no review. Only `WROTE` moves the cursor."""
    if wrote_memory(items, is_memory):
        return WROTE
    return None if any(user_words(item) for item in items) else UNSAID


class ExtractDirective(NamedTuple):
    """A directive parsed back from its text, for the offline review."""

    messages: int  # number of user messages in the range
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


def render_answer_directive(
    said: Sequence[UserWords], manifest: Sequence[str], place: MemoryLocation, *, today: str, shown: str
) -> str:
    """Render the directive of a review that is one answer, for a model without file tools."""
    texts, own = prompt_sections(__file__, "extract"), prompt_sections(__file__, "answer")
    first = escape(printable(said[0].words, FIRST_CHARS)) if said else ""
    span = texts["range one" if len(said) == 1 else "range last"].format(count=len(said), first=first)
    return own["directive"].format(
        range=span,
        today=today,
        team=own["team"] + "\n" if place.team is not None else "",
        manifest=fence("memory-index", "\n".join(manifest)) if manifest else texts["nothing"],
        shown=f"{shown}\n\n" if shown else "",
        types=what_to_save(team=place.team is not None),
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
