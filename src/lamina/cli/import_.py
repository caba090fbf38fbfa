"""`lamina import`: memories of other programs into this project's memory."""

from __future__ import annotations

from pathlib import Path

import click

from ..maintenance.transfer.formats import FORMATS, Format
from .portable import opened, show


@click.command("import")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--format", "format", type=click.Choice(FORMATS), help="What the source is; without it, its content tells.")
@click.option("--dry-run", is_flag=True, help="Say what would happen and change nothing.")
@click.option("--replace", is_flag=True, help="Take the imported memory where one of its name says something else.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True, path_type=Path), default=Path("."), help="Whose memory.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(source: Path, format: Format | None, dry_run: bool, replace: bool, cwd: Path, as_json: bool) -> None:
    """Take over memories from SOURCE, a file or directory of another program."""
    from ..maintenance.transfer.import_export import import_into
    from ..memory.store.contract import Why

    why = Why(who="user", why=f"imported from {source}")
    with opened(cwd.resolve(), writing=True) as store:
        report = import_into(store, source, format=format, dry_run=dry_run, replace=replace, why=why)
    show(report, as_json=as_json, what="Memories")
