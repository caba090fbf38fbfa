"""How a subagent is opened: its session, tools and memory.

A subagent is the only reader of its own conversation: its transcript lies among its parent's files, its model is its type's at its
parent's provider, and its records say that they belong to a side conversation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ..core.cache import SESSION_HEADER
from ..core.errors import SettingError
from ..layers.l7_agents.tools import agent_tool
from ..layers.l7_agents.types import AGENT, AgentType, pick_tools
from ..memory.memory import agent_memory_mode
from ..prompt.system import system_prompt, with_section
from ..providers import Provider, read_spec
from ..session.base import working
from ..session.open import AGENT_FILE, AgentOf
from ..session.session import Session
from ..tools.tool import Tool, definition
from .agent import Agent
from .agent_run import AgentRun
from .subagent_memory import SubagentMemory

# A conversation, its subagent, and a subagent of that.
DEEPEST = 2


def open_subagent(run: AgentRun, kind: AgentType) -> Agent:
    """A subagent (A4): a conversation, tools, prompt, model and memory of its own; mode, rules and the person are its parent's."""
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
            memory=SubagentMemory(session, kind),
        )
        section = agent.memory.section([tool.name for tool in tools])
        with working(session) as c:
            session._give_prompt(with_section(c.prompt.system, section), c.prompt.tools)
        agent._given = parent._given
        agent.reminders.start(agent._hook, resumed=False, approved=parent.reminders.approved)
    except BaseException:
        session.close(0.0)
        raise
    return agent


def _open_session(run: AgentRun, kind: AgentType, tools: Sequence[Tool]) -> Session:
    """Its transcript lies among its parent's files, as `subagents/agent-ID.jsonl`."""
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
    """The model its type names, at its parent's provider; where there is no such model, its parent's, which is said once."""
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
    parent._notify_once(
        f"The agent type {kind.name} asks for the model {model}, which {provider.name} does not serve; {provider.model} answers."
    )
    return provider
