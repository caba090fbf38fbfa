"""Copies the user's messages word for word into a summary, so that no model is paid to repeat them.

The messages come from the view, including those that an earlier summary carried. They are wrapped in tags, so the next compaction
can find them again. The budget is filled from the newest message back. Messages that do not fit are visibly shortened or left
out; the newest message is the last to be shortened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...core.blocks import Block, Document, Image, Text
from ...core.view import Item
from ...core.wording import counted
from .cuts import is_said

TAG = "user-message"
_OPENED, _CLOSED = f"<{TAG}>\n", f"\n</{TAG}>"
# Possessive quantifiers never backtrack, so a hostile text takes linear time.
_FORGED = re.compile(rf"<(?=\s*+/?+\s*+{TAG})", re.IGNORECASE)

IMAGE, DOCUMENT = "[image]", "[document]"
# Replaces the middle of a message: its beginning and end matter more. The mark itself counts towards the budget.
CUT = "\n[… {count:,} characters of this message are left out here; the transcript has all of it …]\n"
# A message shortened below this length would be useless, so it is left out and counted as such.
LEAST_CHARACTERS = 200

Tokens = Callable[[str], int]


class Users(NamedTuple):
    texts: tuple[str, ...]  # oldest first
    left_out: int  # number of messages that are missing


def words_of(blocks: Iterable[Block]) -> str:
    """Return the text of the blocks, with a placeholder for each image and document."""
    parts: list[str] = []
    for block in blocks:
        match block:
            case Text():
                parts.append(block.text)
            case Image():
                parts.append(IMAGE)
            case Document():
                parts.append(DOCUMENT)
            case _:
                pass
    return "\n".join(part for part in parts if part.strip())


def said_in(items: Iterable[Item]) -> list[str]:
    """Return all messages of the user, oldest first, including those carried by summaries among the items."""
    found: list[str] = []
    for item in items:
        if item.kind == "summary" or item.kind == "partial":
            found += [text for block in item.blocks if isinstance(block, Text) for text in written_in(block.text)]
        elif is_said(item):
            found.append(words_of(item.blocks))
    return found


def select(texts: Sequence[str], budget: int, tokens: Tokens) -> Users:
    """Select as many messages as fit, from the newest back. The first that does not fit is shortened, older ones are left out."""
    kept: list[str] = []
    left = budget
    for text in reversed(texts):
        shown = text
        if tokens(shown) > left:
            shown = shortened(text, left, tokens)
            if not shown and kept:
                break
        kept.append(shown or shortened(text, 1, tokens, least=LEAST_CHARACTERS))
        left -= tokens(shown)
        if shown != text:
            break
    return Users(tuple(reversed(kept)), len(texts) - len(kept))


def shortened(text: str, budget: int, tokens: Tokens, *, least: int = 0) -> str:
    """Return the beginning and the end of a text, within a budget; empty if too little would be left."""
    whole = tokens(text)
    if whole <= budget:
        return text
    room = max(int(len(text) * budget / max(1, whole)) - len(CUT), least)
    if room < LEAST_CHARACTERS:
        return ""
    head, tail = room * 2 // 3, room // 3
    return text[:head] + CUT.format(count=len(text) - head - tail) + text[len(text) - tail :]


def rendered(users: Users) -> str:
    """Return the section of the summary. Messages are escaped, so that a text cannot close its tag or imitate another message."""
    lines = []
    if users.left_out:
        missing = counted(users.left_out, "older message")
        lines.append(f"({missing} left out here; see the transcript.)")
    lines += [_OPENED + escaped(text) + _CLOSED for text in users.texts]
    return "\n".join(lines) or "(none)"


def escaped(text: str) -> str:
    return _FORGED.sub("&lt;", text)


def written_in(summary: str) -> list[str]:
    """Return the messages that an earlier summary carried."""
    parts = (part.partition(_CLOSED) for part in summary.split(_OPENED)[1:])
    return [text for text, closed, _ in parts if closed]
