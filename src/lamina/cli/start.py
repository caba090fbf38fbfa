"""Open an agent from options and settings, for both `-p` and the interactive chat.

Reads settings, the environment and the user's approvals, and asks nothing. Files of an untrusted working tree are read as
untrusted, so that they cannot set paths, endpoints or hooks (F2).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..core.errors import DiskError, LaminaError, NoSuchSession
from ..disk.home.approvals import Approvals, load_approvals
from ..disk.paths.project import slug
from ..disk.settings_files import settings_in_force, user_home
from ..disk.transcripts.resume import last_model
from ..disk.transcripts.search import find_transcript, newest_transcript
from ..language.text import Text
from ..session.base import working
from ..session.provider import open_chosen_provider
from .options import find_home
from .selection import read_selection

if TYPE_CHECKING:
    from ..agent.agent import Agent
    from ..core.settings import Settings
    from ..memory.memory import Memory
    from ..providers import Provider
    from ..tools.permissions.request import Mode
    from .signals import StoppableProvider

OFFLINE = Text(
    "No provider is configured, so the offline stand-in answers. Set ANTHROPIC_API_KEY or OPENAI_API_KEY to use a model."
)
# System prompt and tools never fill a window of this size; for smaller ones they are counted at the start.
ROOMY = 40_000


class ChatOptions(NamedTuple):
    """The command-line options of a chat."""

    cwd: Path
    model: str | None = None
    resume: str | None = None
    go_on: bool = False
    mode: Mode | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    rounds: int | None = None
    bare: bool = False
    mailbox: str | None = None


class MemorySource(NamedTuple):
    """The directory, home and settings that select a memory."""

    cwd: Path
    home: Path | None
    settings: Settings

    def open(self) -> Memory:
        from ..memory.memory import Memory

        return Memory.open(self.cwd, home=self.home, settings=self.settings)


def check_rules(options: ChatOptions) -> None:
    """Report an invalid permission rule as a usage error before anything runs."""
    from ..core.settings import Permissions
    from ..tools.permissions.rules import read_rules

    for found in read_rules(Permissions(allow=options.allow, deny=options.deny)).findings:
        raise click.UsageError(found.text)


def load_chat_settings(options: ChatOptions) -> Settings:
    """Load the settings. Hooks and permissions of the working tree apply only if the user trusts its current content."""
    given: dict[str, Any] = (
        {"permissions": {"allow": list(options.allow), "deny": list(options.deny)}} if options.allow or options.deny else {}
    )
    own: dict[str, Any] = {"bare": True} if options.bare else {}
    own |= {"mailbox": options.mailbox} if options.mailbox is not None else {}
    given |= {"lamina": own} if own else {}

    # `home` comes from the environment here, so that a problem with LAMINA_HOME is among the findings.
    return settings_in_force(options.cwd, command_line=given)


def open_provider_again(options: ChatOptions, settings: Settings, home: Path | None, again: str | Path | None) -> Provider:
    """Return the provider of a resumed session: its recorded model, unless the command line names another or there is no key for it."""
    if options.model is None and again and home is not None:
        with suppress(LaminaError, OSError):  # what is wrong with the session is reported when it is opened
            path = again if isinstance(again, Path) else find_transcript(home / "projects", slug(options.cwd), again)
            model = last_model(path)
            if model is not None and model != "offline":
                return open_chosen_provider(model, settings)
    return open_chosen_provider(options.model, settings)


def is_model_unset(options: ChatOptions, settings: Settings) -> bool:
    return not (options.model or settings.model or settings.provider)


def find_named(options: ChatOptions) -> str | None:
    """Return the session that `--resume` names. An id that Lamina did not record may be that of another agent's session."""
    named, home = options.resume, find_home()
    if not named or home is None or os.sep in named or named.endswith(".jsonl"):
        return named
    with suppress(LaminaError):  # what is wrong with the session is reported when it is opened
        find_transcript(home / "projects", slug(options.cwd), named)
        return named
    from .transcripts import locate

    try:
        return str(locate(named, options.cwd, edit=True))
    except NoSuchSession:
        return named


def find_newest(options: ChatOptions, home: Path | None) -> Path:
    try:
        return newest_transcript((home or Path()) / "projects", slug(options.cwd))
    except NoSuchSession:
        remedy = "Run `lamina sessions list --all` to see the others."
        raise click.ClickException(f"No session was recorded in {options.cwd}. {remedy}") from None


def read_approvals(cwd: Path, home: Path | None) -> tuple[Approvals, str | None]:
    """Return the user's approvals of included files outside the project, and an error message if they could not be read."""
    if home is None:
        return Approvals(), None
    try:
        return load_approvals(home, find_project(cwd)), None
    except DiskError as error:
        return Approvals(), str(error)


def find_project(cwd: Path) -> Path:
    from ..prompt.instructions import project_of

    return project_of(Path(os.path.realpath(cwd)), user_home(os.environ))


def open_agent(
    options: ChatOptions,
    settings: Settings,
    provider: StoppableProvider,
    *,
    home: Path | None,
    resume: str | Path | None,
    **listeners: Any,
) -> Agent:
    """Open the agent; `listeners` are the callbacks `Agent.open` takes for questions and events."""
    from ..agent.agent import Agent
    from ..maintenance.start_checks import run_start_checks

    approvals, problem = read_approvals(options.cwd, home)
    selection = read_selection(os.environ)
    agent = Agent.open(
        provider,
        cwd=options.cwd,
        home=home,
        settings=settings,
        resume=resume,
        approved=approvals.answer,
        mode=options.mode,
        selection=selection.text,
        **listeners,
    )
    problems = [sentence for sentence in (problem, selection.problem) if sentence]
    agent.notify(*(found.text for found in agent.rules.findings), *problems)
    agent.notify(*run_start_checks(options.cwd, home, settings, environ=os.environ), *_warn_of_small_window(agent))
    if options.rounds is not None:
        agent.rounds = options.rounds
    return agent


def _warn_of_small_window(agent: Agent) -> list[str]:
    """Warn if the prompt alone fills half of the window, since compaction cannot free that space."""
    with working(agent.session) as c:
        effective = c.limits.effective
        if effective >= ROOMY:
            return []
        from ..history.window_report import estimate_prompt

        taken = estimate_prompt(c.prompt.system, c.prompt.tools, c.count)
    if taken * 2 < effective:
        return []
    return [
        f"The system prompt and tools take about {taken:,} of the {effective:,} usable tokens, which leaves little room for the "
        "conversation. Use a model with a larger context window, or set LAMINA_CONTEXT_WINDOW if the size is wrong."
    ]
