"""A single agent, from its call to its report: a fork or a subagent that runs outside the conversation's thread.

An AgentRun never touches the parent's conversation. Its usage is recorded as it occurs, so it counts even if the agent fails. Its
messages and calls on the way are sent to event listeners, never to the parent's model.

A background agent's report enters the conversation in the conversation's own thread: in full, or moved to a file of the session with a
preview (layer 1). The file is written first. The report and the event that it arrived are one append, in this order. After a crash in
between, the agent is reported as lost once more; an unread report is never hidden.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, assert_never
from uuid import uuid4

from msgspec.structs import replace

from ..conversation.state import Conversation
from ..core.blocks import Wire, text
from ..core.effects import Ask, Effect, drive
from ..core.errors import Aborted, DiskError, LaminaError
from ..core.records import Attachment, Event, Record, new_id
from ..core.reply import Reply
from ..core.usage import Usage
from ..disk.temp_files import Durability
from ..fork.loop import Ended, ending
from ..fork.tool_runner import AskPermission
from ..language.wording import counted
from ..layers.l1_results.plan import ArrivedResult, ResultBudget, budget_for, weigh
from ..layers.l1_results.source import tape_of
from ..layers.l1_results.spilling import PreviewRoom, most_that_fits, spill
from ..layers.l7_agents.messages import AskedToEnd
from ..layers.l7_agents.report import KIND, MOST_REPORTED, NOTHING_SAID, AgentState, Status, fork_directive, render_report
from ..layers.l7_agents.tools import ForkCall, SubagentCall
from ..layers.l7_agents.types import AGENT, FORK
from ..prompt.reminder import later_context
from ..providers.models import Cost, cost
from ..tools.tool import Context
from .driver import result_event
from .messaging import Messaging

if TYPE_CHECKING:
    from ..conversation.forks import ForkDriver
    from ..fork.fork import ForkOutcome
    from ..fork.handover import Handover
    from ..layers.l7_agents.summary import LastExchange
    from ..tools.hooks.run import HookRunner
    from .agent import Agent


# Limit for the answers of one fork: it cannot compact, and each answer is another request over the whole conversation.
FORK_ROUNDS = 50
STOPPED = "The agent was stopped before it finished."
ASKED = "[The agent was asked to end, and did so before it finished.]"
UNREAD = "[{count} sent to it arrived too late to be read.]"
# Maximum number of a subagent's notices that are passed on to the user.
MOST_NOTICES = 20


class AgentRun:
    def __init__(
        self,
        parent: Agent,
        mail: Messaging,
        wanted: ForkCall | SubagentCall,
        context: Context,
        *,
        ask: AskPermission | None,
        background: bool,
        news: threading.Event,
    ) -> None:
        """`context` belongs to the call. Without `ask`, questions become denials. `news` is set on activity of a background agent."""
        self.id = uuid4().hex[:8]
        self.parent = parent
        self.wanted = wanted
        self.call = context.call
        self.abort = context.abort  # ends the agent, and is never cleared; a background agent gets its own
        self.ask = ask
        self.background = background
        self.mail = mail.of_agent(wanted.label or self.id, wanted.description, wanted.name)
        self.began = time.monotonic()
        self.since = datetime.now(UTC).isoformat(timespec="seconds")
        self.seconds: float | None = None
        self.status: Status = "running"
        self.calls = 0
        self.rounds = 0
        self.usage = Usage()
        self.cost = Cost()
        self.outcome: ForkOutcome | None = None  # for a fork
        self.error: LaminaError | None = None
        self.notices: tuple[str, ...] = ()  # sentences for the user
        self.over = threading.Event()
        self.summary = ""  # its activity when last asked
        self.doing = ""  # its newest call that names something
        self.asked_at = self.began
        self.said = ""  # its latest text
        self.seen: LastExchange | None = None
        self._news = news
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return f"agent-{self.id}"

    @property
    def state(self) -> AgentState:
        return AgentState(
            id=self.id,
            type=self.wanted.name,
            description=self.wanted.description,
            background=self.background,
            status=self.status,
            seconds=self.seconds if self.seconds is not None else time.monotonic() - self.began,
            calls=self.calls,
            rounds=self.rounds,
            usage=self.usage,
            usd=self.cost.usd,
            why=str(self.error) if self.error is not None else "",
            call=self.call,
            summary=self.summary,
            label=self.wanted.label,
        )

    def end(self, status: Status, error: LaminaError | None = None) -> None:
        self.seconds = time.monotonic() - self.began
        self.error = error
        self.status = status
        self.seen = None  # it holds the whole conversation
        self.over.set()

    def report(self, side: ForkDriver, handover: Handover | None) -> str:
        """Run the agent and return its report, or a sentence with the reason for its absence. Forks of one answer share the handover, so
        they begin with the same bytes. It is None if no call of the answer asks for a fork."""
        try:
            text = self._report(side, handover)
        finally:
            unread = self.mail.finish()
            self.over.set()
            self._news.set()
        return f"{text}\n{UNREAD.format(count=counted(unread, 'message'))}" if unread and text != STOPPED else text

    def _report(self, side: ForkDriver, handover: Handover | None) -> str:
        try:
            match self.wanted:
                case ForkCall():
                    text = self._run_fork(self.wanted, side, handover)
                case SubagentCall():
                    text = self._run_subagent(self.wanted)
                case _:
                    assert_never(self.wanted)
        except Aborted:
            self.end("stopped")
            return STOPPED
        except AskedToEnd:
            self.end("stopped")
            return f"{self.said}\n{ASKED}".strip()
        except LaminaError as error:
            self.end("failed", error)
            return f"The agent failed: {error}"
        self.end("done")
        return text

    def _run_fork(self, wanted: ForkCall, side: ForkDriver, handover: Handover | None) -> str:
        from ..fork.fork import AGENT, run_fork

        assert handover is not None, "a call that asks for a fork was not seen before it ran"
        assert side.tool_runner is not None
        hooks = self.parent.hooks.for_agent(self.id, FORK)
        lent = replace(
            side.tool_runner.clone(abort=self.abort, ask=self.ask),
            tools=self.mail.with_send_tool(side.tool_runner.tools),
            on_start=lambda call: self._count_call(call.name, call.input),
            on_end=lambda ran: self._follow(result_event(ran)),
            hooks=hooks,
        )
        own = replace(side, abort=self.abort, tool_runner=lent)

        def perform(effect: Effect) -> Any:
            result = own(effect)
            if isinstance(effect, Ask):
                self.saw(effect.request, result)
                used = result.usage or Usage()
                self.usage, self.cost = self.usage + used, self.cost + cost(result.model or effect.request["model"], used)
                self.hear({"type": "answer", "reply": result})
            return result

        directive = "\n\n".join((fork_directive(wanted.prompt), *self._start_hooks(hooks)))
        flow = run_fork(handover, directive, purpose=AGENT, rounds=FORK_ROUNDS, tools=True, mail=self.mail.take_texts)
        self.outcome = outcome = drive(flow, perform)
        ended: Ended = "rounds" if not outcome.done and outcome.rounds >= FORK_ROUNDS else ending(outcome.reply)
        text = outcome.reply.text or next(reversed(outcome.texts), "")
        # A fork is one run: it is not sent back to work.
        told = {"stop_hook_active": False, "agent_transcript_path": "", "last_assistant_message": text}
        hooks.notify(hooks.run("SubagentStop", told, matching=FORK, abort=self.abort))
        return report_text(text, ended, outcome.rounds)

    def _start_hooks(self, hooks: HookRunner) -> Iterator[str]:
        """Run the SubagentStart hooks, and return their context for the agent's model."""
        said = hooks.run("SubagentStart", {}, matching=self.wanted.name, abort=self.abort)
        refusal = (f"A SubagentStart hook blocked, which has no effect: {said.block}",) if said.block is not None else ()
        hooks.notify(replace(said, faults=(*said.faults, *refusal)))
        yield from (later_context("hook", words) for words in said.context)

    def _run_subagent(self, wanted: SubagentCall) -> str:
        from .subagent import open_subagent

        agent = open_subagent(self, wanted.kind)
        session, said = agent.session, tuple[str, ...]()
        try:
            agent.reminders.add_texts("hook", self._start_hooks(agent.hooks))
            answer = agent.run(wanted.prompt)
            said = answer.notices
        finally:
            # Nobody needs its notes any more.
            agent.close(0.0)
            status = session.status
            self.usage, self.cost = status.usage + status.side_usage, status.cost + status.side_cost
            self.notices = tuple(dict.fromkeys((*session.notices, *said)))[:MOST_NOTICES]
        return report_text(answer.text, answer.ended, answer.rounds)

    # Events of the agent, in its own thread

    def hear(self, event: dict[str, Any]) -> None:
        """Handle an event of the agent, and pass answers and results on to programs that follow it."""
        if event["type"] == "tool_call":
            self._count_call(event["name"], event["input"])
        elif event["type"] == "answer":
            self.rounds += 1
            self.said = event["reply"].text.strip() or self.said
            self._follow(event)
        elif event["type"] == "tool_result":
            self._follow(event)

    def saw(self, request: dict[str, Any], reply: Reply) -> None:
        """Remember the last request and answer of a background agent. A foreground agent needs no summary, since its calls are shown."""
        if self.background:
            from ..layers.l7_agents.summary import LastExchange

            self.seen = LastExchange(request, tuple(block.wire for block in reply.blocks), time.monotonic())
            self._news.set()

    def _count_call(self, tool: str, given: object) -> None:
        from ..layers.l7_agents.summary import describe_activity

        with self._lock:
            self.calls += 1
            self.doing = (describe_activity(tool, given) if isinstance(given, dict) else "") or self.doing
        self.show()
        if self.parent.agents is not None:
            self.parent.agents.write_states()  # under a millisecond; a call takes longer

    def show(self) -> None:
        """Send the agent's progress to event listeners."""
        state = self.state
        event = {"id": state.id, "call": state.call, "description": state.description, "background": state.background}
        event |= {"summary": state.summary, "calls": state.calls, "seconds": round(state.seconds, 3)}
        self.parent.tell({"type": "agent", **event})

    def _follow(self, event: dict[str, Any]) -> None:
        self.parent.tell({"type": "agent_event", "id": self.id, "call": self.call, "event": event})


