"""The period and the project that an address of the overview asks for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import NamedTuple

from starlette.requests import Request

from ..history.money import local_day
from ..history.scan import half_hour
from ..history.sessions import SourceSession
from .numbers import day as date_words
from .site import Site
from .words import Words

DAYS = {"7": 7, "30": 30, "90": 90}
EARLIEST = date(2000, 1, 1)


class Period(NamedTuple):
    """The period and the project of an address. Days are those of the local time zone."""

    days: tuple[str, ...]
    project: str
    until: str  # the last day, if it is not today

    @classmethod
    def of(cls, site: Site, request: Request) -> Period:
        count = DAYS.get(request.query_params.get("days", ""), 7)
        today = datetime.fromtimestamp(site.clock()).date()
        try:
            last = min(today, max(EARLIEST, date.fromisoformat(request.query_params.get("until", ""))))
        except ValueError:
            last = today
        days = tuple(str(last - timedelta(days=back)) for back in range(count - 1, -1, -1))
        return cls(days, request.query_params.get("project", ""), "" if last == today else str(last))

    def name(self, words: Words) -> str:
        if not self.until:
            return words("Last {n} day|Last {n} days", n=len(self.days))
        return words("{n} days up to {day}", n=len(self.days), day=date_words(words, datetime.fromisoformat(self.until)))

    def sessions(self, every: Iterable[SourceSession]) -> list[SourceSession]:
        """Return the sessions of the project that were open within the period."""
        first, last = self.start, self.days[-1]
        wanted = [one for one in every if self.project in ("", one.project) and one.last_active >= first]
        return [one for one in wanted if not self.until or local_day(half_hour(one.started)) <= last]

    @property
    def start(self) -> float:
        return datetime.fromisoformat(self.days[0]).timestamp()
