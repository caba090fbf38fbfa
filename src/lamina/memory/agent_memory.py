"""An agent type's own memory (A5): how it is opened, and what the agent is told of it.

Owns the wording, which lies in `prompts/`, and which mode holds for which scope. The store is the same as for every other memory:
journal, redaction, index and modes count. What git is to leave alone in a working tree is written once, when the directory is made:
a crash in between leaves it out until the next open.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ..core.errors import DiskError
from ..core.fence import escape, fence
from ..core.prompt_files import prompt_sections
from ..core.settings import Mode, Scope, Settings
from ..core.settings.kinds import printable
from ..disk.temp_files import Durability
from .instructions import LONGEST_PATH, types_of
from .memory import Memory
from .store.directory import GUARD, DirectoryStore
from .store.history import DIRECTORY as HISTORY
from .store.inbox import DIRECTORY as INBOX
from .store.index import loaded
from .store.modes import GatedStore
from .store.scopes import AgentPlace, AgentScope, Place, project_root

SCOPES: Mapping[AgentScope, Scope] = {"user": "agentUser", "project": "agentProject", "local": "agentLocal"}
IGNORED = ".gitignore"
# Of a project's the memories are committed; what they were before, what waits for a yes and our locks are nobody else's.
_KEPT_OUT: Mapping[AgentScope, bytes] = {
    "project": f"# Lamina: memories are shared, their history is not.\n{HISTORY}/\n{INBOX}/\n{GUARD}\n{IGNORED}\n".encode(),
    "local": b"# Lamina: this machine's alone.\n*\n",
}


def mode_for(scope: AgentScope | None, settings: Settings) -> Mode:
    """B5, F3; off for a type that has no memory."""
    return settings.memory_mode[SCOPES[scope]] if scope is not None and settings.memory else "off"


def open_agent_memory(place: AgentPlace, *, settings: Settings, cwd: str | os.PathLike[str]) -> Memory:
    """Made if it is missing; DiskError where that can't be."""
    durability: Durability = "process" if settings.durability == "process" else "full"
    store = DirectoryStore.open(place.path, scope=SCOPES[place.scope], durability=durability, below=place.below)
    kept_out = _KEPT_OUT.get(place.scope) if place.below is not None else None
    try:
        if kept_out is not None and store.root.stat(IGNORED) is None:
            store.root.replace(IGNORED, kept_out, durability=durability)
    except DiskError as error:
        store.notices += (str(error),)
    gated = GatedStore(store, mode_for(place.scope, settings))
    return Memory(Place(place.path, None, place.scope), gated, project=project_root(cwd))


def agent_instructions(place: AgentPlace, *, mode: Mode, tools: Sequence[str], index: str, extra: str | None = None) -> str:
    """The section of an agent's system prompt; empty where its memory is off. `index` is the index file's text."""
    if mode == "off":
        return ""
    own, shared = prompt_sections(__file__, "agent"), prompt_sections(__file__, "memory")
    writes = mode != "read-only" and "Write" in tools
    path = escape(printable(str(place.path), LONGEST_PATH))
    listed = loaded(index)
    parts = [
        own["opening"].format(memory=path, scope=own[place.scope]),
        own["asked"] if writes else shared["read-only"],
        *((shared["types"], *types_of(team=False), shared["not saved"], shared["saving"]) if writes else ()),
        shared["confirm"] if writes and mode == "confirm" else "",
        shared["reading"],
        shared["recommending"],
        (extra or "").strip(),
        f"{own['index']}\n\n{fence('memory-index', listed) if listed else own['empty']}",
    ]
    return "\n\n".join(part for part in parts if part)
