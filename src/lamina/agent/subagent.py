"""What an agent is started with, how it stands, and the session of a subagent.

A subagent is the only reader of its own conversation: its transcript lies among its parent's files, its model is its type's at its
parent's provider, and its records say that they belong to a side conversation.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias
from uuid import uuid4

from ..core.cache import SESSION_HEADER
from ..core.errors import LaminaError, SettingError
from ..core.reply import Reply
from ..core.usage import Usage
from ..disk.settings_files import user_home
from ..fork.loop import Ended
from ..fork.tool_runner import AskPerson
from ..layers.l7_agents.report import AgentState, Status
from ..layers.l7_agents.tools import ForkCall, SubagentCall, agent_tool
from ..layers.l7_agents.types import AgentType, Catalog
from ..permissions.rules import PermissionRules
from ..permissions.verdicts import Mode
from ..prompt.system import system_prompt, with_section
from ..providers import Provider, read_spec
from ..providers.models import Cost
from ..session.open import AGENT_FILE, AgentOf
from ..session.session import Session
from ..tools.tool import Tool, definition
from .messaging import Mailing

if TYPE_CHECKING:
    from ..fork.fork import ForkOutcome
    from ..layers.l7_agents.summary import LastExchange

Tell: TypeAlias = Callable[[dict[str, Any]], None]
# What an agent sent and was answered.
Saw: TypeAlias = Callable[[dict[str, Any], Reply], None]


class Answered(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def ended(self) -> Ended: ...
    @property
    def rounds(self) -> int: ...
    @property
    def notices(self) -> tuple[str, ...]: ...


class Worker(Protocol):
    """A subagent: an agent with a session of its own."""

    session: Session

    def run(self, prompt: str) -> Answered: ...
    def close(self, timeout: float = ...) -> None: ...


class Hire(NamedTuple):
    """What a subagent is opened with."""

    wanted: SubagentCall
    id: str
    abort: threading.Event  # ends it; it is not cleared
    ask: AskPerson | None
    heard: Tell
    mail: Mailing
    saw: Saw


class Under(NamedTuple):
    """What a subagent has of the agent that started it."""

    abort: threading.Event
    mode: Callable[[], Mode]
    rules: Callable[[], PermissionRules]
    depth: int
    kind: AgentType
    mail: Mailing
    saw: Saw


class Job:
    """An agent, from its call to its end."""

    def __init__(self, wanted: ForkCall | SubagentCall, call: str, *, background: bool) -> None:
        self.id = uuid4().hex[:8]
        self.wanted = wanted
        self.call = call
        self.background = background
        self.began = time.monotonic()
        self.seconds: float | None = None
        self.status: Status = "running"
        self.why = ""
        self.calls = 0
        self.rounds = 0
        self.usage = Usage()
        self.cost = Cost()
        self.outcome: ForkOutcome | None = None  # a fork's
        self.error: LaminaError | None = None
        self.notices: tuple[str, ...] = ()  # sentences for the person
        self.over = threading.Event()
        self.summary = ""  # what it was doing when it was last asked (A7)
        self.asked_at = self.began
        self.said = ""  # its newest words
        self.seen: LastExchange | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return f"agent-{self.id}"

    def called(self) -> None:
        with self._lock:
            self.calls += 1

    def end(self, status: Status, error: LaminaError | None = None) -> None:
        self.seconds = time.monotonic() - self.began
        self.error = error
        self.why = str(error) if error is not None and status == "failed" else ""
        self.status = status
        self.seen = None  # the whole of its conversation
        self.over.set()

    @property
    def state(self) -> AgentState:
        return AgentState(
            id=self.id,
            type=self.wanted.name,
            description=self.wanted.description,
            background=self.background,
            status=self.status,
            seconds=self.seconds if self.seconds is not None else time.monotonic() - self.began,
            calls=self.calls,
            rounds=self.rounds,
            usage=self.usage,
            usd=self.cost.usd,
            why=self.why,
            call=self.call,
            summary=self.summary,
        )


def with_section_behind(session: Session, section: str) -> None:
    """One more section of its system prompt, before anything is sent."""
    with session._working() as c:
        session._give_prompt(with_section(c.prompt.system, section), c.prompt.tools)


def extra_roots(session: Session, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Directories beside the working directory that the settings name. `~/` is the person's home, and what is relative begins at the
    working directory; `~other/` means nobody."""
    person = user_home(environ)
    named = session.settings.permissions.directories
    own = [person / text[2:] for text in named if text.startswith("~/") and person is not None]
    return (*own, *(session.cwd / text for text in named if not text.startswith("~")))


def subagent_session(
    parent: Session, hire: Hire, tools: Sequence[Tool], catalog: Catalog | None, given: Mapping[str, Any]
) -> Session:
    """Its transcript lies among its parent's files, as `subagents/agent-ID.jsonl`."""
    kind = hire.wanted.kind
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
        session_id=f"{AGENT_FILE}{hire.id}",
        agent_of=AgentOf(parent.id, directory),
        options={"extra_headers": {SESSION_HEADER: f"{AGENT_FILE}{hire.id}"}},
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
