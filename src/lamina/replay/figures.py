"""What one policy comes to: a row of the report, for one session or for many, and the size of its context over the calls. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec

from ..core.blocks import Wire
from ..core.usage import Usage
from ..prompt.break_causes import SHARE, TOKENS
from ..providers.models import cost

# Figures that others rely on, by the names they have in `--json`.
RELIED_ON = ("compactions", "breaks", "regrets", "peak_tokens")
# Far more than a picture has columns.
MOST_POINTS = 4_096


class Comparison(msgspec.Struct, frozen=True):
    """What a model did where it was asked, held against the recording."""

    calls: int = 0
    same: int = 0  # the next act is the recorded one
    again: int = 0  # answers that read again what had been read
    questions: int = 0  # answers that ask the person where the recording went to work
    failed: int = 0
    usage: Usage = Usage()
    usd: float = 0.0

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))

    def to_json(self) -> Wire:
        figures = {"asked": self.calls, "same_act": self.same, "read_again": self.again, "questions": self.questions}
        return {**figures, "failed": self.failed, "cost_usd": round(self.usd, 6)}


class ReplayFigures(msgspec.Struct, frozen=True):
    """Tokens and money count the conversation's calls and those beside it; the other figures only the former.

    Counts have the names and the order of `--json`. Of `peak_tokens` the greatest counts; all others add up.
    """

    usage: Usage = Usage()
    usd: float = 0.0
    comparison: Comparison = Comparison()  # what a provider answered, where one was asked
    compactions: int = 0
    breaks: int = 0  # requests that did not start with the one before
    regrets: int = 0  # a file or a result read again after it was taken out of view
    peak_tokens: int = 0
    calls: int = 0
    side_calls: int = 0
    unpriced_calls: int = 0  # of models whose prices are not known
    clearings: int = 0
    spills: int = 0
    expired: int = 0  # requests that found the cache gone after a pause
    repeated_reads: int = 0  # read again at all, in view or not
    over_window: int = 0  # requests longer than the model's window
    stopped_sessions: int = 0  # that ended early because the window was full
    calls_not_played: int = 0  # those they lack
    layer_failures: int = 0  # times a layer stepped aside
    facts: int = 0  # probe facts looked for, and those that stood in the context
    facts_in_context: int = 0
    files: int = 0  # files used so far, and those the context still named
    files_in_context: int = 0
    memory_tokens: int = 0  # of the index and of what recall brought, each counted when it was put in

    def __add__(self, other: ReplayFigures) -> ReplayFigures:
        both = ((name, getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)
        return ReplayFigures(**{name: max(one, two) if name == "peak_tokens" else one + two for name, one, two in both})

    @property
    def input_units(self) -> float:
        """What was sent, in prices of one uncached input token. Answers are not in it: they are the same whatever the policy."""
        return cost("", msgspec.structs.replace(self.usage, output_tokens=0)).units

    @property
    def cost_usd(self) -> float | None:
        """None where no call has a known price."""
        return None if self.unpriced_calls and self.unpriced_calls >= self.calls + self.side_calls else self.usd

    def to_json(self) -> dict[str, Any]:
        """What others rely on stands first."""
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
    """Whether a request found much less in the cache than the `readable` tokens that the one before left there."""
    lost = readable - usage.cache_read
    return lost > TOKENS and lost > readable * SHARE


class Curve:
    """The size of the context over many calls, in bounded memory: where there are too many, two become one, and the greater is kept."""

    def __init__(self) -> None:
        self.points: list[int] = []
        self.stride = 1  # calls in one point
        self._open: list[int] = []  # the calls of the point under way

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
        """At most so many points."""
        points = [*self.points, *([max(self._open)] if self._open else [])]
        if len(points) <= columns:
            return points
        edges = [at * len(points) // columns for at in range(columns + 1)]
        return [max(points[start:end]) for start, end in pairwise(edges)]
