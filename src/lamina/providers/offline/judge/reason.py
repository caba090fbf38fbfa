"""Decides whether a clause or a sentence gives the reason for the one beside it, if no word such as "because" says so.

A logistic regression over hashed features of both, trained by `scripts/train_extract.py`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from .features import pair_features
from .weights import Weights, read_weights

WEIGHTS = Path(__file__).with_name("reason.bin")


@cache
def weights() -> Weights:
    return read_weights(WEIGHTS)


def reason_margin(rule: str, why: str, link: str, kind: str) -> float:
    """Return by how much `why` is the reason for a rule of this type; above 0 it is."""
    [score] = weights().scores(pair_features(rule, why, link, kind), 1)
    return score - weights().threshold
