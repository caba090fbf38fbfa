"""Which texts say nearly the same: pairs among thousands, without comparing each with each.

A text is the set of its runs of three words (of three characters where words are not spaced); of that set the smallest hashes are its
sketch. Texts that share part of a sketch are compared in full. Invariants: the same texts give the same pairs in any process; the work
grows with the number of texts, not with its square, also where all of them are alike. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest
from typing import NamedTuple
from zlib import crc32

# A memory is a page at most; what is alike on its first pages is alike.
MOST_CHARS = 6_000
# Fewer words are a phrase, and phrases are alike by chance.
FEWEST_WORDS = 12
# Of ten runs of words that either text has, seven are in both.
NEAR = 0.7
# Enough that two texts at the border of NEAR share several with near certainty.
_SKETCH = 32
# How many earlier texts a text is held against for each value: in a crowd of equals the first few stand for all.
_EARLIER = 6
# Sharing fewer values than this of the sketch, no pair reaches NEAR.
_FEWEST_SHARED = 12

_WORD = re.compile(r"[^\W_\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+|[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]")


class Pair(NamedTuple):
    """Positions in what was given; `second` is the later one."""

    first: int
    second: int
    likeness: float


def near_pairs(texts: Sequence[str]) -> list[Pair]:
    """For each text the earlier one it is most like, if it is like one at all."""
    earlier: dict[int, list[int]] = {}
    pairs = list[Pair]()
    known: dict[str, int] = {}
    for number, text in enumerate(texts):
        runs = _runs(text, known)
        sketch = nsmallest(_SKETCH, runs)
        shared = Counter(other for value in sketch for other in earlier.get(value, ()))
        best = max((Pair(other, number, _likeness(runs, texts[other], known)) for other in _likely(shared, sketch)),
                   key=lambda pair: (pair.likeness, -pair.first), default=None)  # fmt: skip
        if best is not None and best.likeness >= NEAR:
            pairs.append(best)
        for value in sketch:
            places = earlier.setdefault(value, [])
            if len(places) < _EARLIER:
                places.append(number)
    return pairs


def _likely(shared: Counter[int], sketch: Sequence[int]) -> list[int]:
    least = min(_FEWEST_SHARED, len(sketch) // 2)
    return [other for other, count in shared.most_common(_EARLIER) if count >= least]


def _likeness(runs: set[int], other: str, known: dict[str, int]) -> float:
    """Jaccard's: what both have, of what either has."""
    theirs = _runs(other, known)
    return len(runs & theirs) / len(runs | theirs) if runs and theirs else 0.0


def _runs(text: str, known: dict[str, int]) -> set[int]:
    words = _WORD.findall(text[:MOST_CHARS].casefold())
    if len(words) < FEWEST_WORDS:
        return set()
    hashes = [known.get(word) or known.setdefault(word, crc32(word.encode("utf-8", "replace")) | 1) for word in words]
    return {
        (first * 0x9E3779B1 ^ second * 0x85EBCA6B ^ third * 0xC2B2AE35) & 0xFFFF_FFFF
        for first, second, third in zip(hashes, hashes[1:], hashes[2:], strict=False)
    }
