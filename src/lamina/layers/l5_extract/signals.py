"""Which sentences of a person are worth keeping, by their words: role, preference, correction, confirmation, deadline, pointer (O1).

English, Chinese, Japanese, Korean and German. Pure, and careful rather than clever: a sentence counts where its form says that it holds
beyond the task of the moment; where that is not plain, nothing is kept. What S8 excludes is excluded here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Literal, NamedTuple, TypeAlias

from ...core.dates import relative_dates
from ...core.memory_requests import asks_for_memory
from ...providers.offline.memory_note import no_memory
from .phrases import CONFIRMATION, DAY, EVENT, ONCE, POINTER, PREFERENCE, QUESTION, ROLE, TASK

Signal: TypeAlias = Literal["role", "preference", "confirmation", "deadline", "pointer"]

# A longer message is mostly pasted; a longer sentence is no sentence.
MOST_CHARS = 2_000
SENTENCE_CHARS = 300
FEWEST_CHARS = 6


class Found(NamedTuple):
    signal: Signal
    sentence: str


_MASKED = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>.*$", re.DOTALL | re.MULTILINE)
_SENTENCE = re.compile(r"(?:https?://\S+|[^.!?。！？\n;；]|[.!?](?=\S))+[.!?。！？]*")


def signals(text: str, today: str) -> Iterator[Found]:
    """The sentences of a message that are worth keeping, in their order."""
    if len(text) > MOST_CHARS or asks_for_memory(text.strip()):
        return  # what was asked to be remembered is saved in its own turn
    for found in _SENTENCE.finditer(_MASKED.sub(" ", text)):
        sentence = found[0].strip(" \t\r\n-*•,，、")
        if (signal := _signal(sentence, today)) is not None:
            yield Found(signal, sentence)


def _signal(sentence: str, today: str) -> Signal | None:
    if not FEWEST_CHARS <= len(sentence) <= SENTENCE_CHARS or QUESTION.search(sentence) or ONCE.search(sentence):
        return None
    if no_memory(sentence) is not None:
        return None
    if CONFIRMATION.search(sentence):
        return "confirmation"
    if PREFERENCE.search(sentence):
        return "preference"
    if TASK.search(sentence):
        return None
    if ROLE.search(sentence):
        return "role"
    if POINTER.search(sentence):
        return "pointer"
    return "deadline" if EVENT.search(sentence) and (DAY.search(sentence) or _relative(sentence, today)) else None


def _relative(sentence: str, today: str) -> bool:
    return bool(today) and bool(relative_dates(sentence, date.fromisoformat(today)))
