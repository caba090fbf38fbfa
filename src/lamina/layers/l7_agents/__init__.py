"""Layer 7: work that is handed over.

Decides  which agent types there are, what a call of the Agent tool asks for, which tools a subagent gets, what its parent reads of it
Does     nothing itself: `delegating.py` runs forks, subagents and background agents for one conversation
Costs    a fork its directive and its answer, the rest is read from the prompt cache; a subagent a conversation of its own
Switch   an agent opened with tools of one's own has none of it; a deny rule `Agent` refuses every call
Spec     A2-A5, and the agents' part of C4 and C9
"""

from .call import Forked, Fresh, Refusal, agent_tool, read_call
from .files import Catalog, load_kinds
from .kinds import AGENT, FORK, Kind, MemoryScope, picked
from .report import State, Status, announced, asked_of_fork, launched, lost, reported, restorables

__all__ = [
    "AGENT",
    "FORK",
    "Catalog",
    "Forked",
    "Fresh",
    "Kind",
    "MemoryScope",
    "Refusal",
    "State",
    "Status",
    "agent_tool",
    "announced",
    "asked_of_fork",
    "launched",
    "load_kinds",
    "lost",
    "picked",
    "read_call",
    "reported",
    "restorables",
]
