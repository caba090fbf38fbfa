"""The ranker: BM25 over three fields, for any language, without an index on disk.

A corpus is one long text of all memories, so finding a term is a plain text search; only the matches are examined further.
From the second question on, an index is built, a part of it with each question: building it takes as long as a few searches,
which a process with a single question would not recover. Invariants: the same corpus and question give the same answer, from
the text and from the index, with ties broken by file. A memory that shares no term with the question is not in the answer.
Pure: no file, no clock.
A score tells which memory fits best, not whether any does; that is the threshold's task (threshold.py).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice, product
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ...language.terms import STOP_WORDS, is_word, normal, sought, stem, terms
from .variants import with_variants

if TYPE_CHECKING:  # loaded only for a large directory
    from ..store.search_index import SearchIndex
    from ..store.topic_files import TopicHeader

# A name is chosen to be found by, a description gives the subject, a body contains much else.
NAME_WEIGHT = 3.0
DESCRIPTION_WEIGHT = 2.0
BODY_WEIGHT = 1.0
# The constants of BM25: how soon repetition stops to count, and how much a long text is penalised. A smaller penalty favours
# long documents, which contain a word of every question.
SATURATION = 1.2
LENGTH_SHARE = 0.75
# A question that contains a memory's whole name asks for that memory, so it counts half as much again.
TITLE_BONUS = 1.5
# Matching all of a question is worth more than matching one word many times. A larger share favours long documents.
COVERAGE = 0.3
# A month or a year in a question says when, so it counts twice. "May" is mostly another word.
DATE_WEIGHT = 2.0
# A longer question is a document, or contains one: its beginning and end give the subject. Each term costs a search.
MOST_TERMS = 48
MOST_CHARS = 8_000
# A term this common no longer tells memories apart, so not all of its matches are examined.
MOST_PLACES = 50_000
# The share of the memories that each question adds to the index, and the minimum: no question pays for all later ones.
INDEX_PART = 10
INDEX_LEAST = 100
# Candidates that an index of a large directory gives: its own order differs a little from ours.
CANDIDATES = 200

_MONTHS = """january february march april june july august september october november december januar februar märz juni juli oktober
dezember enero febrero marzo abril junio julio agosto septiembre octubre noviembre diciembre janvier février avril juin juillet août
septembre octobre novembre décembre"""
_DATES = frozenset(stem(month) for month in normal(_MONTHS).split())
_YEAR = re.compile("(?:19|20)[0-9]{2}")
# A name of several words in one, and where a word of it begins.
_CAMEL = re.compile("[A-Za-z]+[a-z0-9][A-Z][A-Za-z0-9]*")
_HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z])")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_FIELD, _END = "\x01", "\x00"
_REST = re.compile("[a-z0-9]*")
_FIELDS = ("name", "description", "text")
# Every byte that is not a letter or digit becomes a space.
_WORDS = bytes(byte if chr(byte) in _LETTERS else 0x20 for byte in range(256))


def query_terms(question: str) -> list[str]:
    """Return the terms to search for, in order and without duplicates. The parts of a name such as `minSdkVersion` count too."""
    found = sought(_CAMEL.sub(_with_parts, cut_question(question)))
    return found if len(found) <= MOST_TERMS else found[: MOST_TERMS // 2] + found[-MOST_TERMS // 2 :]


def _with_parts(name: re.Match[str]) -> str:
    return f"{name[0]} {_HUMP.sub(' ', name[0])}"


def cut_question(question: str) -> str:
    half = MOST_CHARS // 2
    return question if len(question) <= MOST_CHARS else f"{question[:half]}\n{question[-half:]}"


class SearchDocument(NamedTuple):
    file: str
    name: str
    description: str
    body: str = ""


# The terms of a question in the name, the description and the body of a memory.
FoundTerms: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


class Ranked(NamedTuple):
    """A ranked memory. `found` lists the question's terms in each field; `having` counts the memories that have each term.
    `cosine` is how close its vectors are to the question; None without vectors."""

    at: int
    score: float
    found: FoundTerms
    having: Mapping[str, int] = {}
    cosine: float | None = None


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

    def index(self, memories: int) -> None:
        """Add this many memories to the index, and their names, which makes later questions cheaper."""
        for name in self._names[self._index.fields // 3 :][:memories]:
            _name_terms(name)
        self._index.grow(self._text, self._starts, memories)

    def rank(self, question: str, most: int) -> list[Ranked]:
        """Return the best `most` memories, best first."""
        if self._asked:
            self.index(max(INDEX_LEAST, len(self) // INDEX_PART))
        self._asked = True
        counts, having = dict[str, _Places](), dict[str, int]()
        for term, group in with_variants(question, query_terms(question)).items():
            found = [self._places(each) for each in group]
            having[term] = _having(len({field // 3 for field in places}) for places in found)
            counts[term] = _joined(found)
        return _rank(counts, _Documents(self._files, self._names, *self._held, len(self), having), most)

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
            if not word or (stem(text[at:end]) == term and text[at:end] not in STOP_WORDS):
                field = bisect_right(starts, at) - 1
                found[field] = found.get(field, 0) + 1
            at, left = end, left - 1


class _Documents(NamedTuple):
    """The documents that the places of terms refer to. `described` and `bodies` are the penalties for length; `having` counts
    the documents with each term or one of its variants, among all `total`."""

    files: Sequence[str]
    names: Sequence[str]
    described: Sequence[float]
    bodies: Sequence[float]
    total: int
    having: Mapping[str, int]


# How often a term occurs in each field, by field number (three per document).
_Places: TypeAlias = dict[int, int]


def _rank(counts: Mapping[str, _Places], documents: _Documents, most: int) -> list[Ranked]:
    scores, covered, total = dict[int, float](), dict[int, float](), 0.0
    for term, places in counts.items():
        often, rare = _often(places, documents), documents.having[term]
        # BM25's weight of a term. A term that no memory has weighs most: it is a part of the question without an answer.
        weight = math.log(1 + (documents.total - rare + 0.5) / (rare + 0.5))
        if term in _DATES or _YEAR.fullmatch(term):
            weight *= DATE_WEIGHT
        total += weight
        for at, count in often.items():
            scores[at] = scores.get(at, 0.0) + weight * count / (SATURATION + count)
            covered[at] = covered.get(at, 0.0) + weight
    for at, score in scores.items():
        scores[at] = score * (1 - COVERAGE + COVERAGE * covered[at] / total)
    for at in {field // 3 for places in counts.values() for field in places if field % 3 == 0}:
        if counts.keys() >= _name_terms(documents.names[at]):
            scores[at] *= TITLE_BONUS
    best = _best(scores, documents.files, most)
    return [Ranked(at, scores[at], found, documents.having) for at, found in zip(best, _found(best, counts), strict=True)]


# A page that searches while the user types asks for the same names with each letter.
@lru_cache(maxsize=16_384)
def _name_terms(name: str) -> frozenset[str]:
    return frozenset(terms(name))


def _best(scores: Mapping[int, float], files: Sequence[str], most: int) -> list[int]:
    """Return the best documents. Sorting plain numbers first is ten times as fast as comparing scores and files of all."""
    if most <= 0:
        return []
    least = sorted(scores.values(), reverse=True)[:most][-1:]
    good = [at for at, score in scores.items() if score >= least[0]]
    return sorted(good, key=lambda at: (-scores[at], files[at]))[:most]


def _often(places: _Places, documents: _Documents) -> dict[int, float]:
    """Return how often the term occurs in each document, weighted by field; a long description or body weighs less."""
    often: dict[int, float] = {}
    described, bodies, get = documents.described, documents.bodies, often.get
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


def _found(best: Sequence[int], counts: Mapping[str, _Places]) -> Iterator[FoundTerms]:
    """Yield the terms of each document. Those with the same terms share one value."""
    fields = [(kind, term, places, 1 << bit) for bit, (kind, (term, places)) in enumerate(product(range(3), counts.items()))]
    known = dict[int, FoundTerms]()
    for at in best:
        start, has = 3 * at, 0
        for kind, _, places, bit in fields:
            if start + kind in places:
                has |= bit
        if has not in known:
            name, about, body = (tuple(term for of, term, _, bit in fields if of == kind and has & bit) for kind in range(3))
            known[has] = (name, about, body)
        yield known[has]


def rank_indexed(index: SearchIndex, question: str, most: int) -> list[tuple[TopicHeader, Ranked]]:
    """Rank the memories of an index as a corpus of the same memories does. If a word is in very many of them, only those with
    a rarer word are candidates."""
    groups = with_variants(question, query_terms(question))
    asked = [each for group in groups.values() for each in group]
    given = index.candidates(asked, max(most, CANDIDATES), (NAME_WEIGHT, DESCRIPTION_WEIGHT, BODY_WEIGHT))
    places: dict[str, _Places] = {term: {} for term in asked}
    for at, candidate in enumerate(given.found):
        for kind, field in enumerate(candidate.terms):
            inside = field.split()
            for term in places.keys() & set(inside):
                places[term][3 * at + kind] = inside.count(term)
    counts = {term: _joined([places[each] for each in group]) for term, group in groups.items()}
    having = {term: _having(given.having[each] for each in group) for term, group in groups.items()}
    headers = [candidate.header for candidate in given.found]
    files, names = [header.file for header in headers], [normal(header.name) for header in headers]
    described = [_penalty(candidate.about, given.about) for candidate in given.found]
    bodies = [_penalty(candidate.body, given.body) for candidate in given.found]
    documents = _Documents(files, names, described, bodies, given.total, having)
    return [(headers[each.at], each) for each in _rank(counts, documents, most)]


def _having(counts: Iterable[int]) -> int:
    """Return how many memories count as having a term: those with the term itself, or else those with one of its variants."""
    first, *others = counts
    return first or sum(others)


def _joined(found: Sequence[_Places]) -> _Places:
    """Add up the places of a term and its variants."""
    first, *others = found
    for places in others:
        for field, count in places.items():
            first[field] = first.get(field, 0) + count
    return first


def _penalties(lengths: Sequence[int]) -> list[float]:
    """Return by how much each text's matches are divided: more for a text longer than the average."""
    average = sum(lengths) / len(lengths) if lengths else 1.0
    return [_penalty(length, average) for length in lengths]


def _penalty(length: int, average: float) -> float:
    return 1 - LENGTH_SHARE + LENGTH_SHARE * length / average


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
            if word.decode() not in STOP_WORDS:  # "not" has the stem of "notes"
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
    return "; ".join(found) or "similar in meaning"
