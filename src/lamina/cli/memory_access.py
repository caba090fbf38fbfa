"""The memory a command is about: the project's, or with --agent that of an agent type."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import options
from .console import notice
from .safe_text import printable

if TYPE_CHECKING:
    from ..memory.memory import Memory

# Where an option before the command leaves it for the command.
_AGENT = "lamina.agent"

agent_option = click.option(
    "--agent",
    metavar="TYPE",
    expose_value=False,
    callback=lambda ctx, _, agent: ctx.meta.__setitem__(_AGENT, agent),
    help="The memory of an agent type, not the project's.",
)


@contextmanager
def open_memory(cwd: Path) -> Iterator[Memory]:
    from ..memory.memory import Memory

    agent = click.get_current_context().meta.get(_AGENT)
    with Memory.open(cwd) if agent is None else _agent_memory(agent, cwd) as memory:
        notice(*memory.notices)
        yield memory


def with_memory(run: Callable[..., options.Reported]) -> Callable[..., None]:
    """Adds --cwd and --json; the command gets the memory and returns what it found."""

    @options.cwd()
    @options.reports
    @wraps(run)
    def command(cwd: Path, **given: Any) -> options.Reported:
        with open_memory(cwd) as memory:
            return run(memory, **given)

    return command


def _agent_memory(agent: str, where: Path) -> Memory:
    """Of an agent type; a type that has none is a slip of the pen."""
    from ..disk.settings_files import load_settings, user_home
    from ..memory.agent_memory import open_agent_memory
    from ..memory.store.scopes import agent_place
    from .agents import load_types
    from .options import find_home

    home = find_home()
    kind = load_types(where, home).find(agent)
    if kind is None:
        raise click.UsageError(f"there is no agent type {printable(agent)!r} here: lamina agents lists them.")
    if kind.memory is None or home is None:
        raise click.UsageError(
            f"the agent type {kind.name} has no memory: write memory: user, project or local into its file"
            f"{f' ({kind.path}), and trust that directory' if kind.source == 'project' else ''}."
        )
    settings = load_settings(cwd=where, environ=os.environ)
    person = user_home(os.environ) or home
    place = agent_place(kind.name, kind.memory, cwd=where, home=home, settings=settings, user_home=person)
    return open_agent_memory(place, settings=settings, cwd=where)
