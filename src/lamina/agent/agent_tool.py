"""Agents of one conversation (A4): forks and subagents while their call waits, and in the background.

Owns which agents there are and how they stand. The calls of an answer run in other threads, and the conversation belongs to its own:
what they want of it is done by the conversation's thread (main_thread.py). Invariants: the parent reads nothing of an agent but its
report; a background report is appended behind results or behind what the person says, never into what was sent; whatever ends an
agent, it is told once (`agent_ended`) and what it used is counted beside the conversation (T10). Agents are ended by the abort of
their parent and by `close`. Each event names the agents whose report is still to come: after a crash, the session that goes on says
that they are lost, until that has been said to the model.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..conversation.isolate import take_job_results
from ..conversation.state import Conversation
from ..core.blocks import ToolUse, Wire
from ..core.errors import DiskError, LaminaError, SessionClosed
from ..core.reply import Reply
from ..fork.background import JobResult
from ..fork.host import Restorable
from ..fork.tool_runner import AskPerson, Desk, Ran, run_calls
from ..layers.l7_agents.report import AgentState, describe_launch, describe_loss, list_restorables
from ..layers.l7_agents.tools import CallRefusal, ForkCall, agent_tool, read_call, wants_fork
from ..layers.l7_agents.types import AGENT, Catalog
from ..session.session import Session
from ..tools.tool import Context, ToolOutput, failure
from .main_thread import Errands
from .messaging import Mailing
from .runs import STOPPED, Batch, Run
from .subagent import Hire, Job, Tell, Worker

if TYPE_CHECKING:
    from .progress import Progress

# Agents in the background at once: more is a loop that went wrong. Calls of one answer wait for each other beyond as many.
MOST_AT_ONCE = 8
# A conversation, its subagent, and a subagent of that.
DEEPEST = 2
# Of agents that have ended, for a person and for what comes back after a compaction.
MOST_KNOWN = 50
# How long an agent that was told to end may take to do so.
LAST_WORDS = 5.0

FULL = f"{MOST_AT_ONCE} agents work in the background already; wait for one of their reports, or run this one without run_in_background."
NO_ROOM = (
    "The agent was not started: the conversation is being closed or has too much going on; run it without run_in_background."
)


class Delegating:
    def __init__(
        self,
        session: Session,
        catalog: Catalog,
        *,
        hire: Callable[[Hire], Worker],
        tell: Tell,
        mail: Mailing,
        depth: int = 0,
    ) -> None:
        self.catalog = catalog
        self.depth = depth
        self.tool = agent_tool(catalog, self._act)
        self._session = session
        self._hire = hire
        self._tell = tell
        self._mail = mail
        self._jobs: dict[str, Job] = {}
        self._reports: deque[tuple[AgentState, str]] = deque()
        self._unreported: dict[str, str] = {}  # background agents by id: what each does
        self._errands = Errands()
        self._batch: Batch | None = None
        self._lock = threading.Lock()
        self._noting = threading.Lock()
        with session._working() as conversation:
            self._c = conversation
            self._take_over(conversation)
        self._summaries: Progress | None = None

    def _take_over(self, c: Conversation) -> None:
        """What a session before this one left behind is lost; it is said once to the person here, and to the model with `land`."""
        c.checkpoint_with("agents", lambda: [list(each) for each in self._unreported.items()])
        if not c.log.events and not c.resumed:
            return
        from .reports import left_behind

        for agent, description in left_behind(c):
            self._unreported[agent] = description
            self._reports.append((AgentState(id=agent, type="", description=description, background=True, status="lost"), ""))
            c.notify(describe_loss(agent, description))
        if self._unreported:
            self._write_down()  # what was written down then says that they run

    def restorables(self) -> Sequence[Restorable]:
        """Agents and agent types, for the model to read again behind a compaction."""
        return list_restorables(self.catalog, self.states)

    @property
    def states(self) -> tuple[AgentState, ...]:
        """Every agent that runs, and those that ended last, oldest first."""
        return tuple(job.state for job in list(self._jobs.values()))

    # The conversation's own thread

    def run(self, calls: Sequence[ToolUse], desk: Desk) -> tuple[Ran, ...]:
        """The calls of one answer; while agents work, what they want of the conversation is done here."""
        if all(call.name != AGENT for call in calls):
            return run_calls(calls, desk)
        abort = desk.context.abort
        with self._session._working() as c:
            lent = replace(desk, ask=self._errands.asking(desk.ask, abort) if desk.ask is not None else None)
            self._batch = self._prepared(c, calls, lent)
            done: Future[tuple[Ran, ...]] = Future()
            threading.Thread(
                target=copy_context().run, args=(_run_into, done, calls, lent), name="lamina-agents", daemon=True
            ).start()
            try:
                self._errands.until(done, c, abort)
            finally:
                self._batch = None
            return done.result()

    def _prepared(self, c: Conversation, calls: Sequence[ToolUse], desk: Desk) -> Batch:
        if not any(call.name == AGENT and wants_fork(call.input) for call in calls):
            return Batch(desk, None, None)
        from ..conversation.forks import hand_over, side

        _ = self._session._side  # looked up here, in the conversation's own thread
        return Batch(desk, hand_over(c), side(c))

    def land(self) -> None:
        """At the end of a round of tools and behind what the person says: the reports that came meanwhile, as context."""
        with self._session._working() as c:
            take_job_results(c)
            if self._summaries is not None:
                self._summaries.begin()
            while self._reports and not c.log.view.flat.open_calls:
                from . import reports

                state, text = self._reports[0]
                reports.enter(c, state, text, [each for each in self._unreported.items() if each[0] != state.id])
                self._reports.popleft()
                self._unreported.pop(state.id, None)

    def _take(self, job: Job, one: JobResult) -> None:
        if one.error is not None and job.status == "running":  # a fault of ours: whatever it is, it is told
            job.end("failed", LaminaError(f"{type(one.error).__name__}: {one.error}"))
        text = one.value if isinstance(one.value, str) else job.why
        self._reports.append((job.state, text if text != STOPPED else ""))
        self._tell_end(self._c, job)

    def _tell_start(self, c: Conversation, state: AgentState) -> None:
        from .reports import STARTED, told

        if state.background:
            self._unreported[state.id] = state.description
        c.record_event(STARTED, told(state, [*self._unreported.items()]))
        if state.background:
            _ = self._session._side  # looked up here, in the conversation's own thread
            self._progress.begin()
            self._write_down()

    def _tell_end(self, c: Conversation, job: Job) -> None:
        from ..conversation import forks
        from ..fork.fork import AGENT as PURPOSE
        from .reports import ENDED, told

        new = [each for each in job.notices if each not in c.notices]  # what the user knows is not said again in its name
        c.notify_once(*(f"{job.wanted.description}: {each}" for each in new))
        seconds = job.seconds or 0.0
        if job.outcome is not None:
            forks.ended(c, PURPOSE, job.outcome, seconds)
        elif job.usage.total:
            purpose = PURPOSE if isinstance(job.wanted, ForkCall) else "subagent"
            forks.count(c, purpose, job.usage, job.cost, seconds=seconds, rounds=job.rounds)
        if isinstance(job.wanted, ForkCall) and job.error is not None:
            forks.failed(c, PURPOSE, job.error)
        c.record_event(ENDED, told(job.state, [*self._unreported.items()]))
        if job.background:
            self._write_down()
        ended = [name for name, known in list(self._jobs.items()) if known.status != "running"]  # others add to it meanwhile
        for name in ended[: max(0, len(ended) - MOST_KNOWN)]:
            del self._jobs[name]

    def stop(self) -> None:
        """End what works in the background; each says so when it has ended."""
        for job in self._running():
            self._c.background.abort(job.name)

    def close(self, timeout: float) -> float:
        """Wait for background agents, then end those that are not done; what is left of the time is returned."""
        until = time.monotonic() + timeout
        if not self._jobs:
            return timeout
        try:
            for job in self._running():
                self._c.background.wait(job.name, max(0.0, until - time.monotonic()))
        finally:  # Ctrl-C while waiting too
            self.stop()
        for job in self._running():
            self._c.background.wait(job.name, LAST_WORDS)
        with suppress(SessionClosed):  # whoever closed it has landed what there was
            self.land()
        return max(0.0, until - time.monotonic())

    # What background agents are doing, for people and for other programs

    def _summarised(self, job: Job) -> None:
        """In the thread that asks."""
        state = job.state
        event = {"id": job.id, "call": job.call, "description": state.description, "background": True, "summary": job.summary}
        self._write_down()
        self._tell({"type": "agent", **event, "calls": state.calls, "seconds": round(state.seconds, 3)})

    def _write_down(self) -> None:
        """For `lamina agents`, which is another process. What the disk refuses is no reason to stop anything."""
        if self._c.directory is None:
            return
        from ..disk.session_files.agent_states import write_states

        with self._noting:
            states = [job.state for job in list(self._jobs.values()) if job.background]
            with suppress(DiskError):
                write_states(self._c.directory, [state.event() for state in states])

    @property
    def _progress(self) -> Progress:
        """Loaded with the first agent that is started."""
        with self._lock:
            if self._summaries is None:
                from .progress import Progress

                self._summaries = Progress(self._c, self._at_work, self._summarised)
            return self._summaries

    def _at_work(self) -> list[Job]:
        """Those whose threads have not come to an end; of one that failed by a fault of ours, that is told later."""
        return [job for job in self._running() if not job.over.is_set()]

    def _running(self) -> list[Job]:
        return [job for job in list(self._jobs.values()) if job.background and job.status == "running"]

    # The threads of calls and jobs

    def _act(self, given: Wire, context: Context) -> ToolOutput:
        batch = self._batch
        if batch is None:
            return failure("No agent can be started here.")
        wanted = read_call(given, self.catalog)
        if isinstance(wanted, CallRefusal):
            return failure(wanted.sentence)
        # What an agent of an agent would bring later, nobody would be there to read.
        background = wanted.background and self.depth == 0
        job = Job(wanted, context.call, background=background)
        with self._lock:
            if background and len(self._running()) >= MOST_AT_ONCE:
                return failure(FULL)
            self._jobs[job.name] = job
        return self._launch(job, batch) if background else self._wait_for(job, batch, context.abort)

    def _launch(self, job: Job, batch: Batch) -> ToolOutput:
        mail = self._mail.of_agent(job.id, job.wanted.description)

        def work(abort: threading.Event) -> str:
            try:
                return self._run(job, batch, abort, None, mail).report()
            finally:
                job.over.set()
                self._progress.ended()

        state = job.state
        if not self._c.background.start(job.name, work, partial(self._take, job), asked=True):
            del self._jobs[job.name]
            mail.finish()
            return failure(NO_ROOM)
        self._errands.put(lambda c: self._tell_start(c, state))
        return ToolOutput(describe_launch(state), facts={"agent": job.id, "background": True})

    def _run(self, job: Job, batch: Batch, abort: threading.Event, ask: AskPerson | None, mail: Mailing) -> Run:
        saw = partial(self._progress.saw, job) if job.background else _unseen
        return Run(job, batch, abort, ask, self._hire, self._tell, mail, saw)

    def _wait_for(self, job: Job, batch: Batch, abort: threading.Event) -> ToolOutput:
        begun = job.state
        self._errands.put(lambda c: self._tell_start(c, begun))
        try:
            text = self._run(job, batch, abort, batch.desk.ask, self._mail.of_agent(job.id, job.wanted.description)).report()
        finally:
            if job.status == "running":
                job.end("failed")
            self._errands.put(lambda c: self._tell_end(c, job))
        state = job.state
        facts = {"agent": job.id, "calls": state.calls, "seconds": round(state.seconds, 3), "tokens": state.usage.total}
        return ToolOutput(text, is_error=state.status != "done", facts=facts)


def _unseen(request: Wire, reply: Reply) -> None:
    """Nobody asks what an agent does that is waited for: its calls are shown."""


def _run_into(done: Future[tuple[Ran, ...]], calls: Sequence[ToolUse], desk: Desk) -> None:
    try:
        done.set_result(run_calls(calls, desk))
    except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
        done.set_exception(error)
