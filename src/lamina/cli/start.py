"""From options and settings to an agent: what `-p` and the interactive chat have in common.

Reads settings, the environment and what the person has approved; asks nobody. Files of a working tree that is not trusted are read
as such, so that nothing in them sets paths, endpoints or hooks (F2).
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..core.errors import DiskError, LaminaError
from ..disk.home.approvals import Approvals, load_approvals
from ..disk.home.loading import settings_in_force
from ..disk.paths.project import slug
from ..disk.settings_files import user_home
from ..disk.transcripts.resume import last_model
from ..disk.transcripts.search import find_transcript, newest_transcript
from ..session.base import working

if TYPE_CHECKING:
    from ..agent.agent import Agent
    from ..core.settings import Settings
    from ..memory.memory import Memory
    from ..permissions.request import Mode
    from ..providers import Provider
    from .signals import StoppableProvider

OFFLINE = "no provider is configured (ANTHROPIC_API_KEY or OPENAI_API_KEY), so the offline stand-in answers"
# A window of this size is never filled by what stands before the messages; below it that is counted once.
ROOMY = 40_000


class ChatOptions(NamedTuple):
    """What the command line asks for."""

    cwd: Path
    model: str | None = None
    resume: str | None = None
    go_on: bool = False
    mode: Mode | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    rounds: int | None = None
    bare: bool = False


class MemorySource(NamedTuple):
    """Whose memory, and what the settings make of it."""

    cwd: Path
    home: Path | None
    settings: Settings

    def open(self) -> Memory:
        from ..memory.memory import Memory

        return Memory.open(self.cwd, home=self.home, settings=self.settings)


def check_rules(options: ChatOptions) -> None:
    """A rule that cannot be read is a slip of the pen, and said before anything runs."""
    from ..core.settings import Permissions
    from ..permissions.rules import read_rules

    for found in read_rules(Permissions(allow=options.allow, deny=options.deny)).findings:
        raise click.UsageError(found.text)


def load_chat_settings(options: ChatOptions) -> Settings:
    """Hooks and permissions of the working tree count if the person trusts it as it is now."""
    given: dict[str, Any] = (
        {"permissions": {"allow": list(options.allow), "deny": list(options.deny)}} if options.allow or options.deny else {}
    )
    if options.bare:
        given["lamina"] = {"bare": True}

    # Without `home`, which is the environment's: what is wrong with that variable is then among the findings.
    return settings_in_force(options.cwd, command_line=given)


def _environment(settings: Settings) -> dict[str, str]:
    """The process environment with the keys and addresses of the settings, for providers alone."""
    environ = dict(os.environ)
    keys = {"ANTHROPIC_API_KEY": settings.anthropic_api_key, "OPENAI_API_KEY": settings.openai_api_key}
    places = {"ANTHROPIC_BASE_URL": settings.anthropic_base_url, "OPENAI_BASE_URL": settings.openai_base_url}
    environ |= {name: key.reveal() for name, key in keys.items() if key is not None}
    return environ | {name: place for name, place in places.items() if place is not None}


def open_chosen_provider(spec: str | None, settings: Settings) -> Provider:
    """Who answers: by name, by the settings, by the keys there are, else the offline stand-in."""
    from ..providers import configured, open_provider

    environ = _environment(settings)
    named = spec or settings.model or settings.provider or configured(environ)
    return open_provider(named, base_url=settings.base_url, environ=environ)


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


def find_newest(options: ChatOptions, home: Path | None) -> Path:
    return newest_transcript((home or Path()) / "projects", slug(options.cwd))


def read_approvals(cwd: Path, home: Path | None) -> tuple[Approvals, str | None]:
    """Which files outside the project the person let its instructions include, and what is wrong with the note of it."""
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
    """`listeners` are what `Agent.open` takes to ask the person and to tell them what happens."""
    from ..agent.agent import Agent
    from ..maintenance.start_checks import run_start_checks

    approvals, problem = read_approvals(options.cwd, home)
    agent = Agent.open(
        provider,
        cwd=options.cwd,
        home=home,
        settings=settings,
        resume=resume,
        approved=approvals.answer,
        mode=options.mode,
        **listeners,
    )
    agent.notify(*(found.text for found in agent.rules.findings), *([problem] if problem else ()))
    agent.notify(*run_start_checks(options.cwd, home, settings, environ=os.environ), *_warn_of_small_window(agent))
    if options.rounds is not None:
        agent.rounds = options.rounds
    return agent


def _warn_of_small_window(agent: Agent) -> list[str]:
    """A window that the prompt fills by half before anything is said: no compaction makes room there."""
    with working(agent.session) as c:
        effective = c.limits.effective
        if effective >= ROOMY:
            return []
        from .context_report import estimate_prompt

        taken = estimate_prompt(c.prompt.system, c.prompt.tools, c.count)
    if taken * 2 < effective:
        return []
    return [
        f"The system prompt and the tools take about {taken:,} of the {effective:,} tokens of this window: little room is left for a "
        "conversation; use a model with a larger window, or set LAMINA_CONTEXT_WINDOW if this one has it."
    ]
