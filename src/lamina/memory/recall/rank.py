"""The ranker: BM25 over three fields, for any language, without an index on disk.

A corpus is one long text of all memories, so finding a term is a plain text search; only the matches are examined further.
From the second question on, an index is built, a part of it with each question: building it takes as long as a few searches,
which a process with a single question would not recover. Invariants: the same corpus and question give the same answer, from
the text and from the index, with ties broken by file. A memory that shares no term with the question is not in the answer.
Pure: no file, no clock.

This module also sets the threshold for memories that clearly fit a message. In doubt a memory is left out, and finding none
is fine. A score tells which memory fits best, not whether any does, and it grows with the number of memories. So the
threshold counts words: how many of the message's words a memory's name and description cover, in any language. Two are
enough, or one that is the memory's whole name or the whole question. `bench/recall_turn.py` measures this, with the messages
used for tuning and with others.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from itertools import chain, islice
from typing import NamedTuple
from unicodedata import east_asian_width

from ...core.terms import is_word, normal, sought, stem, terms

# A name is chosen to be found by, a description gives the subject, a body contains much else.
NAME_WEIGHT = 3.0
DESCRIPTION_WEIGHT = 2.0
BODY_WEIGHT = 1.0
# The constants of BM25: how soon repetition stops to count, and how much a long body is penalised. Memories are short, so
# length tells less about them than about web pages: half of the usual share finds more on LoCoMo.
SATURATION = 1.2
LENGTH_SHARE = 0.75
# A question that contains a memory's whole name asks for that memory, so it counts half as much again.
TITLE_BONUS = 1.5
# Matching all of a question is worth more than matching one word many times.
COVERAGE = 0.3
# A longer question is a document, or contains one: its beginning and end give the subject. Each term costs a search.
MOST_TERMS = 48
MOST_CHARS = 8_000
# A term this common no longer tells memories apart, so not all of its matches are examined.
MOST_PLACES = 50_000
# The share of the memories that each question adds to the index, and the minimum: no question pays for all later ones.
INDEX_PART = 10
INDEX_LEAST = 100

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_FIELD, _END = "\x01", "\x00"
_REST = re.compile("[a-z0-9]*")
_FIELDS = ("name", "description", "text")
# Every byte that is not a letter or digit becomes a space.
_WORDS = bytes(byte if chr(byte) in _LETTERS else 0x20 for byte in range(256))


def query_terms(question: str) -> list[str]:
    """Return the terms to search for, in order and without duplicates."""
    half = MOST_CHARS // 2
    found = sought(question if len(question) <= MOST_CHARS else f"{question[:half]}\n{question[-half:]}")
    return found if len(found) <= MOST_TERMS else found[: MOST_TERMS // 2] + found[-MOST_TERMS // 2 :]


class SearchDocument(NamedTuple):
    file: str
    name: str
    description: str
    body: str = ""


class Ranked(NamedTuple):
    """A ranked memory. `found` lists the question's terms in each field."""

    at: int
    score: float
    found: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


