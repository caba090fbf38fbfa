"""From options and settings to an agent: what `-p` and the interactive chat have in common.

Reads settings, the environment and what the person has approved; asks nobody. Files of a working tree that is not trusted are read
as such, so that nothing in them sets paths, endpoints or hooks (F2).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .safe_text import sentence

if TYPE_CHECKING:
    from ..agent.agent import Agent
    from ..core.settings import Settings
    from ..disk.approvals import Approvals
    from ..fork.tool_runner import AskUser
    from ..permissions.decision import Mode
    from ..providers import OnEvent
    from .signals import Stop, Watched

OFFLINE = "no provider is configured (ANTHROPIC_API_KEY or OPENAI_API_KEY), so the offline stand-in answers"
# A window of this size is never filled by what stands before the messages; below it that is counted once.
ROOMY = 40_000


class Wish(NamedTuple):
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


def notice(text: str) -> None:
    """To the person, beside the answer; a terminal that is gone is no reason to fail."""
    with suppress(OSError):
        print(f"lamina: {sentence(text)}", file=sys.stderr)


def home_of() -> Path | None:
    from ..disk.settings_files import lamina_home

    return lamina_home(os.environ)


def check_rules(wish: Wish) -> None:
    """A rule that cannot be read is a slip of the pen, and said before anything runs."""
    from ..core.settings import Permissions
    from ..permissions.rules import read_rules

    for found in read_rules(Permissions(allow=wish.allow, deny=wish.deny)).findings:
        raise click.UsageError(found.text)


def settings_for(wish: Wish, home: Path | None) -> Settings:
    """Hooks and permissions of the working tree count if the person trusts it as it is now."""
    from ..disk.settings_files import load_settings
    from ..disk.trust import while_trusted

    given: dict[str, Any] = (
        {"permissions": {"allow": list(wish.allow), "deny": list(wish.deny)}} if wish.allow or wish.deny else {}
    )
    if wish.bare:
        given["lamina"] = {"bare": True}

    def load(trusted: bool) -> Settings:
        # Without `home`, which is the environment's: what is wrong with that variable is then among the findings.
        return load_settings(cwd=wish.cwd, environ=os.environ, command_line=given, trusted=trusted)

    return while_trusted(home, wish.cwd, load) if home is not None else load(False)


def environment(settings: Settings) -> dict[str, str]:
    """The process environment with the keys and addresses of the settings, for providers alone."""
    environ = dict(os.environ)
    keys = {"ANTHROPIC_API_KEY": settings.anthropic_api_key, "OPENAI_API_KEY": settings.openai_api_key}
    places = {"ANTHROPIC_BASE_URL": settings.anthropic_base_url, "OPENAI_BASE_URL": settings.openai_base_url}
    environ |= {name: key.reveal() for name, key in keys.items() if key is not None}
    return environ | {name: place for name, place in places.items() if place is not None}


def provider_for(spec: str | None, settings: Settings, stop: Stop) -> Watched:
    """Who answers: by name, by the settings, by the keys there are, else the offline stand-in (O2)."""
    from ..providers import configured, open_provider
    from .signals import Watched

    environ = environment(settings)
    named = spec or settings.model or settings.provider or configured(environ)
    opened = open_provider(named, base_url=settings.base_url, environ=environ)
    return Watched(opened, stop)


def nobody_chosen(wish: Wish, settings: Settings) -> bool:
    return not (wish.model or settings.model or settings.provider)


def newest(wish: Wish, home: Path | None) -> Path:
    from ..disk.paths import slug
    from ..disk.transcript_search import newest_transcript

    return newest_transcript((home or Path()) / "projects", slug(wish.cwd))


def approvals_for(cwd: Path, home: Path | None) -> tuple[Approvals, str | None]:
    """Which files outside the project the person let its instructions include, and what is wrong with the note of it."""
    from ..core.errors import DiskError
    from ..disk.approvals import Approvals, load_approvals

    if home is None:
        return Approvals(), None
    try:
        return load_approvals(home, project_at(cwd)), None
    except DiskError as error:
        return Approvals(), str(error)


def project_at(cwd: Path) -> Path:
    from ..disk.settings_files import user_home
    from ..prompt.instructions import project_of

    return project_of(Path(os.path.realpath(cwd)), user_home(os.environ))


def open_agent(
    wish: Wish,
    settings: Settings,
    provider: Watched,
    *,
    home: Path | None,
    resume: str | Path | None,
    ask: AskUser | None = None,
    on_event: OnEvent | None = None,
    interactive: bool = False,
) -> Agent:
    from ..agent.agent import Agent
    from ..maintenance.start_checks import starting

    approvals, problem = approvals_for(wish.cwd, home)
    agent = Agent.open(
        provider,
        cwd=wish.cwd,
        home=home,
        settings=settings,
        resume=resume,
        approved=approvals.answer,
        mode=wish.mode,
        ask=ask,
        on_event=on_event,
        interactive=interactive,
    )
    agent.notify(*(found.text for found in agent.rules.findings), *([problem] if problem else ()))
    agent.notify(*starting(wish.cwd, home, settings, environ=os.environ), *_cramped(agent))
    if wish.rounds is not None:
        agent.rounds = wish.rounds
    return agent


def _cramped(agent: Agent) -> list[str]:
    """A window that the prompt fills by half before anything is said: no compaction makes room there."""
    with agent.session._working() as c:
        effective = c.limits.effective
        if effective >= ROOMY:
            return []
        from .context import prompt_tokens

        taken = prompt_tokens(c.prompt.system, c.prompt.tools, c.count)
    if taken * 2 < effective:
        return []
    return [
        f"The system prompt and the tools take about {taken:,} of the {effective:,} tokens of this window: little room is left for a "
        "conversation; use a model with a larger window, or set LAMINA_CONTEXT_WINDOW if this one has it."
    ]
