"""The learned judge: decides whether a sentence of the user is worth keeping, and as which type of memory, or gives the reason for one.

A softmax regression over hashed features, trained by `scripts/train_extract.py`. The weights are read when the first sentence is judged.
"""

from __future__ import annotations

import json
import math
import zlib
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from .features import features

Kind: TypeAlias = Literal["user", "feedback", "project", "reference"]

KINDS: Final[tuple[Kind, ...]] = ("user", "feedback", "project", "reference")
LABELS: Final = ("none", "reason", *KINDS)
# The labels before this place are not kept.
FIRST_KIND: Final = 2
WEIGHTS = Path(__file__).with_name("weights.bin")
# A weight is stored as the root of its share of the largest one, times this.
MOST: Final = 127


class Weights(NamedTuple):
    """`rows` has one small integer for each feature and label, and `values` the weight that an integer stands for."""

    rows: array[int]
    values: Mapping[int, float]
    threshold: float
    corpus: int  # checksum of the sentences it was trained on


@cache
def weights() -> Weights:
    head, _, packed = WEIGHTS.read_bytes().partition(b"\n")
    facts = json.loads(head)
    values = {root: root * abs(root) / MOST**2 * facts["largest"] for root in range(-MOST, MOST + 1)}
    return Weights(array("b", zlib.decompress(packed)), values, facts["threshold"], facts["corpus"])


def judge(sentences: Sequence[str], at: int) -> Kind | Literal["reason"] | None:
    """Return the type of memory that a sentence of a message is worth, "reason" if it gives the reason for another, or None."""
    rest, kinds = _scores(sentences, at)
    if _total(kinds) - _total(rest) > weights().threshold:
        return KINDS[kinds.index(max(kinds))]
    return "reason" if rest[1] > rest[0] else None


def gives_reason_for(clause: str, rule: str) -> bool:
    """Whether a clause gives the reason for the rule before it, and the rule is worth keeping without it."""
    (none, given), worth = _scores([rule, clause], 1)
    rest, kinds = _scores([rule, clause], 0)
    return given > max(none, worth[KINDS.index("feedback")]) and max(kinds) > max(rest)


def _scores(sentences: Sequence[str], at: int) -> tuple[list[float], list[float]]:
    """Return the scores of the labels that are not kept, and those of the types."""
    learned = weights()
    scores = [0.0] * len(LABELS)
    for bucket, value in features(sentences, at).items():
        begin = bucket * len(LABELS)
        for label, root in enumerate(learned.rows[begin : begin + len(LABELS)]):
            scores[label] += learned.values[root] * value
    return scores[:FIRST_KIND], scores[FIRST_KIND:]


def _total(scores: Sequence[float]) -> float:
    return math.log(sum(math.exp(score) for score in scores))
