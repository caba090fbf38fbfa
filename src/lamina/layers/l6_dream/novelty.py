"""Finds what a dream says that no memory and no daily log said before. Pure.

A dream reads transcripts and files, which may contain text planted to be remembered. A new statement may be right, but it does not come
from the user: its memory is marked with its origin and waits for approval. Most words of a statement must occur in one text, or in two
texts that it combines. Numbers do not count, since a dream writes dates out,
and neither does a sentence of one or two words.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...memory.guard.facts import SHORT_WORDS, WORDED_ANEW, facts_of, folded_words

ORIGIN = "dream"
UNHEARD = "says something that no memory and no daily log said before"
MOVED = "takes over what a memory of another kind or origin says"
# A statement is combined from the texts closest to it.
CLOSEST = 2


class KnownWords:
    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [frozenset(folded_words(text).split()) for text in texts]

    def new_statement(self, text: str) -> str | None:
        """Return the first statement of a memory that no text has; None if all of them are known."""
        return next((fact for fact in facts_of(text).each if not self._has(fact)), None)

    def _has(self, fact: str) -> bool:
        words = frozenset(word for word in fact.split() if not word.isdigit())
        if len(words) < SHORT_WORDS:
            return True
        best = sorted((words & known for known in self._texts), key=len, reverse=True)[:CLOSEST]
        return len(frozenset().union(*best)) >= WORDED_ANEW * len(words)
