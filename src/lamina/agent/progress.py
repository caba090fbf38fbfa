"""Describes what background agents are doing, in a few words every half minute. One thread serves all of them, while any is running.

It reads an agent's last request and answer (`AgentRun.seen`) and makes a side call: to the small model of the settings or of the same
maker, with the end of that as data, or without a small model to the agent's own, by a fork that reads the rest from the prompt cache.
Invariants: no agent waits for this. It ends with the last agent, even in the middle of a call. Each call is counted in the ledger, and
none is made over the budget. A rejected or failed answer changes nothing. A notice reports that a model that costs more is used.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ..conversation import forks
from ..conversation.state import Conversation, SideUsage
from ..core.budget import limits_of, ran_out
from ..core.effects import Ask, drive
from ..core.errors import AuthFailed, BadRequest, LaminaError
from ..core.reply import Reply
from ..core.usage import Usage
from ..disk.home.ledger import UsageLedger
from ..fork.background import LOCAL, JobResult
from ..fork.fork import run_fork
from ..fork.handover import of_request
from ..fork.model_call import Deadline, own_headers
from ..layers.l7_agents.summary import (
    MOST_TOKENS,
    PURPOSE,
    LastExchange,
    accept_summary,
    seconds_until_due,
    summary_directive,
    summary_query,
)
from ..providers.models import cost, costs_more, small_model
from .agent_run import AgentRun

if TYPE_CHECKING:
    from .agent_tool import AgentPool

# A summary that takes longer than the time between two is useless.
SECONDS = 20.0
# An agent's activity wakes the thread; this only bounds the wait.
IDLE = 30.0
DEARER = (
    "Background agents are summarized by {model}. Set lamina.smallModel to a cheaper model, or turn lamina.agentSummaries off."
)


class Progress:
    def __init__(self, c: Conversation, pool: AgentPool, news: threading.Event) -> None:
        """`news` is set when an agent got an answer or has ended."""
        self._c = c
        self._pool = pool
        self._news = news
        self._withheld = False  # a call was skipped, because the budget is used up
        self._refused: set[str] = set()  # small models that the server does not have
        self._problems: dict[str, None] = {}  # sentences for the user, added in the conversation's own thread

    def begin(self) -> None:
        """Start the thread if needed. Called in the conversation's own thread."""
        c = self._c
        self._tell()
        if c.settings.agent_summaries and c.background.running(PURPOSE) is None and self._pool.at_work():
            c.background.start(PURPOSE, self._run, self._take, later=True)

    def _take(self, one: JobResult) -> None:
        """Count the usage of its calls."""
        if isinstance(spent := one.value, SideUsage) and spent.forks:
            forks.count(self._c, PURPOSE, spent.usage, spent.cost, seconds=one.seconds, rounds=spent.forks)
        self._tell()
        if self._withheld:
            self._withheld = False
            self._c.background.allows(PURPOSE)  # reports which limit is used up

    def _tell(self) -> None:
        found, self._problems = self._problems, {}
        self._c.notify_once(*found)

    def _run(self, abort: threading.Event) -> SideUsage:
        spent, ledger = SideUsage(), UsageLedger(self._c.home)
        while not abort.is_set():
            self._news.clear()  # before looking, so that later activity wakes the thread
            runs = self._pool.at_work()
            if not runs:
                break
            for run in runs:
                seen, now = run.seen, time.monotonic()
                if seen is None or self._until(run) != 0.0:
                    continue
                run.asked_at = now
                if not self._affordable(ledger):
                    self._withheld = True
                else:
                    self._ask(run, seen, Deadline(SECONDS, abort, run.over), spent)
            self._news.wait(min((seconds for run in runs if (seconds := self._until(run)) is not None), default=IDLE))
        return spent

    def _until(self, run: AgentRun) -> float | None:
        seen = run.seen.at if run.seen is not None else None
        return seconds_until_due(now=time.monotonic(), last=run.asked_at, seen=seen, policy=self._c.policy.agents)

    def _affordable(self, ledger: UsageLedger) -> bool:
        """Whether the budget allows a call. Checked for each: most agents end before the first, and the budget may end in between."""
        return self._c.prompt.model == LOCAL or ran_out(ledger.today(), limits_of(self._c.settings)) is None

    def _ask(self, run: AgentRun, seen: LastExchange, until: Deadline, spent: SideUsage) -> None:
        model = str(seen.request["model"])
        with suppress(LaminaError, OSError):  # retried in half a minute
            small = self._small(model)
            reply = (self._query(seen, small, until) if small is not None else None) or self._fork(seen, model, until)
            used = reply.usage or Usage()
            spent.add(used, cost(reply.model or small or model, used))
            if (words := accept_summary(reply.text, seen, self._c.policy.agents)) is not None and words != run.summary:
                run.summary = words
                self._pool.write_states()
                run.show()

    def _small(self, model: str) -> str | None:
        """Return the model to use instead of the agent's, if there is one."""
        small = self._c.settings.small_model or small_model(model)
        return small if small not in (None, model) and small not in self._refused else None

    def _query(self, seen: LastExchange, small: str, until: Deadline) -> Reply | None:
        """Ask a small model. None if the server does not have it and it was not chosen explicitly."""
        request = {**summary_query(seen, small, self._c.policy.agents), "extra_headers": own_headers(PURPOSE)}
        try:
            return self._c.ask_side(Ask(request, PURPOSE), until)
        except (BadRequest, AuthFailed) as error:
            if small == self._c.settings.small_model:
                self._problems[f"Background agents are not summarized: {error} Change lamina.smallModel."] = None
                raise
            self._refused.add(small)
            return None

    def _fork(self, seen: LastExchange, model: str, until: Deadline) -> Reply:
        """Ask the agent's own model, which reads the conversation from the prompt cache."""
        if self._c.settings.small_model is None and (costs_more(model) or small_model(model) in self._refused):
            self._problems[DEARER.format(model=model)] = None
        flow = run_fork(of_request(seen.request, seen.answer), summary_directive(), purpose=PURPOSE, max_tokens=MOST_TOKENS)
        return drive(flow, forks.ForkDriver(self._c.ask_side, until)).reply
