"""`lamina agents`: the agent types a session here would have, and the agents at work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import options
from .console import notice, print_result, print_table
from .group import Group
from .running_agents import at_work, send_command, show_at_work
from .safe_text import document
from .start import home_of

if TYPE_CHECKING:
    from ..layers.l7_agents.files import Catalog


def load_types(where: Path, home: Path | None) -> Catalog:
    from ..disk.trust import while_trusted
    from ..layers.l7_agents.files import load_kinds

    if home is None:
        return load_kinds(where, None)
    return while_trusted(home, where, lambda trusted: load_kinds(where, home, trusted=trusted))


@click.group("agents", cls=Group, invoke_without_command=True)
@options.cwd("Whose agent types.")
@click.option("--running", is_flag=True, help="Only the agents that work in the background of open sessions.")
@options.as_json
@click.pass_context
def agents_command(ctx: click.Context, cwd: Path, running: bool, as_json: bool) -> None:
    """List the agent types that the Agent tool can start here, and what is wrong with files that are none."""
    if ctx.invoked_subcommand is not None:
        ctx.default_map = {"send": {"as_json": as_json}}
        return
    found = at_work(cwd, home_of()) if running or not as_json else []
    if not running:
        _list_types(cwd, as_json)
        if found:
            click.echo("\nAt work in the background:")
            show_at_work(found)
    elif found and not as_json:
        show_at_work(found)
    else:
        print_result(found, (), as_json=as_json, none="No agent works in the background here.")


def _list_types(where: Path, as_json: bool) -> None:
    catalog = load_types(where, home_of())
    for each in catalog.notices:
        notice(each)
    if as_json:
        names = ("name", "description", "tools", "model", "memory", "source", "path")
        rows = [{name: getattr(kind, name) for name in names} | {"path": kind.path or None} for kind in catalog.kinds]
        click.echo(document(rows))
        return
    print_table(
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


agents_command.add_command(send_command)
