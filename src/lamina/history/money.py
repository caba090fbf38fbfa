"""The costs of sessions by day, project, agent and model, over all sources.

The figures come from the index of sessions, so a second look reads only what was appended. Days are those of the local time zone.
Dollars are at list price, or what an agent recorded. Calls of unknown price are counted and have no dollars. An answer counts once:
a session that begins as a copy of another one costs what it adds, and Lamina's sessions contain the costs of their subagents.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

import msgspec

from ..core.settings import Settings
from ..core.usage import Usage
from ..disk.settings_files import lamina_home
from .catalogue import IndexedFile, Tell, scan_whole, with_catalogue
from .copies import older_files
from .places import Origin
from .scan import Costs, Paid
from .sessions import SourceSession, follow_sessions, read_session

MOST_KEPT = 500


class DayMoney(msgspec.Struct, frozen=True):
    """The calls of one model for one project and agent on one day. An empty model stands for calls that name none."""

    day: str
    project: str
    origin: Origin
    model: str
    usage: Usage
    usd_read: float
    usd_written: float  # what was not read: written and fresh
    usd_output: float
    calls: int
    unpriced: int  # calls of unknown price, without dollars
    breaks: int  # calls that did not find in the cache what the one before had left there
    written_again: int  # the tokens of these breaks

    @property
    def usd(self) -> float:
        return self.usd_read + self.usd_written + self.usd_output


class PaidSession(NamedTuple):
    """A session in the index with its costs."""

    row: IndexedFile
    session: SourceSession
    costs: Costs


def money_by_day(
    settings: Settings,
    environ: Mapping[str, str] | None = None,
    *,
    since: str = "",
    unread: list[str] | None = None,
    tell: Tell = lambda done, of: None,
) -> list[DayMoney]:
    """Return the costs of all sessions and their subagents, from the day `since` on, in order of the days."""
    variables = os.environ if environ is None else environ
    trouble = [] if unread is None else unread

    def summed(rows: Iterable[IndexedFile]) -> list[DayMoney]:
        found = [PaidSession(row, *read_session(row)) for row in rows]
        return sum_money(found, without_copies(found, {}), since=since)

    return with_catalogue(
        lamina_home(variables), lambda index: summed(follow_sessions(index, settings, variables, trouble, tell))
    )


def sum_money(found: Iterable[PaidSession], others: Mapping[str, Costs], *, since: str = "") -> list[DayMoney]:
    """Return the costs from the day `since` on, in order of the days. `others` has the costs of files that repeat another file."""
    sums: dict[tuple[str, str, Origin, str], Paid] = {}
    for _, session, costs in found:
        for half, by in others.get(session.path, costs).items():
            if (day := local_day(half)) < since:
                continue
            for model, paid in by.items():
                key = (day, session.project, session.origin, model)
                sums[key] = sums[key] + paid if key in sums else paid
    return [DayMoney(*key, *(getattr(paid, name) for name in paid.__struct_fields__)) for key, paid in sorted(sums.items())]


def without_copies(found: Sequence[PaidSession], kept: dict[object, Costs]) -> dict[str, Costs]:
    """Return what the files cost that repeat another one, without what they repeat, by path.

    A resumed session may begin as a copy of its first part. The oldest file counts as the original. `kept` holds what was found
    before, for unchanged files.
    """
    if len(kept) > MOST_KEPT:  # one for each version of a copy
        kept.clear()
    ids = {one.session.id for one in found}
    by_path = {one.session.path: one for one in found}
    others: dict[str, Costs] = {
        path: {} for path, one in by_path.items() if one.session.origin == "lamina" and one.session.parent in ids
    }
    for path, older in older_files(one.session for path, one in by_path.items() if path not in others).items():
        copy, before = by_path[path], [by_path[file] for file in older]
        key = tuple((one.row.path, one.row.stamp) for one in (*before, copy))
        if key not in kept:
            with suppress(OSError):
                known = set[str]().union(*(one.row.scan.answers for one in before))
                kept[key] = scan_whole(copy.row.origin, path, parent=copy.session.parent, elsewhere=known).money()
        others[path] = kept.get(key, copy.costs)
    return others


@lru_cache(maxsize=10_000)
def local_day(half: str) -> str:
    """Return the day of a half hour in the local time zone."""
    try:
        return str(datetime.fromisoformat(half).replace(tzinfo=UTC).astimezone().date())
    except (ValueError, OverflowError):
        return ""
