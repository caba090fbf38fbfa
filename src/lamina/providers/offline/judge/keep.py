"""Decides whether a sentence of the user is worth keeping, and as which type of memory, or gives the reason for one.

A softmax regression over hashed features, trained by `scripts/train_extract.py`. The weights are read when the first sentence is judged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from .features import features
from .weights import Weights, read_weights

Kind: TypeAlias = Literal["user", "feedback", "project", "reference"]

KINDS: Final[tuple[Kind, ...]] = ("user", "feedback", "project", "reference")
LABELS: Final = ("none", "reason", *KINDS)
# The labels before this place are not kept.
FIRST_KIND: Final = 2
WEIGHTS = Path(__file__).with_name("keep.bin")


@cache
def weights() -> Weights:
    return read_weights(WEIGHTS)


class Worth(NamedTuple):
    """The likeliest type of a sentence, and by how much it is worth keeping as that; above 0 it is."""

    kind: Kind
    margin: float


def worth(sentences: Sequence[str], at: int) -> Worth:
    """Judge one sentence of a message, with those beside it."""
    scores = weights().scores(features(sentences, at), len(LABELS))
    best = scores.index(max(scores[FIRST_KIND:]), FIRST_KIND)
    others = [score for label, score in enumerate(scores) if label != best]
    return Worth(KINDS[best - FIRST_KIND], scores[best] - _total(others) - weights().threshold)


def _total(scores: Sequence[float]) -> float:
    return math.log(sum(math.exp(score) for score in scores))
