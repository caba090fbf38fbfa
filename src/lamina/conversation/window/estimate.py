"""Estimate: features to tokens, and how the factors learn from what responses report (T2, T3).

Owns the starting values and the update rule. The invariant: a factor never leaves half to twice its starting value, so that one
odd report can move the estimate a little and never make it absurd.

Theory. Tokens are nearly linear in the features: tokens = sum over classes of (factor x starting value x count). Factors start
at 1. Each response reports what the blocks added before it really cost, so one equation arrives per response. We solve them one
by one with a Kalman filter that keeps a variance per class and no covariances: a class that makes up most of a step takes most of
the correction, a class that is not there takes none, and a class long seen moves less. That learns a tokenizer that is dearer in
words but not in digits, which one ratio for all could not. A report far from the estimate (context this side never saw) counts
less the farther it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from ...core.blocks import Block
from .features import Features, Memo, measure_all

# Tokens per ASCII letter, blank, mark, wide character and byte of other scripts. Fitted over 3,247 steps of two agents' logs with
# five Claude models, rounded; `bench/estimate.py` fits them again and tests on what each fit did not see. Wide characters do not
# occur in those logs: public tokenizers take 0.6 to 1.25 per character, and the factor may double or halve.
LETTER, BLANK, MARK, WIDE, RARE = 0.225, 0.13, 0.82, 1.0, 0.37

# T2: factors stay within these.
LEAST, MOST = 0.5, 2.0

# T3: without any report, a third on top.
UNREPORTED = (4, 3)

# How far a factor is thought to be off at first (one standard deviation), and how much doubt returns per response, so that a
# session that turns from prose to tables can still be followed.
FIRST_DOUBT = 0.3**2
DOUBT_PER_STEP = 1e-4

# The error a good estimate still has on one step: some tokens of wrapping and a part of the whole. Beyond 1.5 times this a report
# counts less, in proportion.
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


def plain_estimate(blocks: Iterable[Block], memo: Memo | None = None) -> int:
    """T2's rule alone. Savings are tested with it (T3): both sides of the comparison stay still while the factors learn."""
    return measure_all(blocks, memo).plain


def unreported_estimate(features: Features, calibration: Calibration = START) -> int:
    """T3: fullness where nothing was ever reported. The better estimate may only make it larger."""
    more, of = UNREPORTED
    return max(-(-features.plain * more // of), estimate(features, calibration))


def observe(calibration: Calibration, added: Features, reported: int) -> Calibration:
    """Learn from one response: `reported` is what the request grew by, `added` is what was put into it.

    Nothing is learned from a request that did not grow (its view was changed elsewhere) or that grew by images or documents,
    whose size is a guess.
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
    left = [doubt - pull * pull / total for doubt, pull in zip(doubts, pulls, strict=True)]
    return Calibration(_classes(factors), _classes(left), calibration.seen + 1)


def _spread(features: Features) -> Classes:
    return (
        features.letters * LETTER + features.blanks * BLANK,
        features.marks * MARK,
        features.wide * WIDE,
        features.rare * RARE,
        float(features.frame),
    )


def _product(left: Classes, right: Classes) -> float:
    """Written out: it is asked for several times before every call to a model."""
    a, b, c, d, e = left
    v, w, x, y, z = right
    return a * v + b * w + c * x + d * y + e * z


def _classes(values: list[float]) -> Classes:
    words, marks, wide, rare, frame = values
    return words, marks, wide, rare, frame
