"""`lamina agents`: the agent types a session here would have."""

from __future__ import annotations

from pathlib import Path

import click

from .printing import document
from .start import home_of, notice


@click.command("agents")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose agent types.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(cwd: str, as_json: bool) -> None:
    """List the agent types that the Agent tool can start here, and what is wrong with files that are none."""
    from ..layers.l7_agents import load_kinds

    catalog = load_kinds(Path(cwd).resolve(), home_of())
    for found in catalog.notices:
        notice(found)
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
        ("name", "from", "model", "tools", "description"),
        [
            (
                kind.name,
                kind.source,
                kind.model or "the parent's",
                "all but Agent" if kind.tools is None else ", ".join(kind.tools) or "none",
                kind.description,
            )
            for kind in catalog.kinds
        ],
    )
