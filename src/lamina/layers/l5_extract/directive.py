"""What a review is asked (X5): the range, the list of memories, where they lie. Pure; the words are in `prompts/`.

The lines with the range, the day and the directories have a fixed form: what answers without a model finds them there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ...core.fence import escape, fence
from ...core.prompt_files import prompt_sections
from ...core.settings.kinds import printable
from ...memory.store.scopes import MemoryLocation
from .sources import Said
from .writer import MOST_FILES

# X5: reads, writes, a word at the end, and two for what was refused.
ROUNDS = 5
# Enough of a message to know it by.
FIRST_CHARS = 60
LONGEST_PATH = 4_096

_COUNT = re.compile(
    r"^- New since the last review (?:are the person's last (?P<count>\d+) messages|is the person's last message)", re.M
)
_TODAY = re.compile(r"^- Today is (?P<today>\d{4}-\d\d-\d\d)\.", re.MULTILINE)
_MEMORY = re.compile(r"^- Memory directory: (?P<path>.+)$", re.MULTILINE)
_TEAM = re.compile(r"^- Team memory directory: (?P<path>.+?)\. A project or reference memory", re.MULTILINE)
_LISTED = re.compile(r"^<memory-index>\n(?P<list>.*?)\n</memory-index>$", re.MULTILINE | re.DOTALL)


class Asked(NamedTuple):
    """A directive, read again by who answers without a model."""

    messages: int  # the person's texts in the range
    today: str
    memory: str
    team: str
    listed: str


def directive(said: Sequence[Said], manifest: Sequence[str], place: MemoryLocation, *, today: str) -> str:
    texts = prompt_sections(__file__, "extract")
    first = escape(printable(said[0].words, FIRST_CHARS)) if said else ""
    span = texts["range one" if len(said) == 1 else "range last"].format(count=len(said), first=first)
    team = texts["team"].format(team=_path(place.team)) + "\n" if place.team is not None else ""
    return texts["directive"].format(
        range=span,
        today=today,
        memory=_path(place.path),
        team=team,
        manifest=fence("memory-index", "\n".join(manifest)) if manifest else texts["nothing"],
        rounds=ROUNDS,
        files=MOST_FILES,
    )


def _path(path: Path) -> str:
    return escape(printable(str(path), LONGEST_PATH))


def read_directive(text: str) -> Asked:
    count, today, memory, team = (pattern.search(text) for pattern in (_COUNT, _TODAY, _MEMORY, _TEAM))
    listed = _LISTED.search(text)
    return Asked(
        int(count["count"] or 1) if count else 0,
        today["today"] if today else "",
        memory["path"].strip() if memory else "",
        team["path"].strip() if team else "",
        listed["list"] if listed else "",
    )
