"""Where background work meets its budget (B9): a job is let in while something is left of the day, and each of its calls is counted.

The gate is asked in the conversation's own thread when a job is to start, and nowhere else: no call of the conversation reads the
ledger. Calls are counted in the job's thread as they end, so work that is dropped, ended or outlived by nobody has still been counted.
What is under way when the budget ends goes on to its end; sessions together exceed it by that at most.

Not counted: what the conversation itself waits for (a summary that is needed now), what was asked for in it (agents), and what
local functions answer in a model's place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, TypeAlias

from ..core.effects import Ask
from ..core.errors import Aborted, ProviderError
from ..core.reply import Reply
from .background import current_job

if TYPE_CHECKING:  # loaded with the first job
    from ..core.budget import Limits, Out
    from ..disk.home.ledger import UsageLedger

# The model of answers that no model gave.
LOCAL = "offline"

AskSide: TypeAlias = Callable[[Ask, Event], Reply]


class Meter:
    """Answers calls beside a conversation as `ask` does, and counts those of background work."""

    def __init__(
        self, ask: AskSide, *, home: Path | None, project: str, session: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._ask = ask
        self._home = home
        self._project = project
        self._session = session
        self._clock = clock
        self._ledger: UsageLedger | None = None
        self._said: dict[str, str] = {}  # the day each was last said
        self.out: Out | None = None  # what the last job that asked was refused for

    @property
    def ledger(self) -> UsageLedger:
        if self._ledger is None:
            from ..disk.home.ledger import UsageLedger

            self._ledger = UsageLedger(self._home, now=self._clock)
        return self._ledger

    def __call__(self, ask: Ask, abort: Event) -> Reply:
        if current_job() is None:
            return self._ask(ask, abort)
        try:
            reply = self._ask(ask, abort)
        except (ProviderError, Aborted):  # it was sent, and may be paid for
            self._count(ask, None)
            raise
        if reply.model != LOCAL:
            self._count(ask, reply)
        return reply

    def _count(self, ask: Ask, reply: Reply | None) -> None:
        """None: the call failed."""
        from ..core.budget import LedgerLine
        from ..core.usage import Usage
        from ..providers.models import cost

        model = (reply.model if reply is not None else "") or str(ask.request.get("model", ""))
        usage = reply.usage if reply is not None else None
        used = usage or Usage()
        self.ledger.add(
            LedgerLine(
                self._clock(),
                ask.purpose,
                self._project,
                self._session,
                model,
                input=used.input_tokens,
                cache_read=used.cache_read,
                cache_write=used.cache_write,
                output=used.output_tokens,
                usd=cost(model, used).usd if usage is not None else None,
                failed=reply is None,
            )
        )

    def refused(self, limits: Limits) -> Out | None:
        """What ran out today, over all sessions of this home; None: there is something left."""
        from ..core.budget import ran_out

        self.out = ran_out(self.ledger.today(), limits)
        return self.out

    def first(self, what: str) -> bool:
        """Whether this is the first time today that it is said."""
        before, self._said[what] = self._said.get(what), self.ledger.day
        return before != self._said[what]
