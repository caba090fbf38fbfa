"""`lamina agents`: the agent types a session here would have, and the agents at work; and the memory of a type, for
`lamina memory --agent TYPE`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .group import Group
from .running_agents import at_work, rows_of, send_command, show_at_work
from .safe_text import document, printable
from .start import home_of, notice

if TYPE_CHECKING:
    from ..layers.l7_agents.types import Catalog
    from ..memory.memory import Memory


def _catalog(where: Path, home: Path | None) -> Catalog:
    from ..disk.home.trust import while_trusted
    from ..layers.l7_agents.types import load_agent_types

    if home is None:
        return load_agent_types(where, None)
    return while_trusted(home, where, lambda trusted: load_agent_types(where, home, trusted=trusted))


def memory_of(agent: str, where: Path) -> Memory:
    """Of an agent type; a type that has none is a slip of the pen."""
    from ..disk.settings_files import load_settings, user_home
    from ..memory.agent_memory import open_agent_memory
    from ..memory.store.scopes import agent_place

    home = home_of()
    catalog = _catalog(where, home)
    kind = catalog.find(agent)
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


@click.group("agents", cls=Group, invoke_without_command=True)
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose agent types.")
@click.option("--running", is_flag=True, help="Only the agents that work in the background of open sessions.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_context
def command(ctx: click.Context, cwd: str, running: bool, as_json: bool) -> None:
    """List the agent types that the Agent tool can start here, and what is wrong with files that are none."""
    if ctx.invoked_subcommand is not None:
        ctx.default_map = {"send": {"as_json": as_json}}
        return
    found = at_work(Path(cwd).resolve(), home_of()) if running or not as_json else []
    if running:
        if as_json:
            click.echo(document(rows_of(found)))
        elif found:
            show_at_work(found)
        else:
            click.echo("No agent works in the background here.", err=True)
        return
    _list_types(Path(cwd).resolve(), as_json)
    if found:
        click.echo("\nAt work in the background:")
        show_at_work(found)


def _list_types(where: Path, as_json: bool) -> None:
    catalog = _catalog(where, home_of())
    for each in catalog.notices:
        notice(each)
    if as_json:
        rows = [
            {
                "name": kind.name,
                "description": kind.description,
                "tools": list(kind.tools) if kind.tools is not None else None,
                "model": kind.model,
                "memory": kind.memory,
                "source": kind.source,
                "path": kind.path or None,
            }
            for kind in catalog.kinds
        ]
        click.echo(document(rows))
        return
    from .columns import show

    show(
        ("name", "from", "model", "tools", "memory", "description"),
        [
            (
                kind.name,
                kind.source,
                kind.model or "the parent's",
                "all but Agent" if kind.tools is None else ", ".join(kind.tools) or "none",
                kind.memory or "none",
                kind.description,
            )
            for kind in catalog.kinds
        ],
    )


command.add_command(send_command)
