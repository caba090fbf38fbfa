"""Reads the weights of a judge: one small integer for each feature and label.

A weight is stored as the root of its share of the largest one, because most weights are small.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

# The largest stored integer.
MOST: Final = 127


class Weights(NamedTuple):
    """`rows` has one integer for each feature and label, and `values` the weight that an integer stands for."""

    rows: array[int]
    values: Mapping[int, float]
    threshold: float
    corpus: int  # checksum of the sentences it was trained on

    def scores(self, found: Mapping[int, float], labels: int) -> list[float]:
        """Return the score of each label for a sentence with these features."""
        scores = [0.0] * labels
        for bucket, value in found.items():
            begin = bucket * labels
            for label, root in enumerate(self.rows[begin : begin + labels]):
                scores[label] += self.values[root] * value
        return scores


def read_weights(path: Path) -> Weights:
    head, _, packed = path.read_bytes().partition(b"\n")
    facts = json.loads(head)
    values = {root: root * abs(root) / MOST**2 * facts["largest"] for root in range(-MOST, MOST + 1)}
    return Weights(array("b", zlib.decompress(packed)), values, facts["threshold"], facts["corpus"])
