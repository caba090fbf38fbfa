"""What can be seen of a session, by a person or by the loop on top: read only, and never a wait. Both kinds of session have it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from ..conversation.state import Conversation
from ..conversation.window.thresholds import State, state_of
from ..core.blocks import Wire
from ..core.usage import Usage
from ..prompt.break_causes import CacheBreak
from ..providers.models import Cost


class Seeing:
    _c: Conversation
    _cost: Cost

    @property
    def path(self) -> Path | None:
        """The transcript; None for a session in memory."""
        return self._c.store.path

    def now(self) -> datetime:
        """By the session's clock, in the person's own time zone."""
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
    def window(self) -> State:
        """T7: how full the window is."""
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
    def side_usage(self) -> Usage:
        """What forks (notes, summaries) have used beside the conversation; it is in neither `usage` nor `tokens` (T10)."""
        return self._c.side.usage

    @property
    def side_cost(self) -> Cost:
        """What they cost, as `cost` says it."""
        return self._c.side.cost

    @property
    def background(self) -> tuple[str, ...]:
        """Names of what is being done beside the conversation now."""
        return self._c.background.names

    @property
    def resting(self) -> str | None:
        """Which limit of today's budget keeps background work from starting: calls, tokens or dollars; None: none did when it was
        last asked."""
        out = self._c.ask_side.out
        return out.what if out is not None else None

    @property
    def trouble(self) -> str | None:
        """One sentence while the transcript cannot be written; None when all is on disk."""
        return self._c.store.trouble

    @property
    def breaks(self) -> int:
        """Requests that did not start with the one before; each has a record that says why."""
        return self._c.last.breaks

    @property
    def cache_findings(self) -> tuple[CacheBreak, ...]:
        """K2: where the provider's cache was missed without a decision of ours, newest last."""
        return tuple(self._c.last.findings)
