"""Selects, within budgets, the files and texts to show again after a compaction. Pure: file contents are passed in as values.

Each restored text is a separate reminder. Everything that is not restored, or only in part, gets a reason, which is recorded as an
event. A text is cut at a line end, or inside a line that alone exceeds the budget.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...core.fence import Fenced, escape, reminder
from .user_messages import Tokens

# Instruction files are restored with their reminder, not as files.
INSTRUCTIONS = ("CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", "AGENTS.local.md", "MEMORY.md")
CUT = "[Cut after line {last:,}. The rest is in the file, from line {next} on.]"
CUT_IN_LINE = "[Cut inside line {line:,}. The rest is in the file.]"
CUT_TEXT = "[Cut here: {shown:,} of {whole:,} characters are shown.]"
# Kinds that are cut only if they alone exceed all the room: half a plan is worse than none of the files.
WHOLE_KINDS = ("plan", "todos")
# No text has more characters per token than this; only runs of spaces come close.
MOST_PER_TOKEN = 16
# Tokens of the frame around a restored text, with a key of ordinary length.
FRAME = 60


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
        shown, why = _file(one, each, tokens)
        if full or tokens(shown) > left:
            full = True
            skipped.append((one.path, "the budget for restored files is used up"))
            continue
        left -= tokens(shown)
        back.append(RestoredText("file", one.path, shown))
        if why:
            skipped.append((one.path, why))
    return RestoredTexts(tuple(back), tuple(skipped))


def _file(one: FoundFile, each: int, tokens: Tokens) -> tuple[str, str]:
    """Return the reminder of a file, and what to report about it: a line too long to be shown in full."""
    head = Fenced(f"{escape(one.path)} was read before the compaction. This is its current content:")
    lines = [f"{number}\t{line}" for number, line in enumerate((one.text or "").splitlines(), one.first)]
    budget = each - tokens(head)
    kept, why = _fitting(lines, budget, tokens), ""
    if kept < len(lines):
        last = one.first + kept - 1
        note = CUT.format(last=last, next=last + 1)
        if not kept:
            whole, lines = len(lines[0]), [_beginning(lines[0], budget, tokens)]
            kept, note = 1, CUT_IN_LINE.format(line=one.first)
            why = f"cut inside line {one.first:,}, which has {whole:,} characters"
        lines = [*lines[:kept], note]
    return reminder([head, escape("\n".join(lines) or "(The file is empty.)")]), why


def _beginning(text: str, budget: int, tokens: Tokens) -> str:
    """Return as much of the beginning of a text as fits."""
    low, high = 0, min(len(text), max(0, budget) * MOST_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if tokens(text[:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low]


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
    """Return the host's texts that fit: skills, a plan, listings. A text longer than `each` is cut and marked.

    A plan and a to-do list are cut only to fit `total`."""
    back: list[RestoredText] = []
    skipped: list[tuple[str, str]] = []
    left = total
    for one in given:
        key = one.key or one.kind
        head = one.head or f"Restored after the compaction ({escape(one.kind)} {escape(one.key)}):"
        body, why = _cut(one.text, left - tokens(head) - FRAME if one.kind in WHOLE_KINDS else each, tokens)
        shown = reminder([Fenced(head), escape(body)])
        if tokens(shown) > left:
            skipped.append((key, f"the budget for {one.kind} is used up"))
            continue
        left -= tokens(shown)
        back.append(RestoredText(one.kind, one.key, shown))
        if why:
            skipped.append((key, why))
    return RestoredTexts(tuple(back), tuple(skipped))


def reserve_whole(given: Iterable[RestoredText], tokens: Tokens) -> int:
    """Return the tokens that the plan and the to-do list need, so that nothing else takes their room."""
    return sum(tokens(one.text) + tokens(one.key) + 2 * FRAME for one in given if one.kind in WHOLE_KINDS)


def _cut(text: str, budget: int, tokens: Tokens) -> tuple[str, str]:
    """Return a text within a budget, and what to report if it was cut."""
    if tokens(text) <= budget:
        return text, ""
    lines = text.splitlines(keepends=True)
    kept = "".join(lines[: _fitting([line.rstrip("\n") for line in lines], budget, tokens)])
    # A line that alone takes most of the budget is cut inside, or too little would be shown.
    if tokens(kept) * 2 < budget:
        kept = _beginning(text, budget, tokens)
    mark = CUT_TEXT.format(shown=len(kept), whole=len(text))
    return f"{kept}{'' if kept.endswith(chr(10)) else chr(10)}{mark}", f"cut: {len(kept):,} of {len(text):,} characters are shown"
