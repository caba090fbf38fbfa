"""Thresholds: where warning, compaction and blocking stand in a window, and what that means for a person (T5, T6, T7, T9).

The invariant: warning <= autocompact < blocking < effective, for every window of at least `MIN_WINDOW` and every policy, however
its offsets are set. Smaller windows are refused: no summary and no answer fit into them.

How many tokens a model takes is asked of several sources, in an order that stands here (T4). What is known of models is a table passed
in, so that a new model needs no release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from ...core.errors import InputError
from ...core.policy import WindowPolicy

# The smallest window the order of the thresholds is promised for. Offsets shrink with the window (T9): 1,000 tokens leave 12
# between blocking and the end, below that they would run into each other.
MIN_WINDOW = 1_000

# T5: room for the answer is never more than this part of the window.
RESERVE_PART = 4
PCT_NAME = "LAMINA_AUTOCOMPACT_PCT"


class Thresholds(msgspec.Struct, frozen=True):
    effective: int
    warning: int
    error: int
    autocompact: int
    blocking: int
    scale: float  # T9: 1 from an effective window of 180,000 on, less below
    findings: tuple[str, ...] = ()
    window: int = 0  # what the model takes in all; room for an answer is left between `effective` and here

    def scaled(self, budget: int) -> int:
        """T9 for the token budgets of the other layers."""
        return max(1, int(budget * self.scale)) if budget else 0


class WindowState(msgspec.Struct, frozen=True):
    """T7."""

    percent_left: float
    above_warning: bool
    above_error: bool
    above_autocompact: bool
    at_blocking: bool


def thresholds(
    window: int, max_output: int | None, policy: WindowPolicy, pct: float | str | None = None, *, compact_in: int | None = None
) -> Thresholds:
    """`compact_in`: a smaller window for compaction alone; its trigger counts, never later than the real one's."""
    if window < MIN_WINDOW:
        raise InputError("window", f"{window:,} tokens are too few for a conversation", f"use at least {MIN_WINDOW:,}")
    reserve = min(policy.reserve, window // RESERVE_PART)
    if max_output is not None and max_output > 0:
        reserve = min(reserve, max_output)
    effective = window - max(0, reserve)
    scale = min(1.0, effective / policy.full_effective)

    def before_end(offset: int) -> int:
        return effective - math.floor(offset * scale)

    # Each is held under the next, and the lowest above nothing, so that a policy with odd offsets still gives an order.
    blocking = _within(before_end(policy.blocking_offset), 3, effective - 1)
    autocompact = _within(before_end(policy.autocompact_offset), 2, blocking - 1)
    if policy.autocompact_at is not None:
        autocompact = _within(policy.autocompact_at, 2, autocompact)
    share, findings = _percentage(pct)
    if share is not None:
        # Rounded first: 33.3 percent of 180,000 is 59,940 and not the 59,939.99 that binary fractions make of it.
        autocompact = _within(math.floor(round(effective * share / 100, 6)), 1, autocompact)
    if compact_in is not None:
        autocompact = min(autocompact, thresholds(min(window, compact_in), max_output, policy).autocompact)
    return Thresholds(
        effective=effective,
        warning=_within(before_end(policy.warning_offset), 1, autocompact),
        error=_within(before_end(policy.error_offset), 1, blocking),
        autocompact=autocompact,
        blocking=blocking,
        scale=scale,
        findings=findings,
        window=window,
    )


def state_of(count: int, at: Thresholds, *, autocompact_on: bool = True) -> WindowState:
    return WindowState(
        percent_left=max(0.0, (at.effective - count) / at.effective * 100),
        above_warning=count >= at.warning,
        above_error=count >= at.error,
        above_autocompact=autocompact_on and count >= at.autocompact,
        at_blocking=count >= at.blocking,
    )


def _within(value: int, least: int, most: int) -> int:
    return max(least, min(most, value))


def _percentage(pct: float | str | None) -> tuple[float | None, tuple[str, ...]]:
    if pct is None or pct == "":
        return None, ()
    try:
        share = float(pct)
    except ValueError:
        share = math.nan
    if 0 < share <= 100:
        return share, ()
    return None, (f"{PCT_NAME} is {str(pct)!r} and was ignored; give a number above 0 and up to 100.",)


LONG_WINDOW = 1_000_000
LONG_SUFFIX = "[1m]"
# SPEC's last resort; a policy brings its own.
DEFAULT_WINDOW = 200_000
ENVIRON_NAME = "LAMINA_CONTEXT_WINDOW"
SETTING_NAME = "contextWindow"

Source: TypeAlias = Literal["argument", "setting", "environment", "suffix", "model", "header", "server", "default"]


class ModelFacts(msgspec.Struct, frozen=True):
    window: int
    max_output: int | None = None
    needs_header: bool = False  # the window is there only for requests that carry the 1M beta header


class Window(msgspec.Struct, frozen=True):
    tokens: int
    source: Source
    max_output: int | None = None  # None where the model is not known
    findings: tuple[str, ...] = ()  # what was asked for and could not be used, one sentence each


def window_for(
    model: str,
    *,
    explicit: int | None = None,
    setting: int | None = None,
    environ_value: str | None = None,
    beta_1m: bool = False,
    known: Mapping[str, ModelFacts],
    stated: int | None = None,
    default: int = DEFAULT_WINDOW,
) -> Window:
    if explicit is not None and explicit < MIN_WINDOW:
        raise InputError("window", f"{explicit:,} tokens are too few for a conversation", f"use at least {MIN_WINDOW:,}")
    facts = facts_of(model, known)
    findings: list[str] = []
    tokens, source = _asked_for(explicit, setting, environ_value, findings) or _from_model(model, facts, beta_1m, stated, default)
    return Window(tokens, source, facts.max_output if facts else None, tuple(findings))


def facts_of(model: str, known: Mapping[str, ModelFacts]) -> ModelFacts | None:
    """The model's own line, or that of its name without the date of a snapshot."""
    name = base_name(model)
    if name in known:
        return known[name]
    stem, _, tail = name.replace("@", "-").rpartition("-")
    dated = tail == "latest" or (len(tail) == len("20250101") and tail.isdigit())
    return known.get(stem) if dated else None


def base_name(model: str) -> str:
    """The name the provider takes: without the suffix."""
    return model[: -len(LONG_SUFFIX)] if model.lower().endswith(LONG_SUFFIX) else model


def _asked_for(
    explicit: int | None, setting: int | None, environ_value: str | None, findings: list[str]
) -> tuple[int, Source] | None:
    if explicit is not None:
        return explicit, "argument"
    if (tokens := _usable(setting, SETTING_NAME, findings)) is not None:
        return tokens, "setting"
    if (tokens := _usable(environ_value, ENVIRON_NAME, findings)) is not None:
        return tokens, "environment"
    return None


def _from_model(model: str, facts: ModelFacts | None, beta_1m: bool, stated: int | None, default: int) -> tuple[int, Source]:
    if model.lower().endswith(LONG_SUFFIX):
        return LONG_WINDOW, "suffix"
    if facts is not None and not facts.needs_header:
        return facts.window, "model"
    if beta_1m:
        return LONG_WINDOW, "header"
    if stated is not None and stated >= MIN_WINDOW:
        return stated, "server"
    return default, "default"


def _usable(value: int | str | None, name: str, findings: list[str]) -> int | None:
    if value is None or value == "":
        return None
    try:
        tokens = int(value)
    except ValueError:
        tokens = 0
    if tokens >= MIN_WINDOW:
        return tokens
    findings.append(f"{name} is {str(value)!r} and was ignored; give a whole number of tokens of at least {MIN_WINDOW:,}.")
    return None
