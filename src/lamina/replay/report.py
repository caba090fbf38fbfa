"""The report of a replay: every session's figures under every policy, and their sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..language.text import Text
from .agreement import Disagreement, disagreement
from .figures import ReplayedSession, ReplayFigures
from .savings import saving
from .variants import APPEND, LAMINA, RECORDED

if TYPE_CHECKING:  # a report can be read and shown without what plays a session
    from .play import Played

# Sessions with a chart, the dearest ones: a page with more is slow to open, and small sessions have little to show.
MOST_CHARTS = 24


class ReplayReport(msgspec.Struct):
    """The rows of all sessions and their sums. A session that a policy cannot finish is not in that policy's sum."""

    sessions: int = 0
    calls: int = 0
    origins: dict[str, int] = msgspec.field(default_factory=dict)  # sessions by the agent that wrote them
    figures: dict[str, ReplayFigures] = msgspec.field(default_factory=dict)
    played: list[ReplayedSession] = msgspec.field(default_factory=list)
    skipped: list[Text] = msgspec.field(default_factory=list)
    damaged: list[Text] = msgspec.field(default_factory=list)  # files that could be read only in part
    silent: int = 0  # sessions without reported usage
    disagreements: dict[str, Disagreement] = msgspec.field(
        default_factory=dict
    )  # sessions whose replay differs from the recording

    def take(self, name: str, rows: Mapping[str, Played], calls: int, origin: str = "lamina") -> None:
        """Add the rows of one session with `calls` calls, which the agent `origin` wrote."""
        self.sessions += 1
        self.origins[origin] = self.origins.get(origin, 0) + 1
        self.calls += calls
        self.silent += not rows[RECORDED].points
        for row, played in rows.items():
            self.figures[row] = self.figures.get(row, ReplayFigures()) + played.figures.finished()
        if APPEND in rows and (found := disagreement(rows[RECORDED], rows[APPEND])) is not None:
            self.disagreements[name] = found
        figures = {row: played.figures for row, played in rows.items()}
        self.played.append(ReplayedSession(name, calls, figures, {row: played.points for row, played in rows.items()}))
        self._keep_dearest_charts()

    def copied(self) -> ReplayReport:
        """Return a report that can grow without changing this one."""
        lists = {name: list(getattr(self, name)) for name in ("played", "skipped", "damaged")}
        tables = {name: dict(getattr(self, name)) for name in ("origins", "figures", "disagreements")}
        return msgspec.structs.replace(self, **lists, **tables)

    def include(self, other: ReplayReport) -> None:
        """Add the sessions of another report, played with the same rows."""
        self.sessions, self.calls, self.silent = (
            self.sessions + other.sessions,
            self.calls + other.calls,
            self.silent + other.silent,
        )
        for origin, count in other.origins.items():
            self.origins[origin] = self.origins.get(origin, 0) + count
        for row, figures in other.figures.items():
            self.figures[row] = self.figures.get(row, ReplayFigures()) + figures
        self.skipped += other.skipped
        self.damaged += other.damaged
        self.disagreements |= other.disagreements
        for session in other.played:
            self.played.append(session)
            self._keep_dearest_charts()

    def _keep_dearest_charts(self) -> None:
        drawn = [at for at, session in enumerate(self.played) if session.points]
        if len(drawn) > MOST_CHARTS:
            least = min(drawn, key=lambda at: self.played[at].cost)
            self.played[least] = msgspec.structs.replace(self.played[least], points={})

    def unfinished(self, row: str) -> list[ReplayedSession]:
        """Return the sessions that this policy could not finish."""
        return [session for session in self.played if session.figures[row].stopped_sessions]

    @property
    def in_force(self) -> str:
        """The name of the row of the settings in force, which comes before those of the policies."""
        return next((name for name in self.figures if name not in (RECORDED, APPEND)), LAMINA)

    def with_aliases(self, rows: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rows, and those of the settings in force again under their older name `lamina`."""
        own = self.in_force
        aliases = {LAMINA + name[len(own) :]: row for name, row in rows.items() if name == own or name.startswith(f"{own} with")}
        return {**rows, **aliases}

    def to_json(self) -> dict[str, Any]:
        """Return the figures for --json; the keys that other programs read come first."""
        policies = {name: {**figures.to_json(), **self._compared(name)} for name, figures in self.figures.items()}
        policies = self.with_aliases(policies)
        more = {"skipped": self.skipped, "damaged": self.damaged, "without_usage": self.silent}
        apart = [found.to_json(name) for name, found in self.disagreements.items()]
        return {"sessions": self.sessions, "origins": self.origins, "policies": policies, **more, "disagreements": apart}

    def _compared(self, row: str) -> dict[str, Any]:
        saved = saving(self.played, row) if row != RECORDED else None
        unfinished = [session.name for session in self.unfinished(row)]
        return {**(saved.to_json() if saved is not None else {}), **({"unfinished": unfinished} if unfinished else {})}