def report_text(text: str, ended: Ended, rounds: int) -> str:
    said = text.strip() or NOTHING_SAID
    match ended:
        case "answered":
            return said
        case "rounds":
            return f"{said}\n[The agent was not finished after {counted(rounds, 'answer')}.]"
        case "cut off":
            return f"{said}\n[The report was cut off at the maximum length of an answer.]"
        case "refused":
            return f"{said}\n[The agent's model declined to continue.]"
        case "stopped":
            return f"[A hook stopped the agent: {said}]"
        case _:
            assert_never(ended)


STARTED, ENDED, REPORTED = "agent_started", "agent_ended", "agent_reported"
# Limit for agents read back from a log. A session never starts more at once.
MOST_LEFT = 64

Unreported = Sequence[tuple[str, str]]  # id and description of agents whose report is pending


def event_data(state: AgentState, unreported: Unreported) -> Wire:
    """Return an event's data: the agent's state and all pending reports, so that the newest such event is complete."""
    return {**state.event(), "unreported": [list(each) for each in unreported]}


def left_behind(c: Conversation) -> list[tuple[str, str]]:
    """Return the agents whose reports were pending when an earlier session ended."""
    names = (STARTED, ENDED, REPORTED)
    newest = next((event for event in reversed(c.log.events.values()) if event.name in names), None)
    found = newest.data.get("unreported") if newest is not None else c.resumed.get("agents")
    rows = found[:MOST_LEFT] if isinstance(found, list) else []
    return [(row[0], row[1]) for row in rows if isinstance(row, list) and len(row) == 2 and all(isinstance(x, str) for x in row)]


