"""Estimates tokens from features, and calibrates the estimate with the usage that responses report.

This module owns the starting values and the update rule. Invariant: a factor stays between half and twice its starting value, so
one odd report can shift the estimate a little but never make it absurd.

Theory. Tokens are nearly linear in the features: tokens = sum over classes of (factor x starting value x count). Factors start at
1. Each response reports the true cost of the blocks added before it, so one equation arrives per response. We solve them one by
one with a Kalman filter that keeps a variance per class and no covariances. A class that makes up most of a step takes most of
the correction, an absent class takes none, and a class seen often moves less. This can learn a tokenizer that needs more tokens
for words but not for digits, which a single ratio could not. The farther a report is from the estimate, the less it counts: it
may include context that we never saw.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec

from .features import Features

# Tokens per ASCII letter, blank, mark, wide character and byte of other scripts. Fitted on 3,247 steps of two agents' logs with
# five Claude models, rounded; `bench/estimate.py` repeats the fit and tests it on held-out data. Wide characters do not occur in
# those logs: public tokenizers take 0.6 to 1.25 tokens per character, and the factor may double or halve.
LETTER, BLANK, MARK, WIDE, RARE = 0.225, 0.13, 0.82, 1.0, 0.37

# Factors stay within these bounds.
LEAST, MOST = 0.5, 2.0

# Safety margin while no usage is reported: a third on top.
UNREPORTED = (4, 3)

# Initial variance of a factor, and the variance added per response, so that the estimate can follow a session that turns from
# prose to tables.
FIRST_DOUBT = 0.3**2
DOUBT_PER_STEP = 1e-4

# The error of a good estimate on one step: a few tokens of wrapping and a share of the total. Reports beyond 1.5 times this error
# count proportionally less.
STEP_ERROR, STEP_ERROR_PART = 40.0, 0.15
FAR = 1.5

Classes: TypeAlias = tuple[float, float, float, float, float]  # words, marks, wide, rare, frame


class Calibration(msgspec.Struct, frozen=True):
    factors: Classes = (1.0, 1.0, 1.0, 1.0, 1.0)
    doubts: Classes = (FIRST_DOUBT, FIRST_DOUBT, FIRST_DOUBT, FIRST_DOUBT, FIRST_DOUBT)
    seen: int = 0  # responses learned from


START = Calibration()


def estimate(features: Features, calibration: Calibration = START) -> int:
    return math.ceil(_product(_spread(features), calibration.factors)) + features.flat


def unreported_estimate(features: Features, calibration: Calibration = START) -> int:
    """Estimate with a safety margin, for conversations without any reported usage. Calibration can only raise the number."""
    more, of = UNREPORTED
    return max(-(-features.plain * more // of), estimate(features, calibration))


def observe(calibration: Calibration, added: Features, reported: int) -> Calibration:
    """Learn from one response. `added` holds the features of the new blocks, `reported` the tokens by which the request grew.

    Nothing is learned if the request did not grow (the view was changed elsewhere), or if the new blocks include images or
    documents, whose size is a guess.
    """
    spread = _spread(added)
    expected = _product(spread, calibration.factors)
    if reported <= 0 or added.flat or expected <= 0:
        return calibration
    residual = reported - expected
    error = STEP_ERROR + STEP_ERROR_PART * expected
    noise = error * error * max(1.0, abs(residual) / error / FAR)
    doubts = [min(FIRST_DOUBT, doubt + DOUBT_PER_STEP) for doubt in calibration.doubts]
    pulls = _classes([doubt * part for doubt, part in zip(doubts, spread, strict=True)])
    total = noise + _product(pulls, spread)
    factors = [
        min(MOST, max(LEAST, factor + pull / total * residual)) for factor, pull in zip(calibration.factors, pulls, strict=True)
    ]
    new_doubts = [doubt - pull * pull / total for doubt, pull in zip(doubts, pulls, strict=True)]
    return Calibration(_classes(factors), _classes(new_doubts), calibration.seen + 1)


def _spread(features: Features) -> Classes:
    return (
        features.letters * LETTER + features.blanks * BLANK,
        features.marks * MARK,
        features.wide * WIDE,
        features.rare * RARE,
        float(features.frame),
    )


def _product(left: Classes, right: Classes) -> float:
    """Return the dot product. It is unrolled, because it runs several times before every model call."""
    a, b, c, d, e = left
    v, w, x, y, z = right
    return a * v + b * w + c * x + d * y + e * z


def _classes(values: list[float]) -> Classes:
    words, marks, wide, rare, frame = values
    return words, marks, wide, rare, frame
