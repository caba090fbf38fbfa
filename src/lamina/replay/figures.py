"""The figures of one policy: a row of the report, for one or many sessions, and its context size over the calls. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec

from ..core.blocks import Wire
from ..core.usage import Usage
from ..prompt.break_causes import SHARE, TOKENS
from ..providers.models import cost

# Figures that other programs read, by their names in `--json`; they come first.
RELIED_ON = ("compactions", "breaks", "regrets", "peak_tokens")
# Far more than the chart has columns.
MOST_POINTS = 4_096


class Comparison(msgspec.Struct, frozen=True):
    """A model's answers compared with the recorded ones."""

    calls: int = 0
    same: int = 0  # answers whose next action is the recorded one
    again: int = 0  # answers that repeat a read
    questions: int = 0  # answers that ask the user where the recording went to work
    failed: int = 0
    usage: Usage = Usage()
    usd: float = 0.0

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))

    def to_json(self) -> Wire:
        figures = {"asked": self.calls, "same_act": self.same, "read_again": self.again, "questions": self.questions}
        return {**figures, "failed": self.failed, "cost_usd": round(self.usd, 6)}


class ReplayFigures(msgspec.Struct, frozen=True):
    """The figures of a row. Tokens and cost include background calls; the other figures cover only the conversation's calls.

    Counts have the names and the order of `--json`. Adding rows takes the maximum of `peak_tokens` and the sum of all others.
    """

    usage: Usage = Usage()
    usd: float = 0.0
    comparison: Comparison = Comparison()  # answers of a real model, with --ask
    compactions: int = 0
    breaks: int = 0  # requests that do not start with the previous one
    regrets: int = 0  # files or results read again after they were removed from view
    peak_tokens: int = 0
    calls: int = 0
    side_calls: int = 0
    unpriced_calls: int = 0  # to models with unknown prices
    clearings: int = 0
    spills: int = 0
    expired: int = 0  # requests whose cache had expired after a pause
    repeated_reads: int = 0  # all repeated reads, in view or not
    over_window: int = 0  # requests longer than the model's window
    stopped_sessions: int = 0  # sessions that ended early because the window was full
    calls_not_played: int = 0  # calls missing from those sessions
    layer_failures: int = 0
    facts: int = 0  # probe facts checked, and those found in the context
    facts_in_context: int = 0
    files: int = 0  # files used so far, and those the context still names
    files_in_context: int = 0
    memory_tokens: int = 0  # tokens of the index and of recalled memories, each counted when added

    def __add__(self, other: ReplayFigures) -> ReplayFigures:
        both = ((name, getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)
        return ReplayFigures(**{name: max(one, two) if name == "peak_tokens" else one + two for name, one, two in both})

    @property
    def input_units(self) -> float:
        """Input cost in units of one uncached input token. Answers are excluded, since they are the same under every policy."""
        return cost("", msgspec.structs.replace(self.usage, output_tokens=0)).units

    @property
    def cost_usd(self) -> float | None:
        """The cost in dollars; None if no call has a known price."""
        return None if self.unpriced_calls and self.unpriced_calls >= self.calls + self.side_calls else self.usd

    def to_json(self) -> dict[str, Any]:
        """Return the figures for --json; those that other programs read come first."""
        usd = self.cost_usd
        counts = {name: getattr(self, name) for name in self.__struct_fields__[3:]}
        return {
            "input_units": round(self.input_units, 1),
            "cost_usd": round(usd, 6) if usd is not None else None,
            "input_tokens": self.usage.input_tokens,
            "cached_tokens": self.usage.cache_read,
            "written_tokens": self.usage.cache_write,
            "output_tokens": self.usage.output_tokens,
            **{name: counts.pop(name) for name in RELIED_ON},
            "written_1h_tokens": self.usage.cache_write_1h,
            **counts,
            **({"asked": self.comparison.to_json()} if self.comparison.calls or self.comparison.failed else {}),
        }


def bill_call(model: str, usage: Usage, *, side: bool = False, window: int = 0) -> ReplayFigures:
    usd = cost(model, usage).usd
    return ReplayFigures(
        usage=usage,
        usd=usd or 0.0,
        unpriced_calls=usd is None,
        calls=not side,
        side_calls=side,
        peak_tokens=0 if side else usage.prompt,
        over_window=not side and bool(window) and usage.prompt > window,
    )


def has_missed(usage: Usage, readable: int) -> bool:
    """Return whether a request read much less from the cache than the `readable` tokens the previous one left there."""
    lost = readable - usage.cache_read
    return lost > TOKENS and lost > readable * SHARE


class Curve:
    """Context size over the calls, in bounded memory: when full, neighbouring points are merged into their maximum."""

    def __init__(self) -> None:
        self.points: list[int] = []
        self.stride = 1  # calls in one point
        self._open: list[int] = []  # calls of the unfinished point

    def extend(self, sizes: Iterable[int]) -> None:
        for size in sizes:
            self._open.append(size)
            if len(self._open) == self.stride:
                self.points.append(max(self._open))
                self._open = []
                if len(self.points) == MOST_POINTS:
                    self.points = [max(self.points[at : at + 2]) for at in range(0, MOST_POINTS, 2)]
                    self.stride *= 2

    def shown(self, columns: int) -> list[int]:
        """Return at most `columns` points."""
        points = [*self.points, *([max(self._open)] if self._open else [])]
        if len(points) <= columns:
            return points
        edges = [at * len(points) // columns for at in range(columns + 1)]
        return [max(points[start:end]) for start, end in pairwise(edges)]
