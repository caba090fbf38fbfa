"""Selects, within budgets, the files and texts to show again after a compaction. Pure: file contents are passed in as values.

Each restored text is a separate reminder. Everything that is not restored gets a reason, which is recorded as an event.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...core.fence import Fenced, escape, reminder
from .user_messages import Tokens

# Instruction files are restored with their reminder, not as files.
INSTRUCTIONS = ("CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", "AGENTS.local.md", "MEMORY.md")
CUT = "[Cut after line {last:,}: Read the file with offset={next} for the rest.]"


class FoundFile(NamedTuple):
    """The current content of a file that was read before. If it cannot be restored, `text` is None and `why` gives the reason."""

    path: str
    text: str | None
    first: int = 1  # number of the first line of `text`
    why: str = ""


class RestoredText(NamedTuple):
    kind: str
    key: str
    text: str
    head: str = ""  # the heading; if empty, one that names the kind and the key


class RestoredTexts(NamedTuple):
    back: tuple[RestoredText, ...]
    skipped: tuple[tuple[str, str], ...]  # key, why


def is_ours(path: str, own: Sequence[str]) -> bool:
    """Return whether a file must not be restored as a file: instruction files and the session's own files."""
    inside = any(path == one or path.startswith(one.rstrip("/") + os.sep) for one in own)
    return inside or os.path.basename(path) in INSTRUCTIONS


def files_back(found: Iterable[FoundFile], *, each: int, total: int, tokens: Tokens) -> RestoredTexts:
    """Return the files that fit, newest first. The first one that exceeds the total budget ends the list."""
    back: list[RestoredText] = []
    skipped: list[tuple[str, str]] = []
    left = total
    full = False
    for one in found:
        if one.text is None:
            skipped.append((one.path, one.why))
            continue
        shown = _file(one, each, tokens)
        if full or tokens(shown) > left:
            full = True
            skipped.append((one.path, "the budget for restored files is used up"))
            continue
        left -= tokens(shown)
        back.append(RestoredText("file", one.path, shown))
    return RestoredTexts(tuple(back), tuple(skipped))


def _file(one: FoundFile, each: int, tokens: Tokens) -> str:
    head = Fenced(f"{escape(one.path)} was read before the compaction. This is its current content:")
    lines = [f"{number}\t{line}" for number, line in enumerate((one.text or "").splitlines(), one.first)]
    kept = _fitting(lines, each - tokens(head), tokens)
    if kept < len(lines):
        last = one.first + kept - 1
        lines = [*lines[:kept], CUT.format(last=last, next=last + 1)]
    return reminder([head, escape("\n".join(lines) or "(The file is empty.)")])


def _fitting(lines: Sequence[str], budget: int, tokens: Tokens) -> int:
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if tokens("\n".join(lines[:middle])) <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def texts_back(given: Iterable[RestoredText], *, each: int, total: int, tokens: Tokens) -> RestoredTexts:
    """Return the host's texts that fit: skills, a plan, listings. A text longer than `each` is cut and marked."""
    back: list[RestoredText] = []
    skipped: list[tuple[str, str]] = []
    left = total
    for one in given:
        body = one.text
        if tokens(body) > each:
            lines = body.splitlines(keepends=True)
            body = "".join(lines[: _fitting([line.rstrip("\n") for line in lines], each, tokens)]) + "[Cut here.]"
        head = one.head or f"Restored after the compaction ({escape(one.kind)} {escape(one.key)}):"
        shown = reminder([Fenced(head), escape(body)])
        if tokens(shown) > left:
            skipped.append((one.key or one.kind, f"the budget for {one.kind} is used up"))
            continue
        left -= tokens(shown)
        back.append(RestoredText(one.kind, one.key, shown))
    return RestoredTexts(tuple(back), tuple(skipped))
