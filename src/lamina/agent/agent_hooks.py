"""The hooks of one agent: which are in force, and what every event tells them about the conversation.

Hooks are looked up at each event, so a change of the settings counts from the next one on. A subagent has the hooks of the settings and
those of its own type. Its events carry the session of the main conversation.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ..conversation.state import Conversation
from ..core.settings import Hooks
from ..core.settings.collection_kinds import HOOK_TABLE
from ..layers.l7_agents.tools import SubagentCall
from ..layers.l7_agents.types import AgentType
from ..session.base import conversation_of
from ..session.session import Session
from ..tools.hooks.protocol import HookOutcome
from ..tools.hooks.run import HookRunner
from ..tools.permissions.request import Mode

if TYPE_CHECKING:
    from .agent import Agent
    from .agent_run import AgentRun

# Claude Code's names of our modes, for which hooks are written.
MODES: Mapping[Mode, str] = {"ask": "default", "accept-edits": "acceptEdits", "read-only": "plan", "all": "bypassPermissions"}


def hook_runner_for(agent: Agent, under: AgentRun | None) -> HookRunner:
    session = agent.session
    kind = under.wanted.kind if under is not None and isinstance(under.wanted, SubagentCall) else None
    about = under.parent.hooks.about if under is not None else partial(_describe, agent)
    own = {"CLAUDE_PROJECT_DIR": str(session.cwd), "CLAUDE_PID": str(os.getpid())}
    own["CLAUDE_CODE_SESSION_ID"] = about()["session_id"] if under is not None else session.id
    return HookRunner(
        hooks=partial(hooks_in_force, session, kind),
        about=about,
        cwd=session.cwd,
        environ={**agent.environ, **own},
        notify=partial(_notify, conversation_of(session)),
        agent={"agent_id": under.id, "agent_type": under.wanted.name} if under is not None else {},
    )


def hooks_in_force(session: Session, kind: AgentType | None) -> Hooks:
    """Return the hooks of the settings as they are now, and those of a subagent's type. Hooks of a working tree need trust."""
    settings = session.settings
    if kind is None or not kind.hooks or settings.disable_all_hooks or settings.bare:
        return settings.hooks
    if kind.source == "project" and not settings.trusted:
        return settings.hooks
    return HOOK_TABLE.join(settings.hooks, kind.hooks)


def _describe(agent: Agent) -> Mapping[str, Any]:
    told = {"session_id": agent.session.id, "transcript_path": str(agent.session.path or "")}
    told |= {"prompt_id": agent.prompt_id} if agent.prompt_id is not None else {}
    return {**told, "permission_mode": MODES[agent.mode]}


def _notify(c: Conversation, said: HookOutcome) -> None:
    c.notify(*said.messages)
    c.notify_once(*said.faults)
