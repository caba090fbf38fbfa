"""What a dream may say about the user and in the index (B6, D3, S3). Words are compared, not meanings. Pure.

A dream reads files, transcripts and memories of all types, and any of them may hold what somebody wants remembered as the user's wish.
So a memory of type user or feedback says nothing that no memory of those types and no daily log said: most words of each sentence stand
in one of them, and a "not" is neither taken from it nor put to it.

The index is sent with every session, so a line of it speaks louder than any memory. A line that was there may stay as it is. A new or
changed one points at a memory of the copy, and most of its words stand in that memory or in the line it had. Other text is the user's
own and is not added to; a heading is short.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ...memory.store.index import INDEX, entries
from ...memory.store.topic import read_topic
from .facts import facts_of, folded_words, is_mostly_in, negates

PERSONAL = frozenset({"user", "feedback"})
QUOTED_CHARS = 120
UNHEARD = (
    "{fact!r} stands in no memory about the person and in no daily log, so a memory of type {kind} does not say it. Leave it out, or word "
    "it as it was."
)


class _KnownWords(NamedTuple):
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


def _words(text: str) -> _KnownWords:
    said = [line for line in facts_of(text).lines.split("\n") if line.strip()]
    plain = frozenset(word for line in said if not negates(line) for word in line.split())
    return _KnownWords(plain, frozenset(word for line in said if negates(line) for word in line.split()))


def _backs(known: _KnownWords, fact: str) -> bool:
    return is_mostly_in(fact, known.negated if negates(fact) else known.plain)


# A heading names a subject.
HEADING_WORDS = 6
LINE_CHARS = 80
NO_SUCH = f"{INDEX}: {{line!r}} points at no memory of the copy. Leave it out."
NOT_SAID = f"{INDEX}: {{line!r}} says what the memory does not say. Use its name and description."
NO_TEXT = f"{INDEX} is an index: {{line!r}} belongs in a memory, or nowhere."

_HEADING = re.compile(r"#{1,6}\s")


def index_problem(new: str, old: str, text_of: Callable[[str], str | None]) -> str | None:
    """Why the index may not become this, as a sentence; None where it may. `text_of` is a memory of the copy, None where there is none."""
    there = {line.strip() for line in old.splitlines()}
    before = {entry.file: f"{entry.title} {entry.hook}" for entry in entries(old)}
    for line in new.splitlines():
        if line.strip() and line.strip() not in there and (why := _why_not(line, text_of, before)) is not None:
            return why.format(line=line.strip()[:LINE_CHARS])
    return None


def _why_not(line: str, text_of: Callable[[str], str | None], before: Mapping[str, str]) -> str | None:
    found = entries(line)
    if not found:
        heading = _HEADING.match(line) is not None and len(folded_words(line).split()) <= HEADING_WORDS
        return None if heading else NO_TEXT
    entry = found[0]
    text = text_of(entry.file)
    if text is None:
        return NO_SUCH
    # A title spells the parts of a file's name as words.
    known = folded_words(f"{entry.file.replace('_', ' ')} {text} {before.get(entry.file, '')}").split()
    return None if is_mostly_in(folded_words(f"{entry.title} {entry.hook}"), known) else NOT_SAID
