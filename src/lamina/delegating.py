"""Agents of one conversation (A4): forks and subagents while their call waits, and in the background.

Owns which agents there are and how they stand. The calls of an answer run in other threads, and the conversation belongs to its own:
what they want of it (a line in the log, a question to the person) is put in a queue that the conversation's thread works off while it
waits. Invariants: the parent reads nothing of an agent but its report; a background report is appended behind results or behind what
the person says, never into what was sent; whatever ends an agent, it is told once (`agent_ended`) and what it used is counted beside
the conversation (T10). Agents are ended by the abort of their parent and by `close`.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

from msgspec.structs import replace

from . import turn
from .conversation import Conversation
from .core.blocks import ToolUse, Wire
from .core.errors import Aborted, LaminaError, SessionClosed
from .core.usage import Usage
from .fork.asking import GLANCE
from .fork.background import Landed
from .fork.desk import AskPerson, Consent, Desk, No, Ran, run_calls
from .fork.loop import ending
from .fork.permissions import Ask as Question
from .hiring import Hire, Job, Tell, Worker, both, told
from .layers.l7_agents import (
    AGENT,
    Catalog,
    Forked,
    Fresh,
    Refusal,
    State,
    agent_tool,
    asked_of_fork,
    launched,
    read_call,
    reported,
    restorables,
)
from .layers.l7_agents.call import wants_fork
from .session import Session
from .tools import Context, Output
from .tools.tool import failure

if TYPE_CHECKING:
    from .fork.handover import Handover
    from .steps.forks import Side

# Agents in the background at once: more is a loop that went wrong. Calls of one answer wait for each other beyond as many.
MOST_AT_ONCE = 8
# Answers of one fork: it cannot compact, and each is one more request over all of the conversation.
FORK_ROUNDS = 50
# A conversation, its subagent, and a subagent of that.
DEEPEST = 2
# Of agents that have ended, for a person and for what comes back after a compaction.
MOST_KNOWN = 50
# How long an agent that was told to end may take to do so.
LAST_WORDS = 5.0

STOPPED = "The agent was stopped before it was done."
FULL = f"{MOST_AT_ONCE} agents work in the background already; wait for one of their reports, or run this one without run_in_background."
NO_ROOM = (
    "The agent was not started: the conversation is being closed or has too much going on; run it without run_in_background."
)


class _Batch(NamedTuple):
    """What the calls of one answer share. Forks of one answer begin with the same bytes (A2)."""

    desk: Desk
    handover: Handover | None  # None: none of them wants a fork
    side: Side | None


class Delegating:
    def __init__(self, session: Session, catalog: Catalog, *, hire: Callable[[Hire], Worker], tell: Tell, depth: int = 0) -> None:
        self.catalog = catalog
        self.depth = depth
        self.tool = agent_tool(catalog, self._act)
        self._session = session
        self._hire = hire
        self._tell = tell
        self._jobs: dict[str, Job] = {}
        self._reports: deque[tuple[State, str]] = deque()
        self._todo: queue.SimpleQueue[Callable[[Conversation], None]] = queue.SimpleQueue()
        self._batch: _Batch | None = None
        self._lock = threading.Lock()
        with session.working() as conversation:
            self._c = conversation
        session.host.landed = self._landed
        session.host.restorable.append(lambda: restorables(catalog, self.states))

    @property
    def states(self) -> tuple[State, ...]:
        """Every agent that runs, and those that ended last, oldest first."""
        return tuple(job.state for job in list(self._jobs.values()))

    # The conversation's own thread

    def run(self, calls: Sequence[ToolUse], desk: Desk) -> tuple[Ran, ...]:
        """The calls of one answer; while agents work, what they want of the conversation is done here."""
        if all(call.name != AGENT for call in calls):
            return run_calls(calls, desk)
        with self._session.working() as c:
            lent = replace(desk, ask=self._ask_here(desk.ask, desk.context.abort) if desk.ask is not None else None)
            self._batch = self._prepared(c, calls, lent)
            done: Future[tuple[Ran, ...]] = Future()
            thread = threading.Thread(
                target=copy_context().run, args=(self._run_into, done, calls, lent), name="lamina-agents", daemon=True
            )
            thread.start()
            try:
                while not done.done():
                    self._serve(c, desk.context.abort)
            finally:
                self._batch = None
            self._serve_rest(c)
            return done.result()

    def _run_into(self, done: Future[tuple[Ran, ...]], calls: Sequence[ToolUse], desk: Desk) -> None:
        try:
            done.set_result(run_calls(calls, desk))
        except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits
            done.set_exception(error)
        self._todo.put(lambda _: None)  # whoever waits looks again

    def _prepared(self, c: Conversation, calls: Sequence[ToolUse], desk: Desk) -> _Batch:
        if not any(call.name == AGENT and wants_fork(call.input) for call in calls):
            return _Batch(desk, None, None)
        from .steps.forks import hand_over, side

        _ = self._session.side  # looked up here, in the conversation's own thread
        return _Batch(desk, hand_over(c), side(c))

    def _serve(self, c: Conversation, abort: threading.Event) -> None:
        """One wish, if there is one soon. Ctrl-C reaches only this thread: the agents are told, and waited for."""
        try:
            wish = self._todo.get(timeout=GLANCE)
        except queue.Empty:
            return
        except KeyboardInterrupt:
            abort.set()
            return
        try:
            wish(c)
        except KeyboardInterrupt:
            abort.set()

    def _serve_rest(self, c: Conversation) -> None:
        while True:
            try:
                wish = self._todo.get_nowait()
            except queue.Empty:
                return
            wish(c)

    def _ask_here(self, ask: AskPerson, abort: threading.Event) -> AskPerson:
        """The person is asked in the conversation's own thread, one question at a time."""

        def asked(call: ToolUse, question: Question) -> Consent | No:
            answer: Future[Consent | No] = Future()

            def wish(_: Conversation) -> None:
                if answer.set_running_or_notify_cancel():
                    try:
                        answer.set_result(ask(call, question))
                    except BaseException as error:
                        answer.set_exception(error if isinstance(error, Exception) else Aborted())
                        raise

            self._todo.put(wish)
            while True:
                try:
                    return answer.result(GLANCE)
                except TimeoutError:
                    if abort.is_set():
                        answer.cancel()
                        return "no"
                except CancelledError:
                    return "no"

        return asked

    def land(self) -> None:
        """At the end of a round of tools and behind what the person says: the reports that came meanwhile, as context."""
        with self._session.working() as c:
            turn.land(c)
            while self._reports and not c.log.view.flat.open_calls:
                turn.add_context(c, "agents", reported(*self._reports.popleft()))

    def _landed(self, one: Landed) -> bool:
        job = self._jobs.get(one.name)
        if job is None:
            return False
        if one.error is not None and job.status == "running":  # a fault of ours: whatever it is, it is told
            job.end("failed", LaminaError(f"{type(one.error).__name__}: {one.error}"))
        text = one.value if isinstance(one.value, str) else job.why
        self._reports.append((job.state, text if job.status != "stopped" else ""))
        self._tell_end(self._c, job)
        return True

    def _tell_end(self, c: Conversation, job: Job) -> None:
        from .fork.fork import AGENT as PURPOSE
        from .steps import forks

        seconds = job.seconds or 0.0
        if job.outcome is not None:
            forks.ended(c, PURPOSE, job.outcome, seconds)
        elif job.usage.total:
            purpose = PURPOSE if isinstance(job.wanted, Forked) else "subagent"
            forks.count(c, purpose, job.usage, job.cost, seconds=seconds, rounds=job.rounds)
        if isinstance(job.wanted, Forked) and job.error is not None:
            forks.failed(c, PURPOSE, job.error)
        c.tell("agent_ended", job.state.event())
        ended = [name for name, known in self._jobs.items() if known.status != "running"]
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

    def _running(self) -> list[Job]:
        return [job for job in list(self._jobs.values()) if job.background and job.status == "running"]

    # The threads of calls and jobs

    def _act(self, given: Wire, context: Context) -> Output:
        batch = self._batch
        if batch is None:
            return failure("No agent can be started here.")
        wanted = read_call(given, self.catalog)
        if isinstance(wanted, Refusal):
            return failure(wanted.sentence)
        # What an agent of an agent would bring later, nobody would be there to read.
        background = wanted.background and self.depth == 0
        job = Job(wanted, context.call, background=background)
        with self._lock:
            if background and len(self._running()) >= MOST_AT_ONCE:
                return failure(FULL)
            self._jobs[job.name] = job
        return self._launch(job, batch) if background else self._wait_for(job, batch, context.abort)

    def _launch(self, job: Job, batch: _Batch) -> Output:
        if not self._c.background.start(job.name, lambda abort: self._report(job, batch, abort, None)):
            del self._jobs[job.name]
            return failure(NO_ROOM)
        self._todo.put(lambda c: c.tell("agent_started", job.state.event()))
        return Output(launched(job.state), facts={"agent": job.id, "background": True})

    def _wait_for(self, job: Job, batch: _Batch, abort: threading.Event) -> Output:
        self._todo.put(lambda c: c.tell("agent_started", job.state.event()))
        try:
            text = self._report(job, batch, abort, batch.desk.ask)
        finally:
            if job.status == "running":
                job.end("failed")
            self._todo.put(lambda c: self._tell_end(c, job))
        state = job.state
        facts = {"agent": job.id, "calls": state.calls, "seconds": round(state.seconds, 3), "tokens": state.usage.total}
        return Output(text, is_error=state.status != "done", facts=facts)

    def _report(self, job: Job, batch: _Batch, abort: threading.Event, ask: AskPerson | None) -> str:
        """What the agent has to say in the end: its report, or the sentence that says why there is none."""
        try:
            match job.wanted:
                case Forked():
                    text = self._fork(job, job.wanted, batch, abort, ask)
                case Fresh():
                    text = self._subagent(job, job.wanted, abort, ask)
                case _:
                    assert_never(job.wanted)
        except Aborted:
            job.end("stopped")
            return STOPPED
        except LaminaError as error:
            job.end("failed", error)
            return f"The agent failed: {error}"
        job.end("done")
        return text

    def _heard(self, job: Job) -> None:
        job.called()
        state = job.state
        event = {"id": job.id, "call": job.call, "description": state.description, "background": job.background}
        self._tell({"type": "agent", **event, "calls": state.calls, "seconds": round(state.seconds, 3)})

    def _fork(self, job: Job, wanted: Forked, batch: _Batch, abort: threading.Event, ask: AskPerson | None) -> str:
        from .core.effects import Ask, Effect, drive
        from .fork.fork import AGENT as PURPOSE
        from .fork.fork import ForkOutcome, run_fork
        from .fork.lent import lend_whole
        from .providers.models import cost

        assert batch.handover is not None, "a call that wants a fork was seen before it ran"
        assert batch.side is not None
        lent = replace(lend_whole(batch.desk, abort=abort, ask=ask), on_start=lambda _: self._heard(job))
        side = replace(batch.side, abort=abort, desk=lent)

        def perform(effect: Effect) -> Any:
            result = side(effect)
            if isinstance(effect, Ask):  # counted as it comes: a fork that fails has used it all the same
                job.rounds += 1
                used = result.usage or Usage()
                job.usage, job.cost = job.usage + used, both(job.cost, cost(result.model or effect.request["model"], used))
            return result

        flow = run_fork(batch.handover, asked_of_fork(wanted.prompt), purpose=PURPOSE, rounds=FORK_ROUNDS, tools=True)
        outcome: ForkOutcome = drive(flow, perform)
        job.outcome = outcome
        ended = "rounds" if not outcome.done and outcome.rounds >= FORK_ROUNDS else ending(outcome.reply)
        return told(outcome.reply.text or next(reversed(outcome.texts), ""), ended, outcome.rounds)

    def _subagent(self, job: Job, wanted: Fresh, abort: threading.Event, ask: AskPerson | None) -> str:
        def heard(event: dict[str, Any]) -> None:
            if event["type"] == "tool_call":
                self._heard(job)
            elif event["type"] == "answer":
                job.rounds += 1

        worker = self._hire(Hire(wanted, job.id, abort, ask, heard))
        try:
            answer = worker.run(wanted.prompt)
        finally:
            # Its notes are of no use to anybody now.
            worker.close(0.0)
            session = worker.session
            job.usage = session.usage + session.side_usage
            job.cost = both(session.cost, session.side_cost)
        return told(answer.text, answer.ended, answer.rounds)
