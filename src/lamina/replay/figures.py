"""The figures of one policy: a row of the report, for one or many sessions. Pure."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from ..core.blocks import Wire
from ..core.usage import Usage
from ..prompt.break_causes import SHARE, TOKENS
from ..providers.amounts import units_of
from ..providers.models import FREE, cost

# Figures that other programs read, by their names in `--json`; they come first.
RELIED_ON = ("compactions", "breaks", "regrets", "peak_tokens")


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
    unexplained_usd: float = 0.0  # cost of recorded cache breaks without a cause, which is in no row
    unrecorded_usd: float = 0.0  # estimated cost of recorded summaries whose calls are not in the transcript
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
    extra_output_tokens: int = 0  # output of side calls and of calls that fetch text again
    fetched: int = 0  # texts that an Edit or Read needed and that had left the context; each is fetched again and paid
    quotes: int = 0  # results that answers quote, and those of which a quoted line was not in the request
    quotes_hidden: int = 0
    unexplained_breaks: int = 0  # recorded cache breaks within five minutes without a cause
    unrecorded_calls: int = 0  # recorded summaries whose calls are not in the transcript
    facts: int = 0  # probe facts checked, and those found in the context
    facts_in_context: int = 0
    files: int = 0  # files used so far, and those the context still names
    files_in_context: int = 0
    memory_tokens: int = 0  # tokens of the index and of recalled memories, each counted when added

    def __add__(self, other: ReplayFigures) -> ReplayFigures:
        both = ((name, getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)
        return ReplayFigures(**{name: max(one, two) if name == "peak_tokens" else one + two for name, one, two in both})

    def finished(self) -> ReplayFigures:
        """Return what counts in a sum: of a session that ended early, only that it did."""
        early = ReplayFigures(stopped_sessions=self.stopped_sessions, calls_not_played=self.calls_not_played)
        return early if self.stopped_sessions else self

    @property
    def input_units(self) -> float:
        """Cost in units of one uncached input token. Recorded answers are excluded: they are the same under every policy."""
        return units_of(msgspec.structs.replace(self.usage, output_tokens=self.extra_output_tokens))

    @property
    def units(self) -> float:
        """Use in the same units, with the recorded answers: what a subscription pays for."""
        return units_of(self.usage)

    @property
    def cost_usd(self) -> float | None:
        """The cost in dollars; None if no call has a known price."""
        return None if self.unpriced_calls and self.unpriced_calls >= self.calls + self.side_calls else self.usd

    def to_json(self) -> dict[str, Any]:
        """Return the figures for --json; those that other programs read come first."""
        usd = self.cost_usd
        counts = {name: getattr(self, name) for name in self.__struct_fields__[5:]}
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
            "unexplained_usd": round(self.unexplained_usd, 6),
            "unrecorded_usd": round(self.unrecorded_usd, 6),
            **({"asked": self.comparison.to_json()} if self.comparison.calls or self.comparison.failed else {}),
        }


class RequestPoint(NamedTuple):
    """One request of a session, for its chart and its table."""

    time: float  # seconds
    tokens: int
    decision: str = ""  # why it does not start with the previous one
    hidden: tuple[str, ...] = ()  # examples of what its answer quotes and it did not contain
    step: int = 0  # of its answer in the script, the same in every row
    usage: Usage = Usage()
    usd: float = 0.0
    extra_usd: float = 0.0  # of all other calls since the previous request: notes, summaries, text fetched again
    miss: str = ""  # why it read little from the cache, if no decision explains it: EXPIRED or UNEXPLAINED
    quotes_hidden: int = 0
    fetched: int = 0
    extra_units: float = 0.0  # those of `extra_usd`, in units

    @property
    def units(self) -> float:
        return units_of(self.usage)


EXPIRED, UNEXPLAINED = "expired", "unexplained"


class ReplayedSession(msgspec.Struct, frozen=True):
    """One session under every policy."""

    name: str  # of its file
    calls: int
    figures: dict[str, ReplayFigures]
    points: dict[str, tuple[RequestPoint, ...]] = {}  # only for sessions with a chart

    @property
    def cost(self) -> float:
        """The greatest cost under any policy; sessions without prices come after all others."""
        return max(figures.usd or figures.input_units * 1e-9 for figures in self.figures.values())


def bill_call(model: str, usage: Usage, *, side: bool = False, window: int = 0) -> ReplayFigures:
    # What a model would have cost is unknown for a recording of the offline stand-in.
    usd = None if model == FREE else cost(model, usage).usd
    return ReplayFigures(
        usage=usage,
        usd=usd or 0.0,
        unpriced_calls=usd is None,
        calls=not side,
        side_calls=side,
        extra_output_tokens=usage.output_tokens if side else 0,
        peak_tokens=0 if side else usage.prompt,
        over_window=not side and bool(window) and usage.prompt > window,
    )


def bill_extra(model: str, usage: Usage) -> ReplayFigures:
    """Bill a call that the recording does not have: it fetches text again."""
    return msgspec.structs.replace(bill_call(model, usage), calls=0, extra_output_tokens=usage.output_tokens)


def usage_cost(model: str, usage: Usage) -> float:
    return cost(model, usage).usd or 0.0


def has_missed(usage: Usage, readable: int) -> bool:
    """Return whether a request read much less from the cache than the `readable` tokens the previous one left there."""
    lost = readable - usage.cache_read
    return lost > TOKENS and lost > readable * SHARE
