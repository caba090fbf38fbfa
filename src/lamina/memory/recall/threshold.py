"""The threshold of recall: which ranked memories clearly fit a message.

In doubt a memory is left out, and finding none is fine. A short message is judged as a whole, by one number: how rare the words are that it
shares with the memory, how much of the message they are, and how the memory compares with the others that the ranker found. With vectors,
closeness in meaning is added.

A long message is judged by its sentences, and a long sentence in parts: one of them must pass two tests. The memory's name and
description must cover at least two of its words. And chance must not explain the match: a long sentence, a message of many sentences and a
store of many memories make matches by chance likelier. `bench/find.py` and `bench/recall_chat.py` measure both, with the messages used for
tuning and with others. Pure.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple
from unicodedata import east_asian_width

from ...language.terms import is_word, normal, sought, stem, terms
from .rank import Ranked, cut_question, query_terms

# Two words of a sentence in a memory's name or description. One is chance: "test" is in half of all messages.
ENOUGH = 2.0
# What a short message needs, by words and with vectors. The rarity of a word that only one memory has is about 1, the share of the
# message and the lead over the next memory are at most 1, and so is a cosine. The weights were fitted to ten stores at once.
ENOUGH_BY_WORDS = 3.6
ENOUGH_WITH_VECTORS = 4.9
# One word of many is chance, however rare it is: it must be this part of the message.
LEAST_SHARE = 0.2
# The rarest shared word says more than several common ones.
RAREST = 2.0
# The lead counts in full if half of the message is shared: alone with one word of many is no lead.
LEAD = 2.0
HALF = 0.5
# What a memory with half of the best score lacks is half of this.
BEHIND = 3.0
CLOSE = 4.0
# A word found only in the body is a weaker sign than one in the name or description.
BODY_SHARE = 0.5
# A name is chosen to be found by: a word of it counts for half a word more, the whole name for one more.
IN_NAME = 0.5
WHOLE_NAME = 1.0
# A memory that fits less than half as well as the best misses the point of the message.
OF_BEST = 0.5
# If more memories fit equally well than a message gets, it does not tell which one helps.
MOST_EQUAL = 5
# The number of results examined to find out which words are common here.
LOOKED_AT = 200
# A word in more than a tenth of the memories tells little, unless that is only a handful of them.
COMMON_PART = 10
COMMON_LEAST = 5
# The weight of a common word, a generic work word, and a single digit.
WEAK_SHARE = 0.5
# A message of this many terms is judged as one sentence: "When can we ship? Tomorrow, Friday?"
SHORT_MESSAGE = 10
# A match must be this unlikely, in natural logarithms: more so among many memories and in a message of many sentences. The
# three numbers keep the recall of 47 memories and bring 0 to 4 memories to 20 long messages in three stores of 1,000.
PER_MEMORIES = 1.5
PER_SENTENCES = 2.5
ALLOWED = 3.0
# The first and the last sentence are judged as in a message of three.
EDGES = 3
# So few memories say nothing about how common a word is.
FEW_MEMORIES = 50
# The characters in a typical word: of scripts whose characters are words or syllables, of kana, and of other alphabets, which
# are also compared in pairs.
WIDE_WORD = 2
KANA_WORD = 3
OTHER_WORD = 5
# A shorter run of characters occurs in words of any kind.
OTHER_LEAST = 4
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|[\n。！？；]+")
# Stems of words that describe any kind of work.
_ANY_WORK = frozenset(
    [
        *("add", "answ", "ask", "build", "call", "chang", "check", "cod", "command", "convert", "creat", "delet", "draft"),
        *("error", "explain", "fail", "fil", "find", "first", "fix", "function", "get", "giv", "go", "good", "help", "how"),
        *("keep", "know", "lin", "list", "look", "mak", "mean", "messag", "mov", "must", "nam", "need", "new", "next", "not"),
        *("now", "old", "one", "only", "open", "out", "part", "project", "put", "read", "remov", "renam", "return", "right"),
        *("same", "say", "see", "set", "show", "start", "step", "stop", "thing", "think", "try", "two", "up", "updat"),
        *("user", "valu", "vers", "want", "way", "word", "work", "writ", "wrong"),
        # Other languages in Latin letters: articles and connecting words.
        *("aux", "das", "de", "del", "der", "des", "die", "du", "ein", "el", "en", "es", "est", "et", "eux", "il", "ist"),
        *("la", "las", "le", "les", "lo", "los", "mit", "para", "por", "pour", "que", "qui", "se", "sur", "un", "und", "una"),
        *("une", "von", "zu"),
    ]
)
# Words of other languages in Latin letters that tell nothing, as far as they are no English words.
_CONNECTING = """
aber als anche auch auf aus avec bij bitte ces cette che como cuando dans das dass dei dein del della delle dem den der deze
diese dieser dieses dit donde een ein eine einem einen einer elle est esta este esto et fur gli haben hatte het ich ihr ihre
ist je kann konnte las le leur los maar mais mein mich mir muy naar nach nao nel nicht niet noch notre nous nur oder ook
pelo pero por porque pourquoi quand que questo qui schon sehr sein sich sie sind sono sont sus tu uber uma una und une unos
uns unser unter von voor votre vous wann warum welche wenn werden wie wir wird wordt wurde zijn zu zum zur
"""
_OTHER_LANGUAGES = frozenset(map(stem, _CONNECTING.split()))


class ClearFit(NamedTuple):
    """A memory that clearly fits. `evidence` orders those of one message: see `_evidences` and `_best`."""

    ranked: Ranked
    evidence: float


class _Word(NamedTuple):
    """A matching word: one Latin term, or a chain of overlapping pairs, which may be several words or a part of one."""

    terms: tuple[str, ...]
    words: float


class _Message(NamedTuple):
    sentences: tuple[tuple[str, ...], ...]
    memories: int
    weak: Set[str]

    def needed(self, at: int) -> float:
        """Return how unlikely a match of this sentence must be. People ask before what they paste, or behind it."""
        total = len(self.sentences)
        sentences = total if 0 < at < total - 1 else min(total, EDGES)
        return PER_MEMORIES * math.log(self.memories) + PER_SENTENCES * math.log(sentences) - ALLOWED


def clear_fits(message: str, ranked: Sequence[Ranked], names: Sequence[str], memories: int) -> list[ClearFit]:
    """Return the memories that clearly fit, best first. `names` are the names of the ranked ones, in order; `memories` is
    the total."""
    having = Counter(term for each in ranked for term in set(each.found[0]) | set(each.found[1]))
    limit = max(COMMON_LEAST, min(memories, LOOKED_AT) // COMMON_PART)
    weak = _ANY_WORK | {term for term, count in having.items() if count > limit}
    is_english = normal(message).isascii() and _OTHER_LANGUAGES.isdisjoint(sought(message))
    # "die" is a verb in English.
    ignored = _OTHER_LANGUAGES if is_english else _OTHER_LANGUAGES | _ANY_WORK
    asked = _Message(_sentences(message, ignored), max(memories, FEW_MEMORIES), weak)
    if len(asked.sentences) == 1:
        enough = ENOUGH_BY_WORDS if all(each.cosine is None for each in ranked) else ENOUGH_WITH_VECTORS
        fits = [ClearFit(*one) for one in zip(ranked, _evidences(asked, ranked), strict=True)]
    else:
        enough, fits = ENOUGH, [ClearFit(each, _best(asked, each, name)) for each, name in zip(ranked, names, strict=True)]
    best = max((fit.evidence for fit in fits), default=0.0)
    good = [fit for fit in fits if fit.evidence >= max(enough, OF_BEST * best)]
    if not good or sum(fit.evidence == best for fit in good) > MOST_EQUAL:
        return [fit for fit in fits[:1] if _says_it_all(asked, fit.ranked)]
    return sorted(good, key=lambda fit: -fit.evidence)


def _says_it_all(asked: _Message, each: Ranked) -> bool:
    """Tell whether a memory's name and description have every word of a short message. Then its subject is meant, although many
    memories share it, and the best of them is better than none."""
    told = [term for sentence in asked.sentences for term in sentence if term not in _ANY_WORK]
    about = {*each.found[0], *each.found[1]}
    return len(asked.sentences) == 1 and about.issuperset(told) and sum(word.words for word in _words(told)) >= ENOUGH


def _evidences(asked: _Message, ranked: Sequence[Ranked]) -> Iterator[float]:
    """Yield how clearly each memory fits a short message. Memories that match in the same terms are compared once."""
    first, second = [*(each.score for each in ranked[:2]), 0.0, 0.0][:2]
    known = dict[object, _Shared]()
    for at, each in enumerate(ranked):
        key = (each.found, id(each.having))
        if key not in known:
            known[key] = _compared(asked, each)
        rarity, covered = known[key]
        lead = 1 - second / first if at == 0 and first > 0 else 0.0
        behind = 1 - each.score / first if first > 0 else 0.0
        yield rarity + covered + LEAD * lead * min(1.0, covered / HALF) - BEHIND * behind + CLOSE * (each.cosine or 0.0)


class _Shared(NamedTuple):
    """What a short message and a memory share: how rare it is, and how much of the message, from 0 to 1."""

    rarity: float
    covered: float


def _compared(asked: _Message, each: Ranked) -> _Shared:
    """Return what the message and the memory share. One word of many, and words of any kind of work, are nothing."""
    [sentence] = asked.sentences
    about = {term for field in each.found for term in field}
    words = _words([term if term in about else "" for term in sentence])
    found, whole = (_unlikely(some, each, asked.memories) for some in (words, _words(sentence)))
    one_of_many = sum(word.words for word in words) < ENOUGH and found < LEAST_SHARE * whole
    if one_of_many or all(_share(word) < 1.0 for word in words):
        return _Shared(0.0, 0.0)
    rarest = max(_share(word) * _rare(term, each, asked.memories) for word in words for term in word.terms)
    named = sum(_rare(term, each, asked.memories) for term in sentence if term in each.found[0] and term not in _ANY_WORK)
    return _Shared((found + IN_NAME * named + RAREST * rarest) / math.log(asked.memories), found / whole)


def _sentences(message: str, ignored: Set[str]) -> tuple[tuple[str, ...], ...]:
    """Return the terms of each sentence; those of a short message together, those of a long sentence in parts."""

    def telling(found: Iterable[str]) -> tuple[str, ...]:
        return tuple(term for term in found if term not in ignored)

    rows = [row for part in _SENTENCE.split(cut_question(message)) if (row := telling(sought(part)))]
    if sum(map(len, rows)) <= SHORT_MESSAGE:
        return (telling(query_terms(message)),)
    return tuple(part for row in rows for part in _parts(row))


def _parts(row: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Cut a sentence into parts of as many words as a short message: people also write, dictate and paste without full stops."""
    size = math.ceil(SHORT_MESSAGE * len(row) / max(1.0, sum(word.words for word in _words(row))))
    return (row[at : at + size] for at in range(0, len(row), size))


