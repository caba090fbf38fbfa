"""Read-only properties of a session, for both kinds of session. None of them waits."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from ..conversation.state import Conversation
from ..conversation.triggers import base
from ..conversation.window.thresholds import WindowState, state_of
from ..core.blocks import Wire
from ..core.usage import Usage
from ..prompt.break_causes import CacheBreak
from ..providers.models import Cost


class SessionStatus(msgspec.Struct, frozen=True):
    """Background work, its usage, and current problems."""

    background_jobs: tuple[str, ...]  # names of the running jobs
    side_usage: Usage  # tokens of forks (notes, summaries), estimated if no model answered; not part of `usage` or `tokens`
    side_cost: Cost  # cost of the forks that a model answered
    budget_exhausted: str | None  # the daily limit that blocks background work: calls, tokens or dollars
    write_error: str | None  # why the transcript cannot be written; None if everything is on disk
    cache_breaks: int  # requests that did not start with the previous one; each has a record with the reason
    cache_misses: tuple[CacheBreak, ...]  # cache misses that no change of ours explains, newest last


class Inspection:
    """The properties that show a session's state."""

    _c: Conversation
    _cost: Cost

    @property
    def path(self) -> Path | None:
        """Path of the transcript file, or None for an in-memory session."""
        return self._c.store.path

    def _local_time(self) -> datetime:
        """Return the session's current time in the local time zone."""
        return datetime.fromisoformat(self._c.clock()).astimezone()

    @property
    def messages(self) -> list[Wire]:
        """The messages that the model would see now. The list is new; its dicts are shared, so do not change them."""
        return self._c.log.view.messages()

    @property
    def open_calls(self) -> tuple[str, ...]:
        """Ids of the tool calls that have no result yet."""
        return self._c.log.view.flat.open_calls

    @property
    def tokens(self) -> int:
        """Size of the next request in tokens: the count the provider last reported, plus an estimate of what was added since."""
        return self._c.count.tokens

    @property
    def window_state(self) -> WindowState:
        """The state of the context window: the percentage left, and which thresholds are passed."""
        c = self._c
        return state_of(c.count.judged, c.limits, autocompact_on=c.autocompact, base=base(c))

    @property
    def usage(self) -> Usage:
        """Total token usage of the model calls made through this object, excluding side calls (see `status`)."""
        return self._c.spent

    @property
    def cost(self) -> Cost:
        """Cost of those calls: `usd` in dollars, or None if a model's prices are unknown; `units` in prices of one input token."""
        return self._cost

    @property
    def status(self) -> SessionStatus:
        """Background jobs, their usage and cost, write errors, and cache breaks."""
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
