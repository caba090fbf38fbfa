"""A background agent's report as it enters the conversation: whole, or in a file of the session with its beginning shown (layer 1).

The report and the note that it came are one append, in this order: a crash in between has it said again that the agent was lost, never
keeps silent about a report that nobody read. Its file is written before.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..conversation.state import Conversation
from ..core.blocks import Wire, text
from ..core.errors import DiskError
from ..core.records import Attachment, Event, Record, new_id
from ..disk.temp_files import Durability
from ..layers.l1_results.plan import ArrivedResult, ResultBudget, budget_for, weigh
from ..layers.l1_results.source import tape_of
from ..layers.l1_results.spilling import PreviewRoom, most_that_fits, spill
from ..layers.l7_agents.report import KIND, MOST_REPORTED, AgentState, render_report
from ..layers.l7_agents.types import AGENT

STARTED, ENDED, REPORTED = "agent_started", "agent_ended", "agent_reported"
# What is read of a log that says which agents were under way; a session starts no more at once.
MOST_LEFT = 64

Unreported = Sequence[tuple[str, str]]  # id and description of agents whose report is still to come


def event_data(state: AgentState, unreported: Unreported) -> Wire:
    """An event's data: how the agent stands, and whose reports are still to come, so that the newest of these events says it all."""
    return {**state.event(), "unreported": [list(each) for each in unreported]}


def left_behind(c: Conversation) -> list[tuple[str, str]]:
    """Agents whose reports a session before was still to get when it ended."""
    names = (STARTED, ENDED, REPORTED)
    newest = next((event for event in reversed(c.log.events.values()) if event.name in names), None)
    found = newest.data.get("unreported") if newest is not None else c.resumed.get("agents")
    rows = found[:MOST_LEFT] if isinstance(found, list) else []
    return [(row[0], row[1]) for row in rows if isinstance(row, list) and len(row) == 2 and all(isinstance(x, str) for x in row)]


def append_report(c: Conversation, state: AgentState, said: str, unreported: Unreported) -> None:
    uuid, parent, time = c.head()
    budget = budget_for(c.policy.results, c.limits.effective)
    most = min(MOST_REPORTED, budget.threshold(AGENT))
    preview, events = _spilled(c, state, said, budget, most)
    block = text(render_report(state, said, preview=preview, most=most))
    names = (ENDED, REPORTED) if state.status == "lost" else (REPORTED,)
    events += [Event(new_id(), uuid, time, name, event_data(state, unreported)) for name in names]
    records: list[Record] = [Attachment(uuid, parent, time, KIND, (block,)), *events]
    c.append(records)


def _spilled(c: Conversation, state: AgentState, said: str, budget: ResultBudget, most: int) -> tuple[str | None, list[Event]]:
    """The preview of a report that lies in a file; None for one that is shown as far as there is room."""
    one = ArrivedResult(AGENT, len(said), weigh(said, most))
    if not c.settings.spill or c.directory is None or not (one.size > most or budget.exceeds(one)):
        return None, []
    room = PreviewRoom(budget.preview_of(AGENT), budget.preview_weight)
    durability: Durability = "full" if c.settings.transcript_durability == "full" else "process"
    try:
        made = spill(
            c.directory, state.name, tape_of(said, keep=most_that_fits(c)), json=False, preview=room, durability=durability
        )
    except DiskError as error:
        c.notify(f"{error} The report of the agent {state.id} is shown in part.")
        return None, []
    data: Wire = {"tool_use_id": state.name, "tool": AGENT, "path": made.path, "bytes": made.size, "sha256": made.sha256}
    return made.preview, [Event(*c.head(), "spill", data | ({"secrets": list(made.secrets)} if made.secrets else {}))]
