"""Fusion of two rankings: by words and by meaning.

A memory's score is its score by words, as a share of the best one, plus a part of its cosine to the question. Words decide
where they are shared; meaning decides among memories with the same words, and adds memories that share none. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..store.topic_files import TopicHeader
from .rank import Ranked

# A memory without a word of the question must be this close to it. Unrelated texts are as often above 0 as below.
LEAST_COSINE = 0.15
# The number of memories that each ranking contributes.
DEPTH = 200


class SimilarMemory(NamedTuple):
    """A memory and how close it is to the question."""

    header: TopicHeader
    cosine: float


def fuse(
    words: Sequence[tuple[TopicHeader, Ranked]], similar: Mapping[str, SimilarMemory], most: int, share: float
) -> list[tuple[TopicHeader, Ranked]]:
    """Return the best of both, best first; `share` is the weight of a cosine. Without similar memories this is the ranking by
    words."""
    best = max((ranked.score for _, ranked in words), default=1.0)
    found = dict[str, tuple[TopicHeader, Ranked]]()
    for header, ranked in words:
        if (close := similar.get(header.file)) is not None:
            score = ranked.score / best + share * close.cosine
            ranked = ranked._replace(score=max(score, 0.0), cosine=close.cosine)
        elif similar:
            ranked = ranked._replace(score=ranked.score / best)
        found[header.file] = header, ranked
    for file, close in similar.items():
        if file not in found and close.cosine >= LEAST_COSINE:
            found[file] = close.header, Ranked(0, share * close.cosine, ((), (), ()), cosine=close.cosine)
    ordered = sorted(found.values(), key=lambda each: (-each[1].score, each[0].file))[:most]
    return [(header, ranked._replace(at=at)) for at, (header, ranked) in enumerate(ordered)]
