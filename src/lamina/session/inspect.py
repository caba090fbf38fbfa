"""Inspection of a session: read only, and never a wait. Both kinds of session have it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ..conversation.state import Conversation
from ..conversation.window.thresholds import WindowState, state_of
from ..core.blocks import Wire
from ..core.usage import Usage
from ..prompt.break_causes import CacheBreak
from ..providers.models import Cost


class SessionStatus(NamedTuple):
    background_jobs: tuple[str, ...]  # names of the jobs that run now
    side_usage: Usage  # of forks (notes, summaries): in neither `usage` nor `tokens`
    side_cost: Cost
    budget_exhausted: str | None  # the limit of today's budget that keeps background work from starting: calls, tokens or dollars
    write_error: str | None  # one sentence while the transcript cannot be written; None when all is on disk
    cache_breaks: int  # requests that did not start with the one before; each has a record that says why
    cache_misses: tuple[CacheBreak, ...]  # where the provider's cache was missed without a decision of ours, newest last


class Inspection:
    _c: Conversation
    _cost: Cost

    @property
    def path(self) -> Path | None:
        """The transcript; None for a session in memory."""
        return self._c.store.path

    def _local_time(self) -> datetime:
        """The session's clock, in the user's own time zone."""
        return datetime.fromisoformat(self._c.clock()).astimezone()

    @property
    def messages(self) -> list[Wire]:
        """What the model would see now; a new list, its dicts shared and read-only."""
        return self._c.log.view.messages()

    @property
    def open_calls(self) -> tuple[str, ...]:
        return self._c.log.view.flat.open_calls

    @property
    def tokens(self) -> int:
        """T1: tokens the next request holds, as far as known."""
        return self._c.count.tokens

    @property
    def window_state(self) -> WindowState:
        """How full the window is."""
        return state_of(self._c.count.judged, self._c.limits, autocompact_on=self._c.autocompact)

    @property
    def usage(self) -> Usage:
        """Everything this object's calls have reported, each counted once."""
        return self._c.spent

    @property
    def cost(self) -> Cost:
        """What those calls cost: in money (None once a model without known prices answered) and in prices of one input token."""
        return self._cost

    @property
    def status(self) -> SessionStatus:
        """What runs beside the conversation, what it has used, and what went wrong."""
        c = self._c
        out = c.ask_side.out
        return SessionStatus(
            background_jobs=c.background.names,
            side_usage=c.side.usage,
            side_cost=c.side.cost,
            budget_exhausted=out.what if out is not None else None,
            write_error=c.store.trouble,
            cache_breaks=c.last.breaks,
            cache_misses=tuple(c.last.findings),
        )
