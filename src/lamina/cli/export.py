"""`lamina export`: this project's memories in the format of another program."""

from __future__ import annotations

from pathlib import Path

import click

from ..maintenance.transfer.formats import FORMATS, Format
from .portable import opened, show


@click.command("export")
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--format", "format", type=click.Choice(FORMATS), required=True, help="For which program.")
@click.option("--dry-run", is_flag=True, help="Say what would happen and change nothing.")
@click.option("--replace", is_flag=True, help="Replace files that are there with other content.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True, path_type=Path), default=Path("."), help="Whose memory.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(target: Path, format: Format, dry_run: bool, replace: bool, cwd: Path, as_json: bool) -> None:
    """Write all memories to TARGET: a directory for claude-code and codex, a file for the other formats."""
    from ..maintenance.transfer.import_export import export_from

    with opened(cwd.resolve(), writing=False) as store:
        report = export_from(store, target, format, replace=replace, dry_run=dry_run)
    show(report, as_json=as_json, what="Files")
