"""Opens a subagent: its session, tools and memory.

Only the subagent itself reads its conversation. Its transcript is kept with its parent's files, its model is its type's at the parent's
provider, and its records are marked as a side conversation.

Its memory is the directory of its type, if the type has one, and no other. Invariants: writes to any other memory (the project's, the
team's, another type's) are refused here, whatever the mode allows; nothing is recalled, and the project's index is not sent. A type
without tools that write gets Write and Edit for its memory, and every other file is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..core.cache import SESSION_HEADER
from ..core.errors import DiskError, SettingError
from ..core.settings import Mode
from ..layers.l7_agents.tools import agent_tool
from ..layers.l7_agents.types import AGENT, AgentType, can_write, pick_tools
from ..memory.guard.sources import Sources, by_agent
from ..memory.instructions import agent_instructions
from ..memory.memory import Memory, agent_memory_mode, open_agent_memory
from ..memory.store.scopes import AgentMemoryLocation, MemoryLocation, list_agent_roots, locate_agent_memory, locate_memory
from ..memory.tool_writes import find_memory_file
from ..prompt.reminder import IndexText
from ..prompt.system import system_prompt
from ..providers import Provider, read_spec
from ..session.base import context_of, conversation_of
from ..session.memory_binding import MemoryBinding
from ..session.open import AGENT_FILE, AgentOf
from ..session.session import Session
from ..tools.tool import FileChange, KeeperVerdict, Tool, definition
from .agent import Agent
from .agent_run import AgentRun

# A conversation, its subagent, and a subagent of that.
DEEPEST = 2


def open_subagent(run: AgentRun, kind: AgentType) -> Agent:
    """Open a subagent with its own conversation, tools, prompt, model and memory. It shares its parent's mode, rules and user."""
    parent = run.parent
    assert parent.agents is not None
    picked_tools = pick_tools(kind, parent.tools, remembers=agent_memory_mode(kind.memory, parent.session.settings) != "off")
    deeper = parent._depth + 1 < DEEPEST and any(tool.name == AGENT for tool in picked_tools)
    catalog = parent.agents.catalog if deeper else None
    tools = tuple(tool for tool in picked_tools if tool.name != AGENT)
    session = _open_session(run, kind, (*tools, agent_tool(catalog)) if catalog is not None else tools)
    try:
        agent = Agent(
            session,
            tools=tools,
            ask=run.ask,
            environ=parent.environ,
            on_event=run.hear,
            catalog=catalog,
            under=run,
            memory=SubagentMemory(session, kind, parent.memory),
        )
        agent._given = parent._given
        context_of(session).begin(hook=agent._hook, approved=parent.reminders.approved)
    except BaseException:
        session.close(0.0)
        raise
    return agent


def _open_session(run: AgentRun, kind: AgentType, tools: Sequence[Tool]) -> Session:
    """Open its session. The transcript is kept with its parent's files, as `subagents/agent-ID.jsonl`."""
    parent, given = run.parent.session, run.parent._given
    provider = _provider_for(kind, parent)
    directory = parent.path.with_suffix("") if parent.path is not None else None
    if provider.model != parent.provider.model:
        given = {name: value for name, value in given.items() if name not in ("window", "max_tokens")}
    return Session(
        provider,
        cwd=parent.cwd,
        home=parent.home,
        in_memory=directory is None,
        settings=parent.settings,
        system=system_prompt(base=kind.prompt, cwd=parent.cwd, tools=(), platform=sys.platform),
        tools=[definition(tool) for tool in tools],
        session_id=f"{AGENT_FILE}{run.id}",
        agent_of=AgentOf(parent.id, directory),
        options={"extra_headers": {SESSION_HEADER: f"{AGENT_FILE}{run.id}"}},
        **given,
    )


def _provider_for(kind: AgentType, parent: Session) -> Provider:
    """Return the type's model at the parent's provider. If that does not exist, use the parent's model and notify once."""
    provider, model = parent.provider, kind.model
    if model is None:
        return provider
    try:
        named = read_spec(model)
    except SettingError:
        named = None
    change: Callable[[str], Provider] | None = getattr(provider, "with_model", None)
    if named is not None and named.provider == provider.name and change is not None:
        return provider if named.model == provider.model else change(named.model)
    conversation_of(parent).notify_once(
        f"The agent type {kind.name} uses the model {model}, which {provider.name} does not serve. {provider.model} is used instead."
    )
    return provider


NOT_YOURS = "{path} was not written: it belongs to a memory that is not yours. Say in your report what should be remembered."
ONLY_MEMORY = "{path} was not written: this agent may only write memories in {memory}. Say in your report what to change."
NO_WRITES = "{path} was not written: this agent cannot write files. Say in your report what to change."


class SubagentMemory(MemoryBinding):
    def __init__(self, session: Session, kind: AgentType, parent: MemoryBinding) -> None:
        self._kind = kind
        self._parent = parent
        self._own: AgentMemoryLocation | None = None
        super().__init__(session)
        self._others = self._other_memories(**self._base(session.home)) if session.home is not None else ()

    @property
    def mode(self) -> Mode:
        return agent_memory_mode(self._kind.memory, self.c.settings)

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

    def open(self) -> Memory:
        assert self._own is not None, "only called if there is a memory"
        return open_agent_memory(self._own, settings=self.c.settings, cwd=self.c.cwd)

    def section(self, tools: Sequence[str], *, interactive: bool = False) -> str:
        """Return the memory section of the system prompt, with the whole index. If the memory cannot be opened, notify and do without."""
        if self._own is None:
            return ""
        try:
            with self.open() as memory:
                self.c.notify(*memory.notices)
                index = memory.store("private").index()
        except DiskError as error:
            self._disable(error)
            self.place = self._own = None
            return ""
        extra = self.c.settings.extra_guidelines
        return agent_instructions(self._own, mode=self.mode, tools=tools, index=index, extra=extra)

    def sources(self) -> Sources:
        """Return what it has heard. Its task was written by the parent's model; the user's words are those in the parent's conversation."""
        return by_agent(super().sources())._replace(said=self._parent.sources().said)

    def indexes(self) -> list[IndexText]:
        """Return nothing: its own index is part of its system prompt."""
        return []

    def _log_time(self) -> None:
        """Return None: daily logs belong to the main conversation."""

    def access(self, *, interactive: bool) -> None:
        """Return None: the parent judges what a subagent learned."""

    @property
    def transcripts(self) -> Path | None:
        return None

    @property
    def inbox(self) -> str:
        return f"lamina inbox --agent {self._kind.name}"

    def keep(self, change: FileChange) -> KeeperVerdict | None:
        if self.place is not None and find_memory_file(self.place, change.path) is not None:
            return super().keep(change)
        if any(_within(root, change.path) for root in self._others):
            return KeeperVerdict(NOT_YOURS.format(path=change.path), is_error=True)
        if not can_write(self._kind):
            said = NO_WRITES if self.place is None else ONLY_MEMORY
            return KeeperVerdict(said.format(path=change.path, memory=self.directory), is_error=True)
        return None


def _within(root: Path, path: Path) -> bool:
    """Whether the path leads into the directory, by any spelling or link."""
    for each in (path, Path(os.path.realpath(path))):
        for above in each.parents:
            try:
                if above == root or os.path.samefile(above, root):
                    return True
            except OSError:
                continue  # the directory does not exist
    return False