class Corpus:
    """Memories prepared for any number of questions. The documents never change."""

    __slots__ = ("_asked", "_files", "_held", "_index", "_names", "_starts", "_text")

    def __init__(self, documents: Iterable[SearchDocument]) -> None:
        parts, starts, self._files, self._names = list[str](), list[int](), list[str](), list[str]()
        described, bodies = list[int](), list[int]()
        at = 0
        for file, name, description, body in documents:
            name, description, body = normal(name), normal(description), normal(body)
            second = at + len(name) + 1
            third = second + len(description) + 1
            starts += (at, second, third)
            at = third + len(body) + 1
            parts += (name, _FIELD, description, _FIELD, body, _END)
            described.append(third - second)
            bodies.append(at - third)
            self._files.append(file)
            self._names.append(name)
        self._text = "".join(parts)
        self._starts = [*starts, at]
        self._held = (_penalties(described), _penalties(bodies))
        self._index = _Index()
        self._asked = False

    def __len__(self) -> int:
        return len(self._files)

    def rank(self, question: str, most: int) -> list[Ranked]:
        """Return the best `most` memories, best first."""
        if self._asked:
            self._index.grow(self._text, self._starts, max(INDEX_LEAST, len(self) // INDEX_PART))
        self._asked = True
        wanted = query_terms(question)
        counts = {term: self._places(term) for term in wanted}
        scores, covered, total = dict[int, float](), dict[int, float](), 0.0
        for places in counts.values():
            often = self._often(places)
            # BM25's weight of a term. A term that no memory has weighs most: it is a part of the question without an answer.
            weight = math.log(1 + (len(self) - len(often) + 0.5) / (len(often) + 0.5))
            total += weight
            for at, count in often.items():
                scores[at] = scores.get(at, 0.0) + weight * count / (SATURATION + count)
                covered[at] = covered.get(at, 0.0) + weight
        for at, score in scores.items():
            scores[at] = score * (1 - COVERAGE + COVERAGE * covered[at] / total)
        known = set(wanted)
        for at in {field // 3 for places in counts.values() for field in places if field % 3 == 0}:
            if known.issuperset(terms(self._names[at])):
                scores[at] *= TITLE_BONUS
        return [Ranked(at, scores[at], self._found(at, counts)) for at in self._best(scores, most)]

    def _best(self, scores: dict[int, float], most: int) -> list[int]:
        """Return the best memories. Sorting plain numbers first is ten times as fast as comparing scores and files of all."""
        if most <= 0:
            return []
        least = sorted(scores.values(), reverse=True)[:most][-1:]
        good = [at for at, score in scores.items() if score >= least[0]]
        return sorted(good, key=lambda at: (-scores[at], self._files[at]))[:most]

    def _places(self, term: str) -> dict[int, int]:
        """Return how often the term occurs in each field, by field number (three per memory)."""
        word = is_word(term)
        found = self._index.word(term) if word else self._index.pair(term, self._text, self._starts)
        if self._index.fields < len(self._starts) - 1:
            self._search(term, word, found)
        return found

    def _search(self, term: str, word: bool, found: dict[int, int]) -> None:
        """Add the matches in the text that is not indexed yet."""
        starts, text, at = self._starts, self._text, self._starts[self._index.fields]
        left = MOST_PLACES - sum(found.values())
        while left > 0 and (at := text.find(term, at)) >= 0:
            if word and at and text[at - 1] in _LETTERS:
                at += 1  # inside a word
                continue
            rest = _REST.match(text, at + len(term)) if word else None
            end = rest.end() if rest is not None else at + len(term)
            if not word or stem(text[at:end]) == term:
                field = bisect_right(starts, at) - 1
                found[field] = found.get(field, 0) + 1
            at, left = end, left - 1

    def _often(self, places: dict[int, int]) -> dict[int, float]:
        """Return how often the term occurs in each memory, weighted by field; a long description or body weighs less."""
        often: dict[int, float] = {}
        (described, bodies), get = self._held, often.get
        for field, count in places.items():
            at = field // 3
            kind = field - 3 * at
            if kind == 2:
                often[at] = get(at, 0.0) + BODY_WEIGHT * count / bodies[at]
            elif kind:
                often[at] = get(at, 0.0) + DESCRIPTION_WEIGHT * count / described[at]
            else:
                often[at] = get(at, 0.0) + NAME_WEIGHT * count
        return often

    def _found(self, at: int, counts: dict[str, dict[int, int]]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        name, description, body = (tuple(term for term, places in counts.items() if 3 * at + kind in places) for kind in range(3))
        return name, description, body


def _penalties(lengths: Sequence[int]) -> list[float]:
    """Return by how much each text's matches are divided: more for a text longer than the average."""
    average = sum(lengths) / len(lengths) if lengths else 1.0
    return [1 - LENGTH_SHARE + LENGTH_SHARE * length / average for length in lengths]


class _Index:
    """The first `fields` fields of a corpus. For each word it lists the fields of its occurrences, in order. For each
    character of another script it lists the fields that contain it.
    """

    __slots__ = ("_having", "_stems", "_words", "fields")

    def __init__(self) -> None:
        self.fields = 0
        self._words: defaultdict[bytes, list[int]] = defaultdict(list)
        self._stems: defaultdict[str, list[bytes]] = defaultdict(list)
        self._having: defaultdict[str, list[int]] = defaultdict(list)

    def grow(self, text: str, starts: list[int], memories: int) -> None:
        first, last = self.fields, min(self.fields + 3 * memories, len(starts) - 1)
        if first == last:
            return
        base, part = starts[first], text[starts[first] : starts[last]]
        # One byte per character, so positions stay the same.
        plain = part.encode("ascii", "replace").translate(_WORDS)
        words, known = self._words, len(self._words)
        for field in range(first, last):
            for word in plain[starts[field] - base : starts[field + 1] - base].split():
                words[word].append(field)
        if not part.isascii():
            for field in range(first, last):
                inside = text[starts[field] : starts[field + 1]]
                for char in () if inside.isascii() else set(inside):
                    self._having[char].append(field)
        for word in islice(words, known, None):
            self._stems[stem(word.decode())].append(word)
        self.fields = last

    def word(self, term: str) -> dict[int, int]:
        lists = [self._words[word] for word in self._stems.get(term, ())]
        # In text order, as a search finds them.
        places = lists[0] if len(lists) == 1 else sorted(chain.from_iterable(lists))
        return Counter(islice(places, MOST_PLACES))

    def pair(self, term: str, text: str, starts: list[int]) -> dict[int, int]:
        fewest = min((self._having.get(char, []) for char in term), key=len)
        counted = ((field, text.count(term, starts[field], starts[field + 1])) for field in fewest)
        return {field: count for field, count in counted if count}


def explain(ranked: Ranked) -> str:
    """Explain why a memory was found, for the user: `name: test, database; text: real`."""
    found = (f"{field}: {', '.join(hits)}" for field, hits in zip(_FIELDS, ranked.found, strict=True) if hits)
    return "; ".join(found)


# Two words of a message in a memory's name or description. One is chance: "test" is in half of all messages.
ENOUGH = 2.0
# A word found only in the body is a weaker sign than one in the name or description.
BODY_SHARE = 0.5
# A name is chosen to be found by: a word of it counts for half a word more, the whole name for one more.
IN_NAME = 0.5
WHOLE_NAME = 1.0
# A memory that fits less than half as well as the best misses the point of the message.
OF_BEST = 0.5
# The number of results examined to find out which words are common here.
LOOKED_AT = 200
# A word in more than a tenth of the memories tells little, unless that is only a handful of them.
COMMON_PART = 10
COMMON_LEAST = 5
# The weight of a common word, a generic work word, and a single digit.
WEAK_SHARE = 0.5
# The characters in a typical word: of scripts whose characters are words or syllables, of kana, and of other alphabets, which
# are also compared in pairs.
WIDE_WORD = 2
KANA_WORD = 3
OTHER_WORD = 5
# A shorter run of characters occurs in words of any kind.
OTHER_LEAST = 4
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


class ClearFit(NamedTuple):
    """A memory that clearly fits. `words` is the number of the message's words that it covers."""

    ranked: Ranked
    words: float


def clear_fits(message: str, ranked: Sequence[Ranked], names: Sequence[str], memories: int) -> list[ClearFit]:
    """Return the memories that clearly fit, best first. `names` are the names of the ranked ones, in order; `memories` is
    the total."""
    asked = query_terms(message)
    having = Counter(term for each in ranked for term in set(each.found[0]) | set(each.found[1]))
    limit = max(COMMON_LEAST, min(memories, LOOKED_AT) // COMMON_PART)
    weak = _ANY_WORK | {term for term, count in having.items() if count > limit}
    fits = [ClearFit(each, _words(asked, each, name, weak)) for each, name in zip(ranked, names, strict=True)]
    best = max((fit.words for fit in fits), default=0.0)
    good = [fit for fit in fits if fit.words >= max(ENOUGH, OF_BEST * best)]
    return sorted(good, key=lambda fit: -fit.words)


def _words(asked: Sequence[str], each: Ranked, name: str, weak: Set[str]) -> float:
    about = {*each.found[0], *each.found[1]}
    body = set(each.found[2]) - about
    found = _counted([term if term in about else "" for term in asked], weak)
    if not found:
        return 0.0
    telling = {term for term in each.found[0] if term not in weak}
    # "Who is Anna?" has one telling word, and that is the whole question.
    if telling and telling >= {term for term in asked if term not in weak}:
        return max(found, ENOUGH)
    named = 0.0 if not telling else WHOLE_NAME if set(terms(name)) <= set(asked) else IN_NAME
    return found + named + BODY_SHARE * _counted([term if term in body else "" for term in asked], weak)


def _counted(row: Sequence[str], weak: Set[str]) -> float:
    """Count the words in a row of terms. A Latin term is one word; overlapping pairs of characters count by typical word
    length."""
    words, chain = 0.0, ""
    for term in [*row, ""]:
        is_pair = len(term) > 1 and not is_word(term)
        if is_pair and chain and chain[-1] == term[0]:
            chain += term[1:]
            continue
        words += _in_chain(chain)
        chain = term if is_pair else ""
        if term and is_word(term):
            words += WEAK_SHARE if term in weak or len(term) == 1 else 1.0
    return words


def _in_chain(chain: str) -> float:
    if not chain:
        return 0.0
    if east_asian_width(chain[0]) not in ("W", "F"):
        return len(chain) / OTHER_WORD if len(chain) >= OTHER_LEAST else 0.0
    kana = sum("\u3040" <= char <= "\u30ff" for char in chain)
    return (len(chain) - kana) / WIDE_WORD + kana / KANA_WORD
