"""Options and helpers shared by several commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from ..core.reach import RUN_BY_MODEL
from .console import notice, print_result, printable

if TYPE_CHECKING:
    from ..core.settings import Settings
    from ..memory.memory import Memory
    from ..memory.store.contract import ChangeReason

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
# The value for --json, the lines to print otherwise, and optionally a text for the case that there are no lines.
Reported: TypeAlias = tuple[Any, str | Iterable[str]] | tuple[Any, str | Iterable[str], str]

as_json: Decorator = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
yes: Decorator = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
# Key in the click context under which --agent is passed to the subcommand.
_AGENT = "lamina.agent"

agent_option = click.option(
    "--agent",
    metavar="TYPE",
    expose_value=False,
    callback=lambda ctx, _, agent: ctx.meta.__setitem__(_AGENT, agent),
    help="Use the memory of this agent type instead of the project's.",
)


class CommandGroup(click.Group):
    """A command with subcommands. Its help lists each with a full sentence, whatever the terminal's width.

    For an unknown subcommand it suggests the closest name, or the help that lists them all.
    """

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and command.hidden:
                continue
            first, stop, _ = " ".join((command.help or "" if command is not None else "").split()).partition(". ")
            rows.append((name, f"{first}." if stop else first))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            hint = did_you_mean(name, known, f"Run `{ctx.command_path} --help` to list the commands.")
            raise click.UsageError(f"No such command {name!r}. {self._deeper(ctx, name) or hint}", ctx)
        return super().resolve_command(ctx, args)

    def _deeper(self, ctx: click.Context, name: str) -> str:
        """Return a hint at the subcommands of this name; empty if there are none."""
        commands = {each: self.get_command(ctx, each) for each in self.list_commands(ctx)}
        found = [each for each, group in commands.items() if isinstance(group, click.Group) and name in group.commands]
        return f"Did you mean {' or '.join(repr(f'{ctx.command_path} {each} {name}') for each in found)}?" if found else ""


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a sentence with the name that is closest to a misspelt one, or another sentence if none is close."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), 1)
    return f"Did you mean {near[0]!r}?" if near else otherwise


def cwd(about: str = "Use the memory of this directory.") -> Decorator:
    """Add --cwd, the directory a command works on, resolved to an absolute path."""
    kind = click.Path(file_okay=False, exists=True, path_type=Path, resolve_path=True)
    return click.option("--cwd", type=kind, default=".", show_default="current directory", help=about)


def words(name: str, *, required: bool = True) -> Decorator:
    """Add an argument of one or more words, joined by blanks, so that a question needs no quotation marks."""

    def join(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> str | None:
        return " ".join(given) if given else None

    shown = f"{name.upper()}..." if required else f"[{name.upper()}...]"
    return click.argument(name, nargs=-1, required=required, metavar=shown, callback=join)


def reports(run: Callable[..., Reported]) -> Callable[..., None]:
    """Add --json and print what the command returns."""

    @as_json
    @wraps(run)
    def command(as_json: bool, **given: Any) -> None:
        print_result(*run(**given), as_json=as_json)

    return command


def find_home() -> Path | None:
    from ..disk.settings_files import lamina_home

    return lamina_home(os.environ)


def load_settings(cwd: Path, home: Path | None = None) -> Settings:
    """Return the settings of a directory, and report those that are ignored."""
    from ..disk.settings_files import settings_in_force

    settings = settings_in_force(cwd, home=home)
    notice(*(finding.text for finding in settings.findings))
    return settings


def need_home() -> Path:
    if (home := find_home()) is None:
        raise click.UsageError("No home directory found. Set LAMINA_HOME.")
    return home


def confirm(question: str) -> None:
    """Ask the user for confirmation and abort unless the answer is yes. Without a terminal, --yes is required."""
    if not sys.stdin.isatty():
        raise click.UsageError("Cannot ask for confirmation without a terminal. Add --yes to confirm.")
    if not click.confirm(question, default=False, err=True):
        raise click.Abort


def agent_of(ctx: click.Context) -> str | None:
    """Return the agent type that --agent names."""
    agent: str | None = ctx.meta.get(_AGENT)
    return agent


@contextmanager
def open_memory(cwd: Path, *, read_only: bool = False) -> Iterator[Memory]:
    """Open the project's memory, or with --agent that of an agent type. With `read_only`, nothing is created or repaired."""
    from ..memory.memory import Memory

    agent = agent_of(click.get_current_context())
    with Memory.open(cwd, read_only=read_only) if agent is None else _agent_memory(agent, cwd, read_only) as memory:
        notice(*memory.notices)
        told = len(memory.notices)
        yield memory
        notice(*memory.notices[told:])


def model_author() -> ChangeReason | None:
    """Return the author of a change if a model runs this command through its Bash tool; None if the user does."""
    from ..memory.store.contract import ChangeReason

    return ChangeReason("agent", "by a command that a model ran", origin="command") if RUN_BY_MODEL in os.environ else None


def only_for_user(run: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a command that a model runs, because it would approve its own changes."""

    @wraps(run)
    def command(*args: Any, **given: Any) -> Any:
        if RUN_BY_MODEL in os.environ:
            raise click.UsageError("Only you can run this command: it was started by a model. Run it in your own terminal.")
        return run(*args, **given)

    return command


def with_memory(run: Callable[..., Reported], *, read_only: bool = False) -> Callable[..., None]:
    """Add --cwd and --json; the command receives the open memory and returns what to print."""

    @cwd()
    @reports
    @wraps(run)
    def command(cwd: Path, **given: Any) -> Reported:
        with open_memory(cwd, read_only=read_only) as memory:
            return run(memory, **given)

    return command


def reading_memory(run: Callable[..., Reported]) -> Callable[..., None]:
    """Like `with_memory`, for a command that only reads: it writes nothing, and needs no memory directory."""
    return with_memory(run, read_only=True)


def _agent_memory(agent: str, where: Path, read_only: bool) -> Memory:
    """Open the memory of an agent type; an unknown type, or one without memory, is a usage error."""
    from ..disk.settings_files import settings_in_force, user_home
    from ..memory.memory import open_agent_memory
    from ..memory.store.scopes import locate_agent_memory
    from .agents import load_types

    home = find_home()
    kind = load_types(where, home).find(agent)
    if kind is None:
        raise click.UsageError(f"Unknown agent type {printable(agent)!r}. Run `lamina agents` to list them.")
    if kind.memory is None or home is None:
        raise click.UsageError(
            f"Agent type {kind.name} has no memory. Add `memory: user`, `project` or `local` to its file"
            f"{f' ({kind.path}) and trust that directory' if kind.source == 'project' else ''}."
        )
    settings = settings_in_force(where)
    person = user_home(os.environ) or home
    place = locate_agent_memory(kind.name, kind.memory, cwd=where, home=home, settings=settings, user_home=person)
    return open_agent_memory(place, settings=settings, cwd=where, read_only=read_only)
