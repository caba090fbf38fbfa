"""The person's own words, word for word, inside a summary (C3, B2). No model is paid to copy them.

They are taken from the view, those an earlier summary carried included, and stand in tags of their own, so that the next compaction
finds them again. Newest first they fill a budget; what does not fit is cut where everybody can see it, and the last message is the
last to be cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...core.blocks import Block, Document, Image, Text
from ...core.view import Item
from .cuts import is_said

TAG = "user-message"
_OPENED, _CLOSED = f"<{TAG}>\n", f"\n</{TAG}>"
# The quantifiers give nothing back, so a hostile text costs no more than its length.
_FORGED = re.compile(rf"<(?=\s*+/?+\s*+{TAG})", re.IGNORECASE)

IMAGE, DOCUMENT = "[image]", "[document]"
# Where a message is cut: its beginning and its end say more than its middle. The mark itself is counted.
CUT = "\n[… {count:,} characters of this message are left out here; the transcript has all of it …]\n"
# A message cut below this says nothing any more and is left out instead, which is said.
LEAST_CHARACTERS = 200

Tokens = Callable[[str], int]


class Users(NamedTuple):
    texts: tuple[str, ...]  # oldest first
    left_out: int  # how many are not among them


def words_of(blocks: Iterable[Block]) -> str:
    """What blocks say in words; a picture is named."""
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
    """All the person said, oldest first; what a summary among the items carried comes at its place."""
    found: list[str] = []
    for item in items:
        if item.kind == "summary" or item.kind == "partial":
            found += [text for block in item.blocks if isinstance(block, Text) for text in written_in(block.text)]
        elif is_said(item):
            found.append(words_of(item.blocks))
    return found


def select(texts: Sequence[str], budget: int, tokens: Tokens) -> Users:
    """As many as fit, from the newest back; the one that breaks the budget is cut, the older ones are left out."""
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
    """The beginning and the end of a text, within a budget; empty where too little would be left."""
    whole = tokens(text)
    if whole <= budget:
        return text
    room = max(int(len(text) * budget / max(1, whole)) - len(CUT), least)
    if room < LEAST_CHARACTERS:
        return ""
    head, tail = room * 2 // 3, room // 3
    return text[:head] + CUT.format(count=len(text) - head - tail) + text[len(text) - tail :]


def rendered(users: Users) -> str:
    """The section of the summary. What a person wrote can't end its own tag, nor pass for another message."""
    lines = []
    if users.left_out:
        lines.append(f"({users.left_out} older messages are left out here; the transcript has them.)")
    lines += [_OPENED + escaped(text) + _CLOSED for text in users.texts]
    return "\n".join(lines) or "(none)"


def escaped(text: str) -> str:
    return _FORGED.sub("&lt;", text)


def written_in(summary: str) -> list[str]:
    """The messages an earlier summary carried."""
    parts = (part.partition(_CLOSED) for part in summary.split(_OPENED)[1:])
    return [text for text, closed, _ in parts if closed]
