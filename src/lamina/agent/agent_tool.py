"""The agents of one conversation: forks and subagents, waited for or in the background.

Owns the list of agents and their state. An answer's calls run in other threads, so what they need from the conversation is done by the
conversation's own thread (driver.py). Invariants: the parent reads nothing of an agent but its report. A background report is appended
after results or after a user message, never inserted into what was sent. The end of every agent is recorded once (`agent_ended`), and
its usage counts as side usage. Agents are ended by their parent's abort and by `close`. Each event names the agents whose report is
pending. After a crash, the resumed session reports them as lost until the model has seen that.
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
from ..language.text import Text
from ..layers.l7_agents.report import AgentState, describe_launch, describe_loss, list_restorables
from ..layers.l7_agents.tools import CallRefusal, ForkCall, agent_tool, read_call, wants_fork
from ..layers.l7_agents.types import AGENT, Catalog
from ..session.base import side_provider, working
from ..tools.tool import Context, ToolOutput, failure
from .agent_run import ENDED, STARTED, STOPPED, AgentRun, append_report, event_data, left_behind
from .driver import MainThreadQueue
from .messaging import Messaging

if TYPE_CHECKING:
    from ..conversation.forks import ForkDriver
    from ..fork.handover import Handover
    from .agent import Agent
    from .progress import Progress

# Shared by the calls of one answer. The handover is None if none of them asks for a fork.
CallInputs: TypeAlias = "tuple[ForkDriver, Handover | None]"

# Maximum number of background agents; more is a runaway loop. Further calls of one answer wait for each other.
MOST_AT_ONCE = 8
# Number of ended agents kept, for the user and for the list after a compaction.
MOST_KNOWN = 50
# How long an agent may take to end after it was asked to.
LAST_WORDS = 5.0

FULL = f"{MOST_AT_ONCE} background agents are already running. Wait for one of their reports, or run this one without run_in_background."
TAKEN = "An agent named {name} is already running. Use another name, or send it a message with SendMessage."
NO_ROOM = (
    "The agent was not started: the conversation is closing or has too much background work. Run it without run_in_background."
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
        self._unreported: dict[str, str] = {}  # background agents: id → description
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
        """Report agents that an earlier session left behind as lost: once to the user here, and to the model with `land`."""
        c.checkpoint_with("agents", lambda: [list(each) for each in self._unreported.items()])
        if not c.log.events and not c.resumed:
            return
        for agent, description in left_behind(c):
            self._unreported[agent] = description
            self._reports.append((AgentState(id=agent, type="", description=description, background=True, status="lost"), ""))
            c.notify(describe_loss(agent, description))
        if self._unreported:
            self.write_states()  # the old file says that they are running

    def restorables(self) -> Sequence[Restorable]:
        """Return agents and agent types, for the model to read again after a compaction."""
        return list_restorables(self.catalog, self.states)

    @property
    def states(self) -> tuple[AgentState, ...]:
        """Every running agent and the ones that ended last, oldest first."""
        return tuple(run.state for run in list(self._runs.values()))

    # In the conversation's own thread

    def run(self, calls: Sequence[ToolUse]) -> tuple[CompletedCall, ...]:
        """Run the calls of one answer. While agents work, their requests to the conversation are handled here."""
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
                _ = side_provider(self._session)  # created here, in the conversation's own thread
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
        """Add reports as context as they arrive, after a round of tools or after a user message."""
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
        if one.error is not None and run.status == "running":  # our own fault: report it, whatever it is
            run.end("failed", LaminaError(f"{type(one.error).__name__}: {one.error}"))
        text = one.value if isinstance(one.value, str) else run.state.why
        self._reports.append((run.state, text if text != STOPPED else ""))
        self._tell_end(self._c, run)

    def _tell_start(self, c: Conversation, state: AgentState) -> None:
        if state.background:
            self._unreported[state.id] = state.description
        c.record_event(STARTED, event_data(state, [*self._unreported.items()]))
        if state.background:
            _ = side_provider(self._session)  # created here, in the conversation's own thread
            if self._progress is None:
                from .progress import Progress

                self._progress = Progress(c, self, self._news)
            self._progress.begin()
        self.write_states()

    def _tell_end(self, c: Conversation, run: AgentRun) -> None:
        from ..conversation import forks
        from ..fork.fork import AGENT as PURPOSE

        new = [each for each in run.notices if each not in c.notices]  # do not repeat what the user already knows
        task = run.wanted.description
        c.notify_once(*(Text("{task}: {notice}", task=task, notice=Text.whole(each)) for each in new))
        seconds = run.seconds or 0.0
        if run.outcome is not None:
            forks.ended(c, PURPOSE, run.outcome, seconds)
        elif run.usage.total:
            purpose = PURPOSE if isinstance(run.wanted, ForkCall) else "subagent"
            forks.count(c, purpose, run.usage, run.cost, seconds=seconds, rounds=run.rounds)
        if isinstance(run.wanted, ForkCall) and run.error is not None:
            forks.failed(c, PURPOSE, run.error)
        c.record_event(ENDED, event_data(run.state, [*self._unreported.items()]))
        self.write_states()
        ended = [
            name for name, known in list(self._runs.items()) if known.status != "running"
        ]  # a copy, as other threads add runs
        for name in ended[: max(0, len(ended) - MOST_KNOWN)]:
            del self._runs[name]

    def stop(self) -> None:
        """Stop the background agents. Each records its end."""
        for run in self._running():
            self._c.background.abort(run.name)

    def close(self, timeout: float) -> float:
        """Wait for background agents, then stop the unfinished ones. Returns the time that is left."""
        until = time.monotonic() + timeout
        if not self._runs:
            return timeout
        try:
            for run in self._running():
                self._c.background.wait(run.name, max(0.0, until - time.monotonic()))
        finally:  # also after Ctrl-C while waiting
            self.stop()
        for run in self._running():
            self._c.background.wait(run.name, LAST_WORDS)
        with suppress(SessionClosed):  # then the reports were already added when it was closed
            self.land()
        return max(0.0, until - time.monotonic())

    # Agent states, for users and for other programs

    def write_states(self) -> None:
        """Write the states for `lamina agents`, which is another process. Disk errors are ignored."""
        if self._c.directory is None:
            return
        from ..disk.session_files import agent_states

        with self._states_lock:
            runs = [run for run in list(self._runs.values()) if run.background or run.status == "running"]
            states = [{**run.state.event(), "since": run.since, "doing": run.summary or run.doing} for run in runs]
            with suppress(DiskError):
                agent_states.write_states(self._c.directory, states)

    def at_work(self) -> list[AgentRun]:
        """Return the agents whose threads are still running. A crash of our own code is reported later."""
        return [run for run in self._running() if not run.over.is_set()]

    def _running(self) -> list[AgentRun]:
        return [run for run in list(self._runs.values()) if run.background and run.status == "running"]

    # In the threads of calls and jobs

    def _act(self, given: Wire, context: Context) -> ToolOutput:
        inputs = self._inputs
        if inputs is None:
            return failure("Agents cannot be started here.")
        wanted = read_call(given, self.catalog)
        if isinstance(wanted, CallRefusal):
            return failure(wanted.sentence)
        if isinstance(wanted, ForkCall) and inputs[1] is None:
            return failure("A hook changed this call into a fork, which is not possible. Start the fork yourself.")
        # Nobody would be there to read a background report of an agent's agent.
        background = wanted.background and self._agent._depth == 0
        ask = inputs[0].tool_runner.ask if inputs[0].tool_runner is not None and not background else None
        with self._lock:
            if background and len(self._running()) >= MOST_AT_ONCE:
                return failure(FULL)
            if wanted.label and self._mail.knows(wanted.label):
                return failure(TAKEN.format(name=wanted.label))
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
