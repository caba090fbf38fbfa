"""Which of the memories that were found clearly fit a message (Q1): unsure means left out, and none is a good answer.

Owns the bar. A score tells which memory fits best, not whether any does, and it grows with the number of memories. What is counted here
instead is words: how many of the message's words a memory's name and description are about, whatever the language. Two are enough, or
one that is the memory's whole name or all that is asked. `bench/recall_turn.py` measures it, by the messages the numbers were chosen
with and by others. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import NamedTuple
from unicodedata import east_asian_width

from ...core.terms import is_word, terms
from .rank import Ranked, asked_for

# Two words of a message in what a memory says it is about. One is chance: "test" is in half of all messages.
ENOUGH = 2.0
# A word of the text alone is a weaker sign than one of the name or the description.
BODY_SHARE = 0.5
# A name is chosen to be found by: a word of it counts for half a word more, the whole of it for one.
IN_NAME = 0.5
WHOLE_NAME = 1.0
# A memory that fits less than half as well as the best is beside the point of the message.
OF_BEST = 0.5
# So many found memories are looked at to tell which words are common here.
LOOKED_AT = 200
# A word in more than a tenth of the memories tells little; in a handful of them it tells all the same.
COMMON_PART = 10
COMMON_LEAST = 5
# What a common word, a word of any work and a digit that stands alone count for.
WEAK_SHARE = 0.5
# Characters in a usual word of scripts whose characters are words or syllables, of kana, and of other alphabets, which are compared in
# pairs too.
WIDE_WORD = 2
KANA_WORD = 3
OTHER_WORD = 5
# Fewer characters in a row are in words of any kind.
OTHER_LEAST = 4
# Stems of words that any work is described with.
_ANY_WORK = frozenset(
    [
        *("add", "answ", "ask", "build", "call", "chang", "check", "cod", "command", "convert", "creat", "delet", "draft"),
        *("error", "explain", "fail", "fil", "find", "first", "fix", "function", "get", "giv", "go", "good", "help", "how"),
        *("keep", "know", "lin", "list", "look", "mak", "mean", "messag", "mov", "must", "nam", "need", "new", "next", "not"),
        *("now", "old", "one", "only", "open", "out", "part", "project", "put", "read", "remov", "renam", "return", "right"),
        *("same", "say", "see", "set", "show", "start", "step", "stop", "thing", "think", "try", "two", "up", "updat"),
        *("user", "valu", "vers", "want", "way", "word", "work", "writ", "wrong"),
        # Of other languages in Latin letters: articles, and what binds.
        *("aux", "das", "de", "del", "der", "des", "die", "du", "ein", "el", "en", "es", "est", "et", "eux", "il", "ist"),
        *("la", "las", "le", "les", "lo", "los", "mit", "para", "por", "pour", "que", "qui", "se", "sur", "un", "und", "una"),
        *("une", "von", "zu"),
    ]
)


class Fit(NamedTuple):
    """`words`: how many words of the message the memory is about."""

    ranked: Ranked
    words: float


def clear_fits(message: str, ranked: Sequence[Ranked], names: Sequence[str], memories: int) -> list[Fit]:
    """Those that clearly fit, best first. `names` are those of the ranked, in their order; `memories`: how many there are in all."""
    asked = asked_for(message)
    having = Counter(term for each in ranked for term in set(each.found[0]) | set(each.found[1]))
    limit = max(COMMON_LEAST, min(memories, LOOKED_AT) // COMMON_PART)
    weak = _ANY_WORK | {term for term, count in having.items() if count > limit}
    fits = [Fit(each, _words(asked, each, name, weak)) for each, name in zip(ranked, names, strict=True)]
    best = max((fit.words for fit in fits), default=0.0)
    good = [fit for fit in fits if fit.words >= max(ENOUGH, OF_BEST * best)]
    return sorted(good, key=lambda fit: -fit.words)


def _words(asked: Sequence[str], each: Ranked, name: str, weak: Set[str]) -> float:
    about = {*each.found[0], *each.found[1]}
    body = set(each.found[2]) - about
    found = _counted([term if term in about else None for term in asked], weak)
    if not found:
        return 0.0
    whole = set(terms(name))
    telling = {term for term in each.found[0] if term not in weak}
    # "Who is Anna?" says one word, and it is all that is asked.
    if telling and telling >= {term for term in asked if term not in weak}:
        return max(found, ENOUGH)
    named = 0.0 if not telling else WHOLE_NAME if whole <= set(asked) else IN_NAME
    return found + named + BODY_SHARE * _counted([term if term in body else None for term in asked], weak)


def _counted(row: Sequence[str | None], weak: Set[str]) -> float:
    """The words in a row of terms: a Latin term is one; pairs of characters that overlap are as many as usual words are long."""
    words, chain = 0.0, ""
    for term in [*row, None]:
        if term is not None and not is_word(term) and len(term) > 1:
            if chain and chain[-1] == term[0]:
                chain += term[1:]
                continue
            words += _in_chain(chain)
            chain = term
            continue
        words += _in_chain(chain)
        chain = ""
        if term is not None and is_word(term):
            words += WEAK_SHARE if term in weak or (len(term) == 1) else 1.0
    return words


def _in_chain(chain: str) -> float:
    if not chain:
        return 0.0
    if east_asian_width(chain[0]) not in ("W", "F"):
        return len(chain) / OTHER_WORD if len(chain) >= OTHER_LEAST else 0.0
    kana = sum("\u3040" <= char <= "\u30ff" for char in chain)
    return (len(chain) - kana) / WIDE_WORD + kana / KANA_WORD
