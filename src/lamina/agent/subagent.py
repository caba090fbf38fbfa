"""The session of a subagent.

A subagent is the only reader of its own conversation: its transcript lies among its parent's files, its model is its type's at its
parent's provider, and its records say that they belong to a side conversation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..core.cache import SESSION_HEADER
from ..core.errors import SettingError
from ..layers.l7_agents.call import agent_tool
from ..layers.l7_agents.files import Catalog
from ..layers.l7_agents.types import Kind
from ..prompt.system import system_prompt
from ..providers import Provider, read_spec
from ..session.open import AGENT_FILE, AgentOf
from ..session.session import Session
from ..tools.tool import Tool, definition


def subagent_session(
    parent: Session, agent: str, kind: Kind, tools: Sequence[Tool], catalog: Catalog | None, given: Mapping[str, Any]
) -> Session:
    """Its transcript lies among its parent's files, as `subagents/agent-ID.jsonl`."""
    provider = _provider_for(kind, parent)
    shown = (*tools, agent_tool(catalog)) if catalog is not None else tools
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
        tools=[definition(tool) for tool in shown],
        session_id=f"{AGENT_FILE}{agent}",
        agent_of=AgentOf(parent.id, directory),
        options={"extra_headers": {SESSION_HEADER: f"{AGENT_FILE}{agent}"}},
        **given,
    )


def _provider_for(kind: Kind, parent: Session) -> Provider:
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
