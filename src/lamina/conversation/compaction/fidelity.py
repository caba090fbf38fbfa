"""What of a part that left the view the model can still answer (K4): measured at each compaction, told with it, never a reason to stop.

"One call away" means that the model has the Expand tool, or that the transcript lies on disk and the model has a tool that reads files:
every summary names both ways. A session whose model has neither has lost what its context does not hold; a person can still open it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.view import Item
from ..state import Conversation
from .probes import Fidelity, drawn, judged, texts_of

EXPAND = "Expand"
# Names under which agents have a tool that reads a file.
READERS = frozenset({"Read", "Grep", "Bash", "read_file", "grep", "bash", "shell", "run_command"})


def fidelity(c: Conversation, before: Sequence[Item]) -> Fidelity:
    """`before`: the view as it was. What left it is what is asked for."""
    now = c.log.view.items
    stays = {item.uuid for item in now}
    facts = drawn([item for item in before if item.uuid not in stays])
    return judged(facts, texts_of(now), reachable=reachable(c))


def reachable(c: Conversation) -> bool:
    tools = {str(tool.get("name") or (tool.get("function") or {}).get("name")) for tool in c.prompt.tools}
    return EXPAND in tools or (c.store.path is not None and not tools.isdisjoint(READERS))