def _best(asked: _Message, each: Ranked, name: str) -> float:
    """Return how many words of the sentence that fits best are about the memory; 0 if no sentence passes both tests."""
    best = 0.0
    for at, sentence in enumerate(asked.sentences):
        matched, beside = _shared(sentence, each)
        total = _total(asked, sentence, matched, beside, each, name)
        if total < ENOUGH or total <= best:
            continue
        choices = _choices(len(sentence), sum(word.words for word in matched))
        if _rarity(sentence, matched, beside, each, asked.memories) - choices >= asked.needed(at):
            best = total
    return best


def _shared(sentence: Sequence[str], each: Ranked) -> tuple[list[_Word], list[_Word]]:
    """Return the words of a sentence that a memory's name or description has, and those that only its text has."""
    about, text = {*each.found[0], *each.found[1]}, set(each.found[2])
    matched = _words([term if term in about else "" for term in sentence])
    return matched, _words([term if term in text and term not in about else "" for term in sentence])


def _total(asked: _Message, sentence: Sequence[str], matched: list[_Word], beside: list[_Word], each: Ranked, name: str) -> float:
    """Return the number of words that the memory shares with the sentence; 0 if its name and description have none."""
    count = _count(matched, asked.weak)
    telling = any(term not in asked.weak for term in each.found[0])
    named = 0.0 if not telling else WHOLE_NAME if set(terms(name)) <= set(sentence) else IN_NAME
    return count + named + BODY_SHARE * _count(beside, asked.weak) if count else 0.0


