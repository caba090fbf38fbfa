"""What may stand in a memory about the person (B6): what was in one before, or in a daily log; however it is worded now.

A dream reads files, transcripts and memories of all types, and any of them may hold what somebody wants remembered as the person's wish.
So a memory of type user or feedback says nothing that no memory of those types and no daily log said: most words of each sentence stand
in one of them, and a "not" is neither taken from it nor put to it. Words are compared, not meanings. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...memory.store.topic import read_topic
from .facts import WORDED_ANEW, facts_of, folded_words, negates

PERSONAL = frozenset({"user", "feedback"})
QUOTED_CHARS = 120
UNHEARD = (
    "{fact!r} stands in no memory about the person and in no daily log, so a memory of type {kind} does not say it. Leave it out, or word "
    "it as it was."
)


class _Known(NamedTuple):
    """The words of one text: of its sentences that say what is, and of those that say what is not."""

    plain: frozenset[str]
    negated: frozenset[str]


class AboutPerson:
    def __init__(self, texts: Iterable[str] = (), bullets: Iterable[str] = ()) -> None:
        """`texts` are memory files of any type, of which those about the person count; `bullets` are lines of daily logs."""
        personal = [text for text in texts if read_topic("", text, 0).type in PERSONAL]
        self._known = [_words(text) for text in (*personal, *bullets)]

    def problem(self, text: str) -> str | None:
        """Why a memory may not say this, as a sentence; None where it may."""
        topic = read_topic("", text, 0)
        if topic.type not in PERSONAL:
            return None
        for fact in facts_of(text).each:
            if not any(_backs(known, fact) for known in self._known):
                return UNHEARD.format(fact=fact[:QUOTED_CHARS], kind=topic.type)
        about = folded_words(topic.description)
        if not any(_backs(known, about) for known in (*self._known, _words(topic.body))):
            return UNHEARD.format(fact=topic.description[:QUOTED_CHARS], kind=topic.type)
        return None


def _words(text: str) -> _Known:
    said = [line for line in facts_of(text).lines.split("\n") if line.strip()]
    plain = frozenset(word for line in said if not negates(line) for word in line.split())
    return _Known(plain, frozenset(word for line in said if negates(line) for word in line.split()))


def _backs(known: _Known, fact: str) -> bool:
    own = set(fact.split())
    there = known.negated if negates(fact) else known.plain
    return len(own & there) >= WORDED_ANEW * len(own)
