"""What many commands take, and what many need before they can begin."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from .console import notice, print_result, printable

if TYPE_CHECKING:
    from ..memory.memory import Memory

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
# The value of a document, the lines for a person, and what is said where there are none.
Reported: TypeAlias = tuple[Any, str | Iterable[str]] | tuple[Any, str | Iterable[str], str]

as_json: Decorator = click.option("--json", "as_json", is_flag=True, help="One JSON document.")
yes: Decorator = click.option("--yes", is_flag=True, help="Do not ask.")
# Where an option before the command leaves it for the command.
_AGENT = "lamina.agent"

agent_option = click.option(
    "--agent",
    metavar="TYPE",
    expose_value=False,
    callback=lambda ctx, _, agent: ctx.meta.__setitem__(_AGENT, agent),
    help="The memory of an agent type, not the project's.",
)


class CommandGroup(click.Group):
    """A command that has commands of its own: its help lists each with a whole sentence, on a terminal of any width.

    A name that is none of them is answered with the one that was likely meant, or with the place where all are listed.
    """

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            first, stop, _ = " ".join((command.help or "" if command is not None else "").split()).partition(". ")
            rows.append((name, f"{first}." if stop else first))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"{ctx.command_path} --help lists those there are."
            raise click.UsageError(f"No such command {name!r}: {meant}", ctx)
        return super().resolve_command(ctx, args)


def cwd(whose: str = "Whose memory.") -> Decorator:
    """The directory a command is about, as a whole path."""
    kind = click.Path(file_okay=False, exists=True, path_type=Path, resolve_path=True)
    return click.option("--cwd", type=kind, default=".", help=whose)


def reports(run: Callable[..., Reported]) -> Callable[..., None]:
    """Adds --json, and prints what the command returns."""

    @as_json
    @wraps(run)
    def command(as_json: bool, **given: Any) -> None:
        print_result(*run(**given), as_json=as_json)

    return command


def find_home() -> Path | None:
    from ..disk.settings_files import lamina_home

    return lamina_home(os.environ)


def need_home() -> Path:
    if (home := find_home()) is None:
        raise click.UsageError("no home directory is known: set LAMINA_HOME.")
    return home


def confirm(question: str) -> None:
    """A yes of the person at the terminal; without one there nothing is removed."""
    if not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: --yes does it without a question.")
    if not click.confirm(question, default=False, err=True):
        raise click.Abort


@contextmanager
def open_memory(cwd: Path) -> Iterator[Memory]:
    """The memory a command is about: the project's, or with --agent that of an agent type."""
    from ..memory.memory import Memory

    agent = click.get_current_context().meta.get(_AGENT)
    with Memory.open(cwd) if agent is None else _agent_memory(agent, cwd) as memory:
        notice(*memory.notices)
        yield memory


def with_memory(run: Callable[..., Reported]) -> Callable[..., None]:
    """Adds --cwd and --json; the command gets the memory and returns what it found."""

    @cwd()
    @reports
    @wraps(run)
    def command(cwd: Path, **given: Any) -> Reported:
        with open_memory(cwd) as memory:
            return run(memory, **given)

    return command


def _agent_memory(agent: str, where: Path) -> Memory:
    """Of an agent type; a type that has none is a slip of the pen."""
    from ..disk.home.loading import settings_in_force
    from ..disk.settings_files import user_home
    from ..memory.memory import open_agent_memory
    from ..memory.store.scopes import locate_agent_memory
    from .agents import load_types

    home = find_home()
    kind = load_types(where, home).find(agent)
    if kind is None:
        raise click.UsageError(f"there is no agent type {printable(agent)!r} here: lamina agents lists them.")
    if kind.memory is None or home is None:
        raise click.UsageError(
            f"the agent type {kind.name} has no memory: write memory: user, project or local into its file"
            f"{f' ({kind.path}), and trust that directory' if kind.source == 'project' else ''}."
        )
    settings = settings_in_force(where)
    person = user_home(os.environ) or home
    place = locate_agent_memory(kind.name, kind.memory, cwd=where, home=home, settings=settings, user_home=person)
    return open_agent_memory(place, settings=settings, cwd=where)