def _rarity(sentence: Sequence[str], matched: list[_Word], beside: list[_Word], each: Ranked, memories: int) -> float:
    """Return how unlikely it is that a memory has these words, as a logarithm. Words of the name count more, those of the text less."""
    named = sum(_rare(term, each, memories) for term in sentence if term in each.found[0] and term not in _ANY_WORK)
    return _unlikely(matched, each, memories) + BODY_SHARE * _unlikely(beside, each, memories) + IN_NAME * named


def _unlikely(words: list[_Word], each: Ranked, memories: int) -> float:
    return sum(word.words * _share(word) * max(_rare(term, each, memories) for term in word.terms) for word in words)


def _rare(term: str, each: Ranked, memories: int) -> float:
    return math.log((memories + 1) / (each.having.get(term, 0) + 0.5))


def _share(word: _Word) -> float:
    return WEAK_SHARE if word.terms[0] in _ANY_WORK or len(word.terms[0]) == 1 else 1.0


def _choices(terms: int, chosen: float) -> float:
    """Return the logarithm of the number of ways to choose so many of the terms: each is another chance to match."""
    chosen = min(chosen, terms)
    return math.lgamma(terms + 1) - math.lgamma(chosen + 1) - math.lgamma(terms - chosen + 1)


def _count(words: list[_Word], weak: Set[str]) -> float:
    return sum(word.words * (WEAK_SHARE if len(word.terms) == 1 and _is_weak(word.terms[0], weak) else 1.0) for word in words)


