"""A subagent's memory: the directory of its type, where its type has one, and no other (A5).

Invariants: what lies in somebody else's memory (the project's, the team's, another type's) is refused here, whatever the mode allows;
nothing is recalled and nothing of the project's index is sent. A type that is offered no tool that writes gets Write and Edit for its
memory, and every other file is refused.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..core.errors import DiskError
from ..core.settings import Mode
from ..layers.l7_agents.types import AgentType, can_write
from ..memory.instructions import agent_instructions
from ..memory.memory import Memory, agent_memory_mode, open_agent_memory
from ..memory.store.scopes import AgentMemoryLocation, MemoryLocation, list_agent_roots, locate_agent_memory, locate_memory
from ..memory.tool_writes import find_memory_file
from ..prompt.reminder import IndexText
from ..session.session import Session
from ..tools.tool import FileChange, KeeperVerdict
from .memory_binding import MemoryBinding

NOT_YOURS = "{path} belongs to a memory that is not yours, so it was not written; say in your report what should be remembered."
ONLY_MEMORY = "{path} was not written: this agent may write nothing but memories in {memory}; say in your report what to change."
NO_WRITES = "{path} was not written: this agent may write no files; say in your report what to change."


class SubagentMemory(MemoryBinding):
    def __init__(self, session: Session, kind: AgentType) -> None:
        self._kind = kind
        self._own: AgentMemoryLocation | None = None
        super().__init__(session)
        self._others = self._other_memories(**self._base(session.home)) if session.home is not None else ()

    def _choose_mode(self) -> Mode:
        return agent_memory_mode(self._kind.memory, self._session.settings)

    def _find(self, **base: Any) -> MemoryLocation | None:
        if self._kind.memory is None:
            return None
        self._own = locate_agent_memory(self._kind.name, self._kind.memory, **base)
        return MemoryLocation(self._own.path, None, self._own.scope)

    def _other_memories(self, **base: Any) -> tuple[Path, ...]:
        agents = list_agent_roots(**base)
        try:
            main = locate_memory(**base)
        except DiskError:
            return agents
        return (*agents, main.path, *((main.team,) if main.team is not None else ()))

    def _open(self) -> Memory:
        assert self._own is not None, "asked for where there is a place"
        return open_agent_memory(self._own, settings=self._session.settings, cwd=self._session.cwd)

    def section(self, tools: Sequence[str]) -> str:
        """Of the system prompt, with the whole index; a memory that cannot be opened is said, and there is none then."""
        if self._own is None:
            return ""
        try:
            with self._open() as memory:
                self._session._notify(*memory.notices)
                index = memory.store("private").index()
        except DiskError as error:
            self._without(error)
            self.place = self._own = None
            return ""
        extra = self._session.settings.extra_guidelines
        return agent_instructions(self._own, mode=self.mode, tools=tools, index=index, extra=extra)

    def indexes(self) -> list[IndexText]:
        """Its own stands in its system prompt."""
        return []

    def _logged(self) -> None:
        """Daily logs are the main conversation's."""

    def access(self, *, interactive: bool) -> None:
        """What a subagent learns is its parent's to judge."""

    @property
    def transcripts(self) -> Path | None:
        return None

    def _inboxed(self, sentence: str) -> str:
        """A proposal waits in the inbox of its own memory."""
        return sentence.replace(": lamina inbox accept", f": lamina inbox --agent {self._kind.name} accept")

    def keep(self, change: FileChange) -> KeeperVerdict | None:
        if self.place is not None and find_memory_file(self.place, change.path) is not None:
            kept = super().keep(change)
            self._notices = [self._inboxed(each) for each in self._notices]
            return replace(kept, said=self._inboxed(kept.said)) if kept is not None else None
        if any(_within(root, change.path) for root in self._others):
            return KeeperVerdict(NOT_YOURS.format(path=change.path), is_error=True)
        if not can_write(self._kind):
            said = NO_WRITES if self.place is None else ONLY_MEMORY
            return KeeperVerdict(said.format(path=change.path, memory=self.directory), is_error=True)
        return None


def _within(root: Path, path: Path) -> bool:
    """By whatever spelling or link it leads there."""
    for each in (path, Path(os.path.realpath(path))):
        for above in each.parents:
            try:
                if above == root or os.path.samefile(above, root):
                    return True
            except OSError:
                continue  # a directory that is not there
    return False
