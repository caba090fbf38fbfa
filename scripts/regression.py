"""Softmax regression over hashed features, and its weights as small integers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from lamina.providers.offline.judge.weights import MOST

# How much a wrong label weighs against large weights; when the search ends.
STRENGTH = 30.0
STEPS, MEMORY, PRECISION = 300, 10, 1e-7

Array = npt.NDArray[np.float64]


def train(rows: Sequence[Mapping[int, float]], wanted: Sequence[int], labels: int, features: int) -> Array:
    """Return the weights with the least loss: the surprise over the labels, and the size of the weights."""
    buckets = np.concatenate([np.array(list(row)) for row in rows])
    values = np.concatenate([np.array(list(row.values())) for row in rows])
    sizes = np.array([len(row) for row in rows])
    owner, starts = np.repeat(np.arange(len(rows)), sizes), np.cumsum(sizes) - sizes
    right = np.eye(labels)[list(wanted)]

    def loss(weights: Array) -> tuple[float, Array]:
        scores = np.add.reduceat(values[:, None] * weights[buckets], starts)
        scores -= scores.max(axis=1, keepdims=True)
        total = np.exp(scores).sum(axis=1, keepdims=True)
        error = (np.exp(scores) / total - right)[owner] * values[:, None]
        slope = np.stack([np.bincount(buckets, column, features) for column in error.T], axis=1)
        surprise = float(np.log(total).sum() - (scores * right).sum())
        return STRENGTH * surprise + float((weights * weights).sum()) / 2, STRENGTH * slope + weights

    return minimize(loss, np.zeros((features, labels)))


def minimize(loss: Callable[[Array], tuple[float, Array]], at: Array) -> Array:
    """Follow the slope, corrected by how it changed in the last steps (L-BFGS)."""
    value, slope = loss(at)
    past = deque[tuple[Array, Array]](maxlen=MEMORY)
    for _ in range(STEPS):
        way = -_corrected(slope, past)
        gain, step = float((slope * way).sum()), 1.0 if past else 1 / float(np.abs(slope).sum())
        while (found := loss(at + step * way))[0] > value + 1e-4 * step * gain:
            step /= 2
        past.append((step * way, found[1] - slope))
        at, (before, value), slope = at + step * way, (value, found[0]), found[1]
        if before - value < PRECISION * value:
            break
    return at


def _corrected(slope: Array, past: Sequence[tuple[Array, Array]]) -> Array:
    shares = []
    for moved, changed in reversed(past):
        share = float((moved * slope).sum() / (moved * changed).sum())
        slope = slope - share * changed
        shares.append(share)
    if past:
        moved, changed = past[-1]
        slope = slope * float((moved * changed).sum() / (changed * changed).sum())
    for (moved, changed), share in zip(past, reversed(shares), strict=True):
        slope = slope + (share - float((changed * slope).sum() / (moved * changed).sum())) * moved
    return slope


def packed(weights: Array) -> tuple[npt.NDArray[np.int8], float]:
    """Return the weights as small integers, and the largest weight. The integers are roots: most weights are small."""
    largest = float(np.abs(weights).max())
    return np.rint(np.sign(weights) * np.sqrt(np.abs(weights) / largest) * MOST).astype(np.int8), largest


def unpacked(small: npt.NDArray[np.int8], largest: float) -> Array:
    roots = small.astype(np.float64) / MOST
    return roots * np.abs(roots) * largest
