"""Which memories fit a question: BM25 over three fields, for any language, without an index on disk (B15).

Owns the score. A corpus is one long text of all memories, so that finding a term is a plain search at the speed of memory; only the
places found are looked at closely. Invariants: the same corpus and question give the same order, ties by file; a memory that shares
no term with the question is not in the answer. Pure: no file, no clock.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from itertools import accumulate, islice
from typing import NamedTuple

from ..core.words import is_word, normal, sought, stem, terms

# A name is chosen to be found by, a description says what a memory is about, a body says much besides.
NAME_WEIGHT = 3.0
DESCRIPTION_WEIGHT = 2.0
BODY_WEIGHT = 1.0
# The usual constants of BM25: how soon repetition stops to count, and how much a long body is held against it.
SATURATION = 1.2
LENGTH_SHARE = 0.6
# A memory whose name the question spells out is what was asked for: it counts half as much again.
TITLE_BONUS = 1.5
# Matching all of a question is worth more than matching one word of it many times.
COVERAGE = 0.5
# A question this long is a document; its first terms say what it is about, and each term costs a search.
MOST_TERMS = 48
# In a corpus of any size a term this common tells memories apart no longer; its places are not all looked at.
MOST_PLACES = 50_000

_FIELD, _END = "\x01", "\x00"
_FIELDS = ("name", "description", "text")


class Document(NamedTuple):
    file: str
    name: str
    description: str
    body: str = ""


class Ranked(NamedTuple):
    """`found`: for each field the question's terms in it. `coverage`: how much of the question's weight that is, 0 to 1."""

    at: int
    score: float
    coverage: float
    found: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


class Corpus:
    """Memories prepared for any number of questions; never changed."""

    __slots__ = ("_average", "_files", "_lengths", "_names", "_starts", "_text")

    def __init__(self, documents: Iterable[Document]) -> None:
        parts, self._starts, self._files, self._names = list[str](), list[int](), list[str](), list[str]()
        at = 0
        for document in documents:
            fields = [normal(document.name), normal(document.description), normal(document.body)]
            sizes = list(accumulate((len(field) + 1 for field in fields), initial=at))
            self._starts += sizes[:3]
            at = sizes[3]
            parts += [_FIELD.join(fields), _END]
            self._files.append(document.file)
            self._names.append(fields[0])
        self._text = "".join(parts)
        ends = [*self._starts[3::3], at]
        self._lengths = [end - start for end, start in zip(ends, self._starts[2::3], strict=False)]
        self._average = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0

    def __len__(self) -> int:
        return len(self._files)

    def rank(self, question: str, most: int) -> list[Ranked]:
        """The best `most` memories, best first."""
        wanted = sought(question)[:MOST_TERMS]
        counts = {term: self._places(term) for term in wanted}
        weights = {term: _rarity(len(self), len({place // 3 for place in found})) for term, found in counts.items()}
        total = sum(weights.values()) or 1.0
        scores: dict[int, float] = {}
        covered: dict[int, float] = {}
        for term, places in counts.items():
            for at, often in self._often(places).items():
                scores[at] = scores.get(at, 0.0) + weights[term] * often / (SATURATION + often)
                covered[at] = covered.get(at, 0.0) + weights[term]
        for at, score in scores.items():
            scores[at] = score * (1 - COVERAGE + COVERAGE * covered[at] / total)
        known = set(wanted)
        for at in {field // 3 for places in counts.values() for field in places if field % 3 == 0}:
            if known.issuperset(terms(self._names[at])):
                scores[at] *= TITLE_BONUS
        best = nsmallest(most, scores, key=lambda at: (-scores[at], self._files[at]))
        return [Ranked(at, scores[at], covered[at] / total, self._found(at, counts)) for at in best]

    def _places(self, term: str) -> dict[int, int]:
        """Field number (three for each memory) → how often the term stands in it."""
        text, starts, found = self._text, self._starts, dict[int, int]()
        word = is_word(term)
        # It begins with plain letters, so the search runs from place to place without a look at what lies between.
        pattern = f"{re.escape(term)}(?<![a-z0-9]{re.escape(term)})[a-z0-9]*" if word else re.escape(term)
        for place in islice(re.finditer(pattern, text), MOST_PLACES):
            if not word or stem(place[0]) == term:
                field = bisect_right(starts, place.start()) - 1
                found[field] = found.get(field, 0) + 1
        return found

    def _often(self, places: dict[int, int]) -> dict[int, float]:
        """Memory → how often the term stands in it, weighed by field; a long body weighs less."""
        often: dict[int, float] = {}
        for field, count in places.items():
            at, kind = divmod(field, 3)
            if kind == 0:
                weighed = NAME_WEIGHT * count
            elif kind == 1:
                weighed = DESCRIPTION_WEIGHT * count
            else:
                weighed = BODY_WEIGHT * count / (1 - LENGTH_SHARE + LENGTH_SHARE * self._lengths[at] / self._average)
            often[at] = often.get(at, 0.0) + weighed
        return often

    def _found(self, at: int, counts: dict[str, dict[int, int]]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        name, description, body = (tuple(term for term, places in counts.items() if 3 * at + kind in places) for kind in range(3))
        return name, description, body


def _rarity(documents: int, having: int) -> float:
    """BM25's weight of a term. One that no memory has weighs most: it is part of the question and not answered."""
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))


def explained(ranked: Ranked) -> str:
    """Why a memory was found, for a person: `name: test, database; text: real`."""
    found = (f"{field}: {', '.join(hits)}" for field, hits in zip(_FIELDS, ranked.found, strict=True) if hits)
    return "; ".join(found)


def best(documents: Sequence[Document], question: str, most: int) -> list[Document]:
    """The documents that fit best, best first."""
    return [documents[ranked.at] for ranked in Corpus(documents).rank(question, most)]