def append_report(c: Conversation, state: AgentState, said: str, unreported: Unreported) -> None:
    uuid, parent, time = c.head()
    budget = budget_for(c.policy.results, c.limits.effective, scale=c.limits.scale)
    most = min(MOST_REPORTED, budget.threshold(AGENT))
    preview, events = _spill_report(c, state, said, budget, most)
    block = text(render_report(state, said, preview=preview, most=most))
    names = (ENDED, REPORTED) if state.status == "lost" else (REPORTED,)
    events += [Event(new_id(), uuid, time, name, event_data(state, unreported)) for name in names]
    records: list[Record] = [Attachment(uuid, parent, time, KIND, (block,)), *events]
    c.append(records)


def _spill_report(
    c: Conversation, state: AgentState, said: str, budget: ResultBudget, most: int
) -> tuple[str | None, list[Event]]:
    """Return the preview of a report that was moved to a file. None: it is shown in the conversation, as far as there is room."""
    one = ArrivedResult(AGENT, len(said), weigh(said, most))
    if not c.settings.spill or c.directory is None or not (one.size > most or budget.exceeds(one)):
        return None, []
    room = PreviewRoom(budget.preview_of(AGENT), budget.preview_weight, c.prompt.reach, budget.end_percent)
    durability: Durability = "full" if c.settings.transcript_durability == "full" else "process"
    try:
        made = spill(
            c.directory, state.name, tape_of(said, keep=most_that_fits(c)), json=False, preview=room, durability=durability
        )
    except DiskError as error:
        c.notify(f"{error} The report of agent {state.id} is shown only in part.")
        return None, []
    data: Wire = {"tool_use_id": state.name, "tool": AGENT, "path": made.path, "bytes": made.size, "sha256": made.sha256}
    return made.preview, [Event(*c.head(), "spill", data | ({"secrets": list(made.secrets)} if made.secrets else {}))]
