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
    # Each with its score, its place among equals, and what it is made of: most of them are not returned.
    scored: list[tuple[float, str, TopicHeader, Ranked | None]] = []
    for header, ranked in words:
        close = similar.get(header.file)
        score = ranked.score / best + share * close.cosine if close is not None else ranked.score / (best if similar else 1.0)
        scored.append((max(score, 0.0), header.file, header, ranked))
    known = {header.file for header, _ in words}
    for file, close in similar.items():
        if close.cosine >= LEAST_COSINE and file not in known:
            scored.append((share * close.cosine, file, close.header, None))
    scored.sort(key=lambda each: (-each[0], each[1]))
    return [
        (header, _placed(at, score, found, similar.get(file))) for at, (score, file, header, found) in enumerate(scored[:most])
    ]


def _placed(at: int, score: float, ranked: Ranked | None, close: SimilarMemory | None) -> Ranked:
    cosine = close.cosine if close is not None else None
    return (ranked or Ranked(0, score, ((), (), ())))._replace(at=at, score=score, cosine=cosine)
