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
        cosine = similar[header.file].cosine if header.file in similar else 0.0
        score = ranked.score / best + share * cosine if similar else ranked.score
        found[header.file] = header, ranked._replace(score=max(score, 0.0))
    for file, (header, cosine) in similar.items():
        if file not in found and cosine >= LEAST_COSINE:
            found[file] = header, Ranked(0, share * cosine, ((), (), ()))
    ordered = sorted(found.values(), key=lambda each: (-each[1].score, each[0].file))[:most]
    return [(header, ranked._replace(at=at)) for at, (header, ranked) in enumerate(ordered)]
