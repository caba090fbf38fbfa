"""Quotations of the user: read from a memory, and found in their messages as whole sentences. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...core.memory_requests import asks_to_remember
from .approval import APPROVES
from .sources import weigh_words, words

# Shorter quotations appear in every message, unless they approve of something.
FEWEST_WORDS = 3
LONGEST_QUOTE = 200
MOST_QUOTES = 8
# Sentences of one message that together may back a memory.
WINDOW = 3

# Matches at the beginning of a line.
_SAID = re.compile(r"(?:\*\*)?Said:(?:\*\*)?")
# In Korean, "니까" ends a question after some syllables and a reason after others.
_QUESTION = re.compile(r"(?:[?？]|[吗嗎呢]|ですか|ますか|[습입합됩봅갑옵줍]니까|나요|(?<!니)까요)[\s.!。！”\"')]*$")
_REQUEST = re.compile(
    r"\s*(?:(?:and|but|so|also|ok(?:ay)?)[,\s]+)?(?:(?:can|could|would|will) (?:you|we)\b|please\b|kannst du|könntest du|können (?:sie|wir)"
    r"|bitte|请|請|能不能|可不可以|可以|麻烦)|.*(?:もらえますか|くれますか|いただけますか|주실|줄 수|줄래)",
    re.IGNORECASE,
)
# The ends of a user's sentence and of its parts. A single line break ends a part only.
_MARK = re.compile(r"(?P<end>[.!?](?=[\s\"'”’).!?]|$)|[;；。！？]|\n[ \t]*\n|\n(?=[ \t]*(?:[-*•]|\d+[.)])))|[,–—\n，、]|\s-\s")
# A sentence of a message.
_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.!?](?!\s|$)[^.!?。！？\n]*)*[.!?。！？]*\n?")
# Words before a sentence that a quotation may omit.
_FILLER = re.compile(
    r"please|and|but|so|also|ok|okay|yes|yeah|well|then|hi|hello|hey|thanks|oh|now|actually|bitte|und|ja|gut|dann|hallo|oui"
)
# Words that reverse a sentence, wherever they occur: a quotation without them would claim the opposite.
_DENIES = re.compile(
    r"\b(?:not|no|never|none|nobody|neither|nor|without|stop|avoid|unless|if|(?:do|does|did|is|are|was|were|ca|wo|would|should|could|must|have|has|had|need|ai)nt|cannot"
    r"|nicht|nie|niemals|kein\w*|ohne|wenn|falls|pas|jamais|sans"
    r"|si|nunca|sin|non|mai)\b|[不别別没沒勿無无莫未]|な い|ま せ ん|않|말|마|못|안|만 약|如 果|も し"
)


def asks(sentence: str) -> bool:
    """Whether a sentence is a question, which states nothing. A request may have the form of one."""
    return _QUESTION.search(sentence[-20:]) is not None and _REQUEST.match(sentence) is None


class QuotedText(NamedTuple):
    text: str  # without the quotations
    quotes: list[str]


def split_quotes(text: str) -> QuotedText:
    """Split the quotations off. Works line by line, so a line of any length is scanned once."""
    kept: list[str] = []
    quotes: list[str] = []
    for line in text.split("\n"):
        bare = line.strip()
        found = _SAID.match(bare)
        if found is None or not bare[found.end() :].strip():
            kept.append(line)
        else:
            quotes.append(_unquote(bare[found.end() :]))
    return QuotedText("\n".join(kept).rstrip() + "\n", quotes[:MOST_QUOTES])


def _unquote(quote: str) -> str:
    return quote.strip().strip("\"'“”„‘’「」『』«»").strip()


def sentence_windows(message: str) -> Iterator[str]:
    """Yield the sentences of a message, alone and with the next ones, without questions."""
    sentences = [each.strip() for each in _SENTENCE.findall(message) if each.strip() and not asks(each)]
    for size in range(1, WINDOW + 1):
        yield from (" ".join(sentences[at : at + size]) for at in range(len(sentences) - size + 1))


class MessageWords(NamedTuple):
    """A message as words, with the positions where its sentences and their parts begin. Both end with the end of the message."""

    words: list[str]
    sentences: list[int]
    parts: frozenset[int]


def split_message(text: str) -> MessageWords:
    found: list[str] = []
    sentences, parts, at = [0], {0}, 0
    for mark in _MARK.finditer(text):
        found += words(text[at : mark.start()])
        at = mark.end()
        parts.add(len(found))
        if mark["end"] is not None:
            sentences.append(len(found))
    found += words(text[at:])
    return MessageWords(found, [*sentences, len(found)], frozenset({*parts, len(found)}))


def is_whole(quote: str, spoken: MessageWords) -> bool | None:
    """Whether the quotation is a full sentence of this message, or a part with the same meaning. None: the message does not contain it."""
    wanted = words(quote)
    if not 0 < len(wanted) <= LONGEST_QUOTE:
        return None
    starts = [at for at in range(len(spoken.words) - len(wanted) + 1) if spoken.words[at] == wanted[0]]
    places = [at for at in starts if spoken.words[at : at + len(wanted)] == wanted]
    if not places:
        return None
    long_enough = weigh_words(wanted) >= FEWEST_WORDS or APPROVES.search(quote) is not None or asks_to_remember(quote)
    return long_enough and any(_keeps_meaning(spoken, at, at + len(wanted)) for at in places)


def _keeps_meaning(spoken: MessageWords, begin: int, end: int) -> bool:
    first = begin
    while first not in spoken.parts and _FILLER.fullmatch(spoken.words[first - 1]):
        first -= 1
    if first not in spoken.parts or end not in spoken.parts:
        return False
    above = max(at for at in spoken.sentences if at <= begin)
    below = min(at for at in spoken.sentences if at >= end)
    rest = " ".join(spoken.words[above:begin]) + " | " + " ".join(spoken.words[end:below])
    return _DENIES.search(rest) is None
