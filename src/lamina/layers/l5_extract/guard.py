"""Whether a review may write this memory (B6, S7): decided from who said it, not from what the model says about it. Pure.

A memory of the person or of how they want things needs their own words behind it: a line `**Said:** "…"` with a sentence of theirs
from the messages under review, which is about the same thing, or which approves of what was just answered. What stands in results,
files, memories or instruction files is no such sentence, and a text that is taken from there is refused whatever is quoted. The line is
not kept in the memory; the words go into the journal as the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...core.words import terms
from ...memory.topic import Topic, read_topic
from .sources import Said, Sources, plain, runs, words

# Types that are about the person.
PERSONAL = frozenset({"user", "feedback"})
# Shorter quotations stand in every message.
FEWEST_WORDS = 2
# Half of what a memory says, word for word from one place, was taken from there.
TAKEN = 0.5
# Two descriptions that share this much of their terms are about the same thing.
SAME = 0.6
FEWEST_TERMS = 3
# An approval says what about only by the answer before it: so much of the memory must stand there.
ANSWERED = 0.3
# Of the person's words in the journal.
QUOTED_CHARS = 160

FOUND = "found in the conversation"
NO_TYPE = "The memory has no type: begin the file with front matter that says name, description and type."
NO_QUOTE = (
    'A memory of type {kind} needs the person\'s own words. Add a line `**Said:** "…"` with a sentence they said in the messages under '
    "review, exactly as they said it; without one, do not save it."
)
NOT_SAID = "The person did not say {quote!r} in the messages under review: what a tool, a file or you said does not count."
NOT_ABOUT = (
    "{quote!r} is not about what the memory says. Quote the sentence it rests on, and write in the person's language; without one, "
    "do not save it."
)
TAKEN_OVER = "The text comes from a result or a file and not from the person, so it is no {kind} memory."
ECHO = "That is known already: it was put into this conversation from memory or from instruction files."
TWICE = "{file} is about the same thing ({about}): Read it, and Edit it if it should say more."

_SAID = re.compile(r"^[ \t]*(?:\*\*)?Said:(?:\*\*)?[ \t]*(?P<quote>\S.*?)[ \t]*$\n?", re.MULTILINE)
_ELLIPSIS = re.compile(r"\.{3}|…")
# Words by which a person approves of what was done, and wants it so again.
APPROVES = re.compile(
    r"\b(?:exactly|perfect|great|excellent|nice|love (?:it|this|that)|well done|good (?:call|choice|idea)|right call|keep (?:doing|it)"
    r"|like (?:that|this)|yes|agreed|works for me|spot on|genau|perfekt|super|prima|weiter so|gut so|einverstanden|parfait|exacto)\b"
    r"|完美|很好|太好了|不错|对了|没错|就这样|就这么|保持|正是|完璧|いいね|良い|よい|その調子|その通り|最高|좋아|좋네|완벽|그대로|훌륭|맞아",
    re.IGNORECASE,
)


class Known(NamedTuple):
    """A memory there is."""

    file: str
    description: str


class Wanted(NamedTuple):
    """What a call would leave in a file. `before` is its text now, None where there is none."""

    file: str
    text: str
    before: str | None = None


class Accepted(NamedTuple):
    topic: Topic
    text: str  # of the file, without the quotation
    why: str
    message: str | None = None


class Refused(NamedTuple):
    why: str


class Backed(NamedTuple):
    """The person's words, and the message they stand in."""

    quote: str
    said: Said


def judge(wanted: Wanted, heard: Sources, there: Sequence[Known]) -> Accepted | Refused:
    quotes = [_bare(found["quote"]) for found in _SAID.finditer(wanted.text)]
    text = _SAID.sub("", wanted.text).rstrip() + "\n"
    topic = read_topic(wanted.file, text, 0)
    old = read_topic(wanted.file, wanted.before, 0) if wanted.before is not None else None
    if topic.type is None:
        return Refused(NO_TYPE)
    new = runs(_says(topic)) - (runs(_says(old)) if old is not None else frozenset())
    said = frozenset[tuple[str, ...]]().union(*(runs(one.words) for one in heard.said))
    kind = next((each for each in (topic.type, old.type if old is not None else None) if each in PERSONAL), None)
    support = _support(quotes, topic, heard)
    if kind is not None:
        if isinstance(support, str):
            return Refused(support or NO_QUOTE.format(kind=kind))
        if _share(new - said, heard.data, of=len(new)) >= TAKEN:
            return Refused(TAKEN_OVER.format(kind=kind))
    if _share(new - said, heard.known, of=len(new)) >= TAKEN:
        return Refused(ECHO)
    if old is None and (twin := _twin(topic, there)) is not None:
        return Refused(TWICE.format(file=twin.file, about=twin.description))
    if isinstance(support, str):
        return Accepted(topic, text, FOUND)
    return Accepted(topic, text, f"the person said: {support.quote[:QUOTED_CHARS]}", support.said.message)


def _bare(quote: str) -> str:
    return quote.strip().strip("\"'“”„‘’「」『』«»").strip()


def _says(topic: Topic) -> str:
    return f"{topic.description}\n{topic.body}"


def _share(found: frozenset[tuple[str, ...]], texts: Sequence[str], *, of: int) -> float:
    """How much of what is new stands word for word in these texts; what the person said too is not in `found`."""
    if not found or not of:
        return 0.0
    left = set(found)
    for text in texts:
        left -= runs(text)
        if not left:
            break
    return (len(found) - len(left)) / of


def _support(quotes: Sequence[str], topic: Topic, heard: Sources) -> Backed | str:
    """The first quotation that is the person's and is about the memory; else what is wrong with the last, empty where there is none."""
    problem = ""
    for quote in quotes:
        found = [one for one in heard.said if _is_in(quote, one.words)]
        if not found:
            problem = NOT_SAID.format(quote=quote)
            continue
        for one in found:
            if _is_about(quote, one, topic):
                return Backed(quote, one)
        problem = NOT_ABOUT.format(quote=quote)
    return problem


def _is_in(quote: str, said: str) -> bool:
    """Parts may be left out of a quotation, where it says so."""
    parts = [plain(part).strip(" .,;:!?。，、！？") for part in _ELLIPSIS.split(quote)]
    whole = plain(said)
    return len(words(quote)) >= FEWEST_WORDS and all(part in whole for part in parts)


def _is_about(quote: str, said: Said, topic: Topic) -> bool:
    about = set(terms(f"{topic.name} {_says(topic)}"))
    if about & set(terms(quote)):
        return True
    answered = about & set(terms(said.before))
    return APPROVES.search(quote) is not None and len(answered) >= ANSWERED * max(1, len(about))


def _twin(topic: Topic, there: Sequence[Known]) -> Known | None:
    """A memory that says the same under another name."""
    mine = set(terms(topic.description))
    if len(mine) < FEWEST_TERMS:
        return None
    for known in there:
        theirs = set(terms(known.description))
        if len(theirs) >= FEWEST_TERMS and len(mine & theirs) / len(mine | theirs) >= SAME:
            return known
    return None
