"""One session request by request: the recording beside a policy. Pure; the terminal, the HTML page and --json show the same.

A line of the table is one recorded answer. A request that only one side made (an answer without usage, a request that ended a session
early) leaves the other side empty. The costs of a policy's lines add up to the cost of its row, in dollars or in units.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..core.settings import Billing
from ..language.wording import counted
from .figures import UNEXPLAINED, ReplayedSession, RequestPoint
from .report import ReplayReport
from .table import named_rows, short
from .variants import RECORDED

# Headings of the recorded request; the policy's name heads its own request.
_COUNTS: dict[Billing, tuple[str, ...]] = {
    "list": ("read", "written", "cost"),
    "subscription": ("read", "written", "units"),
}
EMPTY = "–"


class RequestLine(NamedTuple):
    number: int
    recorded: RequestPoint | None
    replayed: RequestPoint | None

    @property
    def time(self) -> float:
        return next(point.time for point in (self.recorded, self.replayed) if point is not None)


class RequestTable(NamedTuple):
    """A session under one policy."""

    session: ReplayedSession
    row: str
    billing: Billing = "list"

    @property
    def columns(self) -> tuple[str, ...]:
        counts = _COUNTS[self.billing]
        return ("request", "time", RECORDED, *counts, self.row, *counts, "other calls", "hidden", "what happened")

    def lines(self) -> list[RequestLine]:
        recorded, replayed = ({point.step: point for point in self.session.points.get(row, ())} for row in (RECORDED, self.row))
        steps = sorted({*recorded, *replayed})
        return [RequestLine(number, recorded.get(step), replayed.get(step)) for number, step in enumerate(steps, 1)]

    def cells(self) -> Iterator[list[str]]:
        """Yield one cell per column for each request."""
        recorded, replayed = (self._unpriced(row) for row in (RECORDED, self.row))
        for line in self.lines():
            ours = line.replayed
            yield [
                f"{line.number:,}",
                _clock(line.time),
                *self._sizes(line.recorded, unpriced=recorded),
                *self._sizes(ours, unpriced=replayed),
                self._shown(self._extra(ours)) if ours is not None and round(self._extra(ours), 6) else "",
                f"{ours.quotes_hidden:,}" if ours is not None and ours.quotes_hidden else "",
                "; ".join(self._happened(line)),
            ]

    def total(self) -> str:
        """Say what the requests cost on each side, and what the recorded side has beside them."""
        recorded, replayed = (self.session.points.get(row, ()) for row in (RECORDED, self.row))
        here, taken = sum(map(self._cost, recorded)), -sum(map(self._extra, recorded))
        whole, shown = self._whole(RECORDED), self._shown
        beside = whole - here + taken
        parts = [f"{self._known(RECORDED, here)} for these requests"]
        parts += [f"less {shown(taken)} for cache breaks without a cause"] if taken else []
        parts += [f"{shown(beside)} for calls that are not listed (summaries)"] if round(beside, 6) else []
        ours, extra = sum(map(self._cost, replayed)), sum(map(self._extra, replayed))
        units = "" if self.billing == "list" else "In units. "
        return (
            f"{units}Recorded: {', '.join(parts)}, in all {self._known(RECORDED, whole)}. "
            f"{self.row}: {self._known(self.row, ours)} for these requests, {shown(extra)} for other calls, "
            f"in all {self._known(self.row, self._whole(self.row))}."
        )

    def _unpriced(self, row: str) -> bool:
        """Whether some calls of the row have an unknown price, where that matters."""
        return self.billing == "list" and bool(self.session.figures[row].unpriced_calls)

    def _known(self, row: str, cost: float) -> str:
        """Return a sum, which lacks the calls with unknown prices."""
        if not self._unpriced(row):
            return self._shown(cost)
        return f"at least {self._shown(cost)}" if cost else "an unknown amount"

    def _cost(self, point: RequestPoint) -> float:
        return point.usd if self.billing == "list" else point.units

    def _extra(self, point: RequestPoint) -> float:
        return point.extra_usd if self.billing == "list" else point.extra_units

    def _whole(self, row: str) -> float:
        figures = self.session.figures[row]
        return figures.usd if self.billing == "list" else figures.units

    def _shown(self, cost: float) -> str:
        if self.billing == "subscription":
            return f"{'-' if cost < 0 else ''}{short(abs(cost))}"
        return f"${cost:,.4f}" if abs(cost) < 1 else f"${cost:,.2f}"

    def _sizes(self, point: RequestPoint | None, *, unpriced: bool) -> list[str]:
        if point is None:
            return [EMPTY] * (1 + len(_COUNTS[self.billing]))
        cost = "?" if unpriced and not point.usd else self._shown(self._cost(point))
        return [short(point.tokens), short(point.usage.cache_read), short(point.usage.cache_write), cost]

    def _happened(self, line: RequestLine) -> Iterator[str]:
        """Say what broke or missed the cache on each side, and what had to be fetched again."""
        theirs, ours = line.recorded, line.replayed
        if theirs is not None and (theirs.decision or theirs.miss):
            taken = f", {self._shown(-self._extra(theirs))} not counted" if theirs.miss == UNEXPLAINED else ""
            words = "removed messages" if theirs.decision else f"{theirs.miss} cache miss"
            yield f"recorded: {words}{taken}"
        if ours is not None and (ours.decision or ours.miss):
            yield ours.decision or f"{ours.miss} cache miss"
        if ours is not None and ours.fetched:
            yield f"{counted(ours.fetched, 'text')} fetched again"


def request_tables(report: ReplayReport, billing: Billing = "list") -> list[RequestTable]:
    """Return the tables of all sessions with a chart, the dearest first, for the settings in force and each policy."""
    shown = sorted((one for one in report.played if one.points), key=lambda one: -one.cost)
    rows = [row for row in named_rows(report) if row != RECORDED]
    return [RequestTable(session, row, billing) for session in shown for row in rows]


def requests_json(report: ReplayReport) -> list[dict[str, Any]]:
    """Return the same for --json, with all rows of a session together."""
    made = []
    for session in report.played:
        steps = sorted({point.step for points in session.points.values() for point in points})
        by_row = {row: {point.step: point for point in points} for row, points in session.points.items()}
        unpriced = {row for row, figures in session.figures.items() if figures.unpriced_calls}
        lines = [
            report.with_aliases(
                {row: _json(points[step], row in unpriced) if step in points else None for row, points in by_row.items()}
            )
            for step in steps
        ]
        made += [{"session": session.name, "requests": lines}] if lines else []
    return made


def _json(point: RequestPoint, unpriced: bool) -> dict[str, Any]:
    return {
        "time": datetime.fromtimestamp(point.time, UTC).isoformat() if point.time else None,
        "context_tokens": point.tokens,
        "cached_tokens": point.usage.cache_read,
        "written_tokens": point.usage.cache_write,
        "cost_usd": round(point.usd, 6) if point.usd or not unpriced else None,
        "other_calls_usd": round(point.extra_usd, 6),
        "decision": point.decision,
        "cache_miss": point.miss,
        "fetched": point.fetched,
        "quotes_hidden": point.quotes_hidden,
        "hidden": list(point.hidden),
    }


def _clock(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%m-%d %H:%M:%S") if time else EMPTY
