"""How an agent is run to its report, in a thread that is not the conversation's: as a fork, or as a subagent.

Nothing here touches the parent's conversation. What the agent uses is noted on its Job as it comes, so that one that fails has used it
all the same; what it says and calls on the way is told to whoever watches, never to the parent's model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

from msgspec.structs import replace

from ..core.effects import Ask, Effect, drive
from ..core.errors import Aborted, LaminaError
from ..core.usage import Usage
from ..fork.loop import Ended, ending
from ..fork.tool_runner import AskPerson, Desk
from ..layers.l7_agents.queues import AskedToEnd
from ..layers.l7_agents.report import NOTHING_SAID, fork_directive
from ..layers.l7_agents.tools import ForkCall, SubagentCall
from ..providers.models import cost
from .messaging import Mailing
from .subagent import Hire, Job, Saw, Tell, Worker

if TYPE_CHECKING:
    from ..conversation.forks import ForkDriver
    from ..fork.handover import Handover

# Answers of one fork: it cannot compact, and each is one more request over all of the conversation.
FORK_ROUNDS = 50
STOPPED = "The agent was stopped before it was done."
ASKED = "[The agent was asked to end, and did so before it was done.]"
UNREAD = "[{count} of the messages sent to it came too late for it to read.]"
# Sentences of one subagent that its parent's person is told.
MOST_NOTICES = 20


class Batch(NamedTuple):
    """What the calls of one answer share. Forks of one answer begin with the same bytes (A2)."""

    desk: Desk
    handover: Handover | None  # None: none of them wants a fork
    side: ForkDriver | None


class Run(NamedTuple):
    """What one agent is run with. `ask` None: nobody can be asked for it."""

    job: Job
    batch: Batch
    abort: threading.Event
    ask: AskPerson | None
    hire: Callable[[Hire], Worker]
    tell: Tell
    mail: Mailing
    saw: Saw

    def report(self) -> str:
        """What the agent has to say in the end: its report, or the sentence that says why there is none."""
        try:
            text = self._report()
        finally:
            unread = self.mail.finish()
        return f"{text}\n{UNREAD.format(count=unread)}" if unread and text != STOPPED else text

    def _report(self) -> str:
        job = self.job
        try:
            match job.wanted:
                case ForkCall():
                    text = _fork(self, job.wanted)
                case SubagentCall():
                    text = _subagent(self, job.wanted)
                case _:
                    assert_never(job.wanted)
        except Aborted:
            job.end("stopped")
            return STOPPED
        except AskedToEnd:
            job.end("stopped")
            return f"{job.said}\n{ASKED}".strip()
        except LaminaError as error:
            job.end("failed", error)
            return f"The agent failed: {error}"
        job.end("done")
        return text

    def called(self) -> None:
        """It has called a tool: one more sign of life for a person to see."""
        job = self.job
        job.called()
        state = job.state
        event = {
            "id": job.id,
            "call": job.call,
            "description": state.description,
            "background": job.background,
            "summary": job.summary,
        }
        self.tell({"type": "agent", **event, "calls": state.calls, "seconds": round(state.seconds, 3)})

    def heard(self, event: dict[str, Any]) -> None:
        """What it said or got back, for programs that follow it."""
        self.tell({"type": "agent_event", "id": self.job.id, "call": self.job.call, "event": event})


def _fork(run: Run, wanted: ForkCall) -> str:
    from ..fork.fork import AGENT, ForkOutcome, run_fork
    from ..fork.fork_tools import lend_whole
    from .driver import CallEvents

    job, batch = run.job, run.batch
    assert batch.handover is not None, "a call that wants a fork was seen before it ran"
    assert batch.side is not None
    lent = replace(
        lend_whole(batch.desk, abort=run.abort, ask=run.ask),
        tools=run.mail.among(batch.desk.tools),
        on_start=lambda _: run.called(),
        on_end=CallEvents(run.heard).ended,
    )
    side = replace(batch.side, abort=run.abort, desk=lent)

    def perform(effect: Effect) -> Any:
        result = side(effect)
        if isinstance(effect, Ask):
            job.rounds += 1
            job.said = result.text.strip() or job.said
            run.saw(effect.request, result)
            used = result.usage or Usage()
            job.usage, job.cost = job.usage + used, job.cost + cost(result.model or effect.request["model"], used)
            run.heard({"type": "answer", "reply": result})
        return result

    directive = fork_directive(wanted.prompt)
    flow = run_fork(batch.handover, directive, purpose=AGENT, rounds=FORK_ROUNDS, tools=True, mail=run.mail.texts)
    outcome: ForkOutcome = drive(flow, perform)
    job.outcome = outcome
    ended: Ended = "rounds" if not outcome.done and outcome.rounds >= FORK_ROUNDS else ending(outcome.reply)
    return told(outcome.reply.text or next(reversed(outcome.texts), ""), ended, outcome.rounds)


def _subagent(run: Run, wanted: SubagentCall) -> str:
    job = run.job

    def heard(event: dict[str, Any]) -> None:
        if event["type"] == "tool_call":
            run.called()
        elif event["type"] in ("answer", "tool_result"):
            if event["type"] == "answer":
                job.rounds += 1
                job.said = event["reply"].text.strip() or job.said
            run.heard(event)

    worker = run.hire(Hire(wanted, job.id, run.abort, run.ask, heard, run.mail, run.saw))
    session, said = worker.session, tuple[str, ...]()
    try:
        answer = worker.run(wanted.prompt)
        said = answer.notices
    finally:
        # Its notes are of no use to anybody now.
        worker.close(0.0)
        job.usage = session.usage + session.status.side_usage
        job.cost = session.cost + session.status.side_cost
        job.notices = tuple(dict.fromkeys((*session.notices, *said)))[:MOST_NOTICES]
    return told(answer.text, answer.ended, answer.rounds)


def told(text: str, ended: Ended, rounds: int) -> str:
    said = text.strip() or NOTHING_SAID
    match ended:
        case "answered":
            return said
        case "rounds":
            return f"{said}\n[The agent was not done after {rounds} answers.]"
        case "cut off":
            return f"{said}\n[The report was cut off at the length an answer may have.]"
        case "refused":
            return f"{said}\n[The agent's model declined to go on.]"
        case _:
            assert_never(ended)
