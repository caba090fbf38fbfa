"""The size of a model's window, and its thresholds for warning, compaction and blocking.

Invariant: warning <= autocompact < blocking < effective, for every window of at least `MIN_WINDOW` and every policy, whatever its
offsets. Smaller windows are refused, because no summary and no answer fit into them.

The size of a window comes from the first of several sources that knows it: argument, setting, environment, model name, model
table, default. The model table is passed in, so a new model needs no release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from ...core.errors import InputError
from ...core.policy import WindowPolicy
from ...language.wording import counted

# The smallest window for which the order of the thresholds is guaranteed. Offsets shrink with the window: 1,000 tokens leave 12
# between blocking and the end; in smaller windows the thresholds would coincide.
MIN_WINDOW = 1_000

# The room reserved for the answer is at most the window divided by this.
RESERVE_PART = 4
PCT_NAME = "LAMINA_AUTOCOMPACT_PCT"


class Thresholds(msgspec.Struct, frozen=True):
    effective: int
    warning: int
    error: int
    autocompact: int
    blocking: int
    scale: float  # 1 for an effective window of 180,000 or more, less below
    findings: tuple[str, ...] = ()
    window: int = 0  # the model's full window; the room between `effective` and this is reserved for the answer
    latest: int = 0  # the window's own threshold for compaction; `autocompact` may be set earlier

    def scaled(self, budget: int) -> int:
        """Scale a token budget of another layer to the size of this window."""
        return max(1, int(budget * self.scale)) if budget else 0

    def starts_at(self, base: int) -> int:
        """Return the count at which automatic compaction starts. `base` tokens of the request can never be removed.

        A threshold that is set earlier than the window's own counts the conversation without them. Otherwise a large base would
        fill the window again at once, after every compaction."""
        return max(self.autocompact, min(self.latest, self.autocompact + base))


class WindowState(msgspec.Struct, frozen=True):
    """How full the window is and where its thresholds are, in tokens."""

    tokens: int  # size of the next request: the last reported usage plus an estimate of what came since
    margin: int  # added before a threshold is compared, until a server reports usage
    window: int  # the model's window
    limit: int  # the window without the room that is reserved for the answer
    warning: int
    error: int
    compacts_at: int | None  # None: nothing compacts by itself
    blocking: int  # no message is accepted from here on

    @property
    def reserve(self) -> int:
        """The room reserved for the answer."""
        return self.window - self.limit

    @property
    def percent_left(self) -> float:
        """Percentage of the limit that is free."""
        return max(0.0, (self.limit - self.tokens - self.margin) / self.limit * 100)

    @property
    def above_warning(self) -> bool:
        """Whether the window is filling up."""
        return self.tokens + self.margin >= self.warning

    @property
    def above_error(self) -> bool:
        """Whether it is nearly full."""
        return self.tokens + self.margin >= self.error

    @property
    def above_autocompact(self) -> bool:
        """Whether a compaction is due."""
        return self.compacts_at is not None and self.tokens + self.margin >= self.compacts_at

    @property
    def at_blocking(self) -> bool:
        """Whether no message is accepted."""
        return self.tokens + self.margin >= self.blocking


def thresholds(
    window: int, max_output: int | None, policy: WindowPolicy, pct: float | str | None = None, *, compact_in: int | None = None
) -> Thresholds:
    """Return the thresholds for a window. `compact_in` sets a smaller window for compaction alone, so that it starts earlier."""
    if window < MIN_WINDOW:
        raise _too_small(window)
    reserve = min(policy.reserve, window // RESERVE_PART)
    if max_output is not None and max_output > 0:
        reserve = min(reserve, max_output)
    effective = window - max(0, reserve)
    scale = min(1.0, effective / policy.full_effective)

    def before_end(offset: int) -> int:
        return effective - math.floor(offset * scale)

    # Each threshold is kept below the next one and above 0, so that the order holds even for a policy with odd offsets.
    blocking = _within(before_end(policy.blocking_offset), 3, effective - 1)
    autocompact = latest = _within(before_end(policy.autocompact_offset), 2, blocking - 1)
    if policy.autocompact_at is not None:
        autocompact = _within(math.floor(policy.autocompact_at * scale), 2, autocompact)
    share, findings = _percentage(pct)
    if share is not None:
        # Round first: 33.3 percent of 180,000 is 59,940, but floating point yields 59,939.99.
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
        latest=latest,
    )


def _too_small(window: int) -> InputError:
    problem = f"a window of {counted(window, 'token')} is too small for a conversation"
    return InputError("window", problem, f"use at least {MIN_WINDOW:,}")


def state_of(tokens: int, at: Thresholds, *, margin: int = 0, autocompact_on: bool = True, base: int = 0) -> WindowState:
    """Return the state of a window with so many tokens, of which `base` can never be removed."""
    compacts_at = at.starts_at(base) if autocompact_on else None
    return WindowState(tokens, margin, at.window, at.effective, at.warning, at.error, compacts_at, at.blocking)


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
    return None, (f"Ignored {PCT_NAME}={str(pct)!r}: use a number above 0 and up to 100.",)


LONG_WINDOW = 1_000_000
LONG_SUFFIX = "[1m]"
# Used if the policy sets no default.
DEFAULT_WINDOW = 200_000
ENVIRON_NAME = "LAMINA_CONTEXT_WINDOW"
SETTING_NAME = "contextWindow"

Source: TypeAlias = Literal[
    "argument", "setting", "environment", "suffix", "model", "header", "server", "default", "record", "requests"
]


class ModelFacts(msgspec.Struct, frozen=True):
    window: int
    max_output: int | None = None
    needs_header: bool = False  # the window applies only to requests with the 1M beta header


class Window(msgspec.Struct, frozen=True):
    tokens: int
    source: Source
    max_output: int | None = None  # None if the model is unknown
    findings: tuple[str, ...] = ()  # one sentence for each setting that was ignored


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
        raise _too_small(explicit)
    facts = facts_of(model, known)
    findings: list[str] = []
    tokens, source = _asked_for(explicit, setting, environ_value, findings) or _from_model(model, facts, beta_1m, stated, default)
    return Window(tokens, source, facts.max_output if facts else None, tuple(findings))


def facts_of(model: str, known: Mapping[str, ModelFacts]) -> ModelFacts | None:
    """Return the facts of a model, by its name with or without a snapshot date."""
    name = base_name(model)
    if name in known:
        return known[name]
    stem, _, tail = name.replace("@", "-").rpartition("-")
    dated = tail == "latest" or (len(tail) == len("20250101") and tail.isdigit())
    return known.get(stem) if dated else None


def base_name(model: str) -> str:
    """Return the model's name without the `[1m]` suffix, as the provider expects it."""
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
    findings.append(f"Ignored {name}={str(value)!r}: use a whole number of at least {MIN_WINDOW:,} tokens.")
    return None
