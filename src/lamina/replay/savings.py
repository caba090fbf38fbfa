"""Compute what each policy would have saved, compared with the recording. Pure.

A policy is compared over the sessions that it can finish and that report their usage. Money is compared where every call has a
known price; if no session has, input units are. Under a subscription all tokens are compared, in units.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, Literal, NamedTuple, TypeAlias

from ..core.settings import Billing
from ..language.wording import counted
from .figures import ReplayedSession, ReplayFigures
from .variants import RECORDED

# What is compared: one of the figures of a row.
Unit: TypeAlias = Literal["usd", "input_units", "units"]
# A session that costs this much more is called dearer; less is noise of the token count.
DEARER = 1.02


class Saving(NamedTuple):
    """The costs of the compared sessions under a policy and as recorded."""

    costs: tuple[float, ...]
    recorded: tuple[float, ...]
    unit: Unit

    @property
    def share(self) -> float:
        """The saved share of the recorded cost; negative if the policy costs more."""
        return 1 - sum(self.costs) / sum(self.recorded)

    @property
    def median(self) -> float:
        return median(1 - ours / theirs for ours, theirs in zip(self.costs, self.recorded, strict=True))

    @property
    def dearer(self) -> int:
        return sum(ours > DEARER * theirs for ours, theirs in zip(self.costs, self.recorded, strict=True))

    def to_json(self) -> dict[str, Any]:
        return {
            "compared_sessions": len(self.costs),
            "saved_percent": round(100 * self.share, 2),
            "median_saved_percent": round(100 * self.median, 2),
            "dearer_sessions": self.dearer,
        }


def saving(sessions: Sequence[ReplayedSession], row: str, billing: Billing = "list") -> Saving | None:
    """Compare a row with the recording; None if no session can be compared."""
    comparable = [one for one in sessions if _reported(one) and not one.figures[row].stopped_sessions]
    dollars = comparable if billing == "list" else []
    priced = [one for one in dollars if _priced(one.figures[row]) and _priced(one.figures[RECORDED])]
    unit: Unit = "units" if billing == "subscription" else "usd" if priced else "input_units"
    both = [(getattr(one.figures[row], unit), getattr(one.figures[RECORDED], unit)) for one in priced or comparable]
    paid = [(ours, theirs) for ours, theirs in both if theirs > 0]
    if not paid:
        return None
    return Saving(tuple(ours for ours, _ in paid), tuple(theirs for _, theirs in paid), unit)


def _reported(session: ReplayedSession) -> bool:
    return session.figures[RECORDED].usage.prompt > 0


def _priced(figures: ReplayFigures) -> bool:
    return not figures.unpriced_calls


def headline(row: str, saved: Saving, billing: Billing = "list") -> str:
    """Return the sentence that says what a policy would have cost or used."""
    ours, theirs = sum(saved.costs), sum(saved.recorded)
    change = f"{abs(saved.share):.0%} {'less' if saved.share >= 0 else 'more'}"
    amounts = f"{ours:,.0f} {saved.unit.replace('_', ' ')} instead of {theirs:,.0f}"
    if saved.unit == "usd":
        amounts = f"${ours:,.2f} instead of ${theirs:,.2f}"
    middle = f"{abs(saved.median):.0%} {'less' if saved.median >= 0 else 'more'}"
    spread = f"the median session {middle}, {saved.dearer:,} of {counted(len(saved.costs), 'session')} over 2% more"
    return f"Lamina with {row} would have {'cost' if billing == 'list' else 'used'} {change}: {amounts} ({spread})."
