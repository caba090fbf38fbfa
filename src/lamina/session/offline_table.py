"""The offline table: who takes the model's part for each purpose when no provider answers (O1).

Each room brings the function for its own purpose; it is imported when it is first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from ..core.blocks import Wire
from ..providers.offline import DEFAULT_TABLE, Local, OfflineProvider

ROOMS = {
    "notes": "lamina.layers.l3_notes.offline",
    "summary": "lamina.layers.l4_compact.offline",
    "select": "lamina.memory.recall.selection",
    "extraction": "lamina.layers.l5_extract.offline",
    "agent_summary": "lamina.layers.l7_agents.offline",
    "dream": "lamina.layers.l6_dream.offline",
}


def offline(own: Mapping[str, Local] = DEFAULT_TABLE) -> OfflineProvider:
    """A provider that needs nothing and knows every purpose there is; `own` functions come before ours."""
    return OfflineProvider({**{purpose: _from_room(room) for purpose, room in ROOMS.items()}, **own})


def _from_room(room: str) -> Local:
    def answer(request: Wire) -> list[Wire]:
        local: Callable[[Wire], list[Wire]] = import_module(room).answer
        return local(request)

    return answer
