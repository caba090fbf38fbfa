"""Agents of one conversation (A4): forks and subagents while their call waits, and in the background.

Owns which agents there are and how they stand. The calls of an answer run in other threads, and the conversation belongs to its own:
what they want of it is done by the conversation's thread (driver.py). Invariants: the parent reads nothing of an agent but its
report; a background report is appended behind results or behind what the person says, never into what was sent; whatever ends an
agent, it is told once (`agent_ended`) and what it used is counted beside the conversation (T10). Agents are ended by the abort of
their parent and by `close`. Each event names the agents whose report is still to come: after a crash, the session that goes on says
that they are lost, until that has been said to the model.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from ..conversation.isolate import take_job_results
from ..conversation.state import Conversation
from ..core.blocks import ToolUse, Wire
from ..core.errors import DiskError, LaminaError, SessionClosed
from ..fork.background import JobResult
from ..fork.host import Restorable
from ..fork.tool_runner import CompletedCall, RunOnce
from ..layers.l7_agents.report import AgentState, describe_launch, describe_loss, list_restorables
from ..layers.l7_agents.tools import CallRefusal, ForkCall, agent_tool, read_call, wants_fork
from ..layers.l7_agents.types import AGENT, Catalog
from ..session.base import working
from ..tools.tool import Context, ToolOutput, failure
from .agent_run import ENDED, STARTED, STOPPED, AgentRun, append_report, event_data, left_behind
from .driver import MainThreadQueue
from .messaging import Messaging

if TYPE_CHECKING:
    from ..conversation.forks import ForkDriver
    from ..fork.handover import Handover
    from .agent import Agent
    from .progress import Progress

# What the calls of one answer share; the handover is None where none of them wants a fork.
CallInputs: TypeAlias = "tuple[ForkDriver, Handover | None]"

# Agents in the background at once: more is a loop that went wrong. Calls of one answer wait for each other beyond as many.
MOST_AT_ONCE = 8
# Of agents that have ended, for a person and for what comes back after a compaction.
MOST_KNOWN = 50
# How long an agent that was told to end may take to do so.
LAST_WORDS = 5.0

FULL = f"{MOST_AT_ONCE} agents work in the background already; wait for one of their reports, or run this one without run_in_background."
NO_ROOM = (
    "The agent was not started: the conversation is being closed or has too much going on; run it without run_in_background."
)


class AgentPool:
    def __init__(self, agent: Agent, catalog: Catalog, mail: Messaging) -> None:
        self.catalog = catalog
        self.tool = agent_tool(catalog, self._act)
        self._agent = agent
        self._session = agent.session
        self._mail = mail
        self._runs: dict[str, AgentRun] = {}
        self._reports: deque[tuple[AgentState, str]] = deque()
        self._unreported: dict[str, str] = {}  # background agents by id: what each does
        self._queue = MainThreadQueue()
        self._inputs: CallInputs | None = None
        self._lock = threading.Lock()
        self._states_lock = threading.Lock()
        self._news = threading.Event()  # a background agent has done something
        self._progress: Progress | None = None
        with working(self._session) as conversation:
            self._c = conversation
            self._take_over(conversation)

    def _take_over(self, c: Conversation) -> None:
        """What a session before this one left behind is lost; it is said once to the person here, and to the model with `land`."""
        c.checkpoint_with("agents", lambda: [list(each) for each in self._unreported.items()])
        if not c.log.events and not c.resumed:
            return
        for agent, description in left_behind(c):
            self._unreported[agent] = description
            self._reports.append((AgentState(id=agent, type="", description=description, background=True, status="lost"), ""))
            c.notify(describe_loss(agent, description))
        if self._unreported:
            self.write_states()  # what was written down then says that they run

    def restorables(self) -> Sequence[Restorable]:
        """Agents and agent types, for the model to read again behind a compaction."""
        return list_restorables(self.catalog, self.states)

    @property
    def states(self) -> tuple[AgentState, ...]:
        """Every agent that runs, and those that ended last, oldest first."""
        return tuple(run.state for run in list(self._runs.values()))

    # The conversation's own thread

    def run(self, calls: Sequence[ToolUse]) -> tuple[CompletedCall, ...]:
        """The calls of one answer; while agents work, what they want of the conversation is done here."""
        tool_runner = self._agent.tool_runner
        if all(call.name != AGENT for call in calls):
            return tool_runner.run(calls)
        from ..conversation.forks import ForkDriver, hand_over

        abort = tool_runner.context.abort
        with working(self._session) as c:
            if tool_runner.ask is not None:
                tool_runner = replace(tool_runner, ask=self._queue.asking(tool_runner.ask, abort))
            handover = None
            if any(call.name == AGENT and wants_fork(call.input) for call in calls):
                _ = self._session._side  # looked up here, in the conversation's own thread
                handover = hand_over(c)
            self._inputs = ForkDriver(c.ask_side, abort, tool_runner), handover
            once = RunOnce(partial(tool_runner.run, calls))
            threading.Thread(target=copy_context().run, args=(once.run,), name="lamina-agents", daemon=True).start()
            try:
                self._queue.run_until(once.came, c, abort)
            finally:
                self._inputs = None
            return once.came.result()

    def land(self) -> None:
        """At the end of a round of tools and behind what the person says: the reports that came meanwhile, as context."""
        with working(self._session) as c:
            take_job_results(c)
            if self._progress is not None:
                self._progress.begin()
            while self._reports and not c.log.view.flat.open_calls:
                state, text = self._reports[0]
                append_report(c, state, text, [each for each in self._unreported.items() if each[0] != state.id])
                self._reports.popleft()
                self._unreported.pop(state.id, None)

    def _take(self, run: AgentRun, one: JobResult) -> None:
        if one.error is not None and run.status == "running":  # a fault of ours: whatever it is, it is told
            run.end("failed", LaminaError(f"{type(one.error).__name__}: {one.error}"))
        text = one.value if isinstance(one.value, str) else run.state.why
        self._reports.append((run.state, text if text != STOPPED else ""))
        self._tell_end(self._c, run)

    def _tell_start(self, c: Conversation, state: AgentState) -> None:
        if state.background:
            self._unreported[state.id] = state.description
        c.record_event(STARTED, event_data(state, [*self._unreported.items()]))
        if state.background:
            _ = self._session._side  # looked up here, in the conversation's own thread
            if self._progress is None:
                from .progress import Progress

                self._progress = Progress(c, self, self._news)
            self._progress.begin()
            self.write_states()

    def _tell_end(self, c: Conversation, run: AgentRun) -> None:
        from ..conversation import forks
        from ..fork.fork import AGENT as PURPOSE

        new = [each for each in run.notices if each not in c.notices]  # what the user knows is not said again in its name
        c.notify_once(*(f"{run.wanted.description}: {each}" for each in new))
        seconds = run.seconds or 0.0
        if run.outcome is not None:
            forks.ended(c, PURPOSE, run.outcome, seconds)
        elif run.usage.total:
            purpose = PURPOSE if isinstance(run.wanted, ForkCall) else "subagent"
            forks.count(c, purpose, run.usage, run.cost, seconds=seconds, rounds=run.rounds)
        if isinstance(run.wanted, ForkCall) and run.error is not None:
            forks.failed(c, PURPOSE, run.error)
        c.record_event(ENDED, event_data(run.state, [*self._unreported.items()]))
        if run.background:
            self.write_states()
        ended = [name for name, known in list(self._runs.items()) if known.status != "running"]  # others add to it meanwhile
        for name in ended[: max(0, len(ended) - MOST_KNOWN)]:
            del self._runs[name]

    def stop(self) -> None:
        """End what works in the background; each says so when it has ended."""
        for run in self._running():
            self._c.background.abort(run.name)

    def close(self, timeout: float) -> float:
        """Wait for background agents, then end those that are not done; what is left of the time is returned."""
        until = time.monotonic() + timeout
        if not self._runs:
            return timeout
        try:
            for run in self._running():
                self._c.background.wait(run.name, max(0.0, until - time.monotonic()))
        finally:  # Ctrl-C while waiting too
            self.stop()
        for run in self._running():
            self._c.background.wait(run.name, LAST_WORDS)
        with suppress(SessionClosed):  # whoever closed it has landed what there was
            self.land()
        return max(0.0, until - time.monotonic())

    # What background agents are doing, for people and for other programs

    def write_states(self) -> None:
        """For `lamina agents`, which is another process. What the disk refuses is no reason to stop anything."""
        if self._c.directory is None:
            return
        from ..disk.session_files import agent_states

        with self._states_lock:
            states = [run.state for run in list(self._runs.values()) if run.background]
            with suppress(DiskError):
                agent_states.write_states(self._c.directory, [state.event() for state in states])

    def at_work(self) -> list[AgentRun]:
        """Those whose threads have not come to an end; of one that failed by a fault of ours, that is told later."""
        return [run for run in self._running() if not run.over.is_set()]

    def _running(self) -> list[AgentRun]:
        return [run for run in list(self._runs.values()) if run.background and run.status == "running"]

    # The threads of calls and jobs

    def _act(self, given: Wire, context: Context) -> ToolOutput:
        inputs = self._inputs
        if inputs is None:
            return failure("No agent can be started here.")
        wanted = read_call(given, self.catalog)
        if isinstance(wanted, CallRefusal):
            return failure(wanted.sentence)
        # What an agent of an agent would bring later, nobody would be there to read.
        background = wanted.background and self._agent._depth == 0
        ask = inputs[0].tool_runner.ask if inputs[0].tool_runner is not None and not background else None
        with self._lock:
            if background and len(self._running()) >= MOST_AT_ONCE:
                return failure(FULL)
            run = AgentRun(self._agent, self._mail, wanted, context, ask=ask, background=background, news=self._news)
            self._runs[run.name] = run
        return self._launch(run, inputs) if background else self._wait_for(run, inputs)

    def _launch(self, run: AgentRun, inputs: CallInputs) -> ToolOutput:
        def work(abort: threading.Event) -> str:
            run.abort = abort
            return run.report(*inputs)

        state = run.state
        if not self._c.background.start(run.name, work, partial(self._take, run), asked=True):
            del self._runs[run.name]
            run.mail.finish()
            return failure(NO_ROOM)
        self._queue.put(lambda c: self._tell_start(c, state))
        return ToolOutput(describe_launch(state), facts={"agent": run.id, "background": True})

    def _wait_for(self, run: AgentRun, inputs: CallInputs) -> ToolOutput:
        begun = run.state
        self._queue.put(lambda c: self._tell_start(c, begun))
        try:
            text = run.report(*inputs)
        finally:
            if run.status == "running":
                run.end("failed")
            self._queue.put(lambda c: self._tell_end(c, run))
        state = run.state
        facts = {"agent": run.id, "calls": state.calls, "seconds": round(state.seconds, 3), "tokens": state.usage.total}
        return ToolOutput(text, is_error=state.status != "done", facts=facts)