def _is_weak(term: str, weak: Set[str]) -> bool:
    return is_word(term) and (term in weak or len(term) == 1)


def _words(row: Sequence[str]) -> list[_Word]:
    """Return the words in a row of terms, where "" separates. A Latin term is one word; overlapping pairs of characters count
    by typical word length."""
    return [_Word(chain, count) for chain in _chains(row) if (count := 1.0 if is_word(chain[0]) else _in_chain(chain))]


def _chains(row: Sequence[str]) -> Iterator[tuple[str, ...]]:
    chain: tuple[str, ...] = ()
    for term in [*row, ""]:
        is_pair = len(term) > 1 and not is_word(term)
        if is_pair and chain and chain[-1][-1] == term[0]:
            chain += (term,)
            continue
        if chain:
            yield chain
        chain = (term,) if is_pair else ()
        if term and is_word(term):
            yield (term,)


def _in_chain(chain: tuple[str, ...]) -> float:
    text = chain[0] + "".join(pair[1:] for pair in chain[1:])
    if east_asian_width(text[0]) not in ("W", "F"):
        return len(text) / OTHER_WORD if len(text) >= OTHER_LEAST else 0.0
    kana = sum("\u3040" <= char <= "\u30ff" for char in text)
    return (len(text) - kana) / WIDE_WORD + kana / KANA_WORD
