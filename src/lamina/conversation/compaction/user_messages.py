"""Copies the user's messages word for word into a summary, so that no model is paid to repeat them.

The messages come from the view, including those that an earlier summary carried. They are wrapped in tags, so the next compaction
can find them again. If the budget does not hold all of them, the first message (the task), the last one and corrections are kept,
then the other short messages, then long pastes, each from the newest back. Messages that do not fit are visibly shortened or left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ...core.blocks import Block, Document, Image, Text
from ...core.view import Item
from ...language.wording import counted
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


# A longer message is a paste or a document.
SHORT_CHARACTERS = 600
# Short messages may take this share of the budget before long ones get anything.
SHORT_PART = 2
# Words of a user who disagrees with the last answer. A false match only ranks a short message higher.
_CORRECTION = re.compile(
    r"\b(?:no|not|don'?t|doesn'?t|isn'?t|wrong|instead|actually|rather|stop|never|undo|revert|should have"
    r"|nein|nicht|kein\w*|falsch|stattdessen|sondern|lieber|doch|halt"
    r"|non|pas|faux|plutôt|jamais|arrête|incorrecto|mejor|nunca|en vez"
    r"|não|errado|em vez|sbagliato|invece|mai|nee|niet|fout|liever|nie|nej|inte|hayır|değil"
    r"|нет|не|неправильно|неверно|вместо|ні)\b"
    r"|不|别|別|错|錯|違|ではなく|じゃな|ないで|いや|아니|말고|틀렸|하지 마|नहीं|غلط",
    re.IGNORECASE,
)


class Users(NamedTuple):
    texts: tuple[str, ...]  # oldest first
    gaps: tuple[tuple[int, int], ...] = ()  # before which of the texts messages are missing, and how many

    @property
    def left_out(self) -> int:
        """The number of messages that are missing."""
        return sum(count for _, count in self.gaps)


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
    messages: list[str] = []
    for item in items:
        if item.kind == "summary" or item.kind == "partial":
            messages += [text for block in item.blocks if isinstance(block, Text) for text in written_in(block.text)]
        elif is_said(item):
            messages.append(words_of(item.blocks))
    return messages


def select(texts: Sequence[str], budget: int, tokens: Tokens) -> Users:
    """Select the messages that fit, the most important ones first. The first and the last message are never left out."""
    if not texts:
        return Users(())
    chosen: dict[int, str] = {}
    room = _take_short(texts, chosen, budget, budget // SHORT_PART, tokens)
    room = _take_ends(texts, chosen, room, tokens)
    room = _take_short(texts, chosen, room, room, tokens)
    for index in range(len(texts) - 1, -1, -1):
        if index not in chosen and not is_short(texts[index]) and (excerpt := shortened(texts[index], room, tokens)):
            chosen[index] = excerpt
            room -= tokens(excerpt)
    order = sorted(chosen)
    before = zip([-1, *order], order, strict=False)
    gaps = tuple((number, index - previous - 1) for number, (previous, index) in enumerate(before) if index - previous > 1)
    return Users(tuple(chosen[index] for index in order), gaps)


def most_fitting(count: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `count` that fits. If a number fits, every smaller one must fit too."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def is_short(text: str) -> bool:
    return len(text) <= SHORT_CHARACTERS


def is_correction(text: str) -> bool:
    """Return whether a short message contains a word that rejects or changes something."""
    return is_short(text) and _CORRECTION.search(text) is not None


def _take_short(texts: Sequence[str], chosen: dict[int, str], room: int, most: int, tokens: Tokens) -> int:
    """Take short messages of up to `most` tokens: the first, the last, corrections, then the others. Return what is left."""
    last = len(texts) - 1
    candidates = [index for index in range(last, -1, -1) if index not in chosen and is_short(texts[index])]
    for index in sorted(candidates, key=lambda number: (number not in (0, last), not is_correction(texts[number]))):
        if (size := tokens(texts[index])) <= most:
            chosen[index] = texts[index]
            room, most = room - size, most - size
    return room


def _take_ends(texts: Sequence[str], chosen: dict[int, str], room: int, tokens: Tokens) -> int:
    """Take the last and the first message, shortened if need be. Either may use all the room that the other does not need."""
    last = len(texts) - 1
    for index in (last, 0):
        if index not in chosen:
            other = min(tokens(texts[0]), room // 2) if index and 0 not in chosen else 0
            chosen[index] = shortened(texts[index], max(1, room - other), tokens, least=LEAST_CHARACTERS)
            room = max(0, room - tokens(chosen[index]))
    return room


def shortened(text: str, budget: int, tokens: Tokens, *, least: int = 0) -> str:
    """Return the beginning and the end of a text, within a budget; empty if too little would be left."""
    whole = tokens(text)
    if whole <= budget:
        return text
    room = max(int(len(text) * budget / max(1, whole)) - len(CUT), least)
    if len(text) <= room:
        return text
    if room < LEAST_CHARACTERS:
        return ""
    head, tail = room * 2 // 3, room // 3
    return text[:head] + CUT.format(count=len(text) - head - tail) + text[len(text) - tail :]


def rendered(users: Users) -> str:
    """Return the section of the summary. Messages are escaped, so that a text cannot close its tag or imitate another message."""
    missing = dict(users.gaps)
    lines: list[str] = []
    for number, text in enumerate(users.texts):
        if number in missing:
            lines.append(f"({counted(missing[number], 'message')} left out here; see the transcript.)")
        lines.append(_OPENED + escaped(text) + _CLOSED)
    return "\n".join(lines) or "(none)"


def escaped(text: str) -> str:
    return _FORGED.sub("&lt;", text)


def written_in(summary: str) -> list[str]:
    """Return the messages that an earlier summary carried."""
    parts = (part.partition(_CLOSED) for part in summary.split(_OPENED)[1:])
    return [text for text, closed, _ in parts if closed]
