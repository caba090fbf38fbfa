"""`lamina import` and `lamina export`: exchange memories with other programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..language.text import Text
from ..maintenance.transfer.formats import FORMATS, WRITTEN_FORMATS, Format, WrittenFormat
from . import options
from .console import capped, notice, print_result, sentence, waiting

if TYPE_CHECKING:
    from ..maintenance.transfer.import_export import TransferReport
    from ..maintenance.transfer.plan import Outcome, TransferItem
    from ..memory.store.modes import GatedStore

# Outcomes listed one per line; unchanged items are only counted.
SHOWN: tuple[Outcome, ...] = ("created", "replaced", "proposed", "conflict", "refused")
# One or two screens; --json has them all.
MOST_SHOWN = 100


@click.command("import")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--format", "format", type=click.Choice(FORMATS), help="Format of the source. Default: detected from its content.")
@click.option("--project", help="The project to import, if the source has several. Default: the one named like this directory.")
@click.option("--dry-run", is_flag=True, help="Show what would be imported and change nothing.")
@click.option("--replace", is_flag=True, help="Overwrite existing memories that have the same name but differ.")
@click.option(
    "--trust", is_flag=True, help="Save memories about you (user, feedback) at once. Without it they wait in the inbox."
)
@options.cwd()
@options.as_json
@options.only_for_user
def import_command(
    source: Path, format: Format | None, project: str | None, dry_run: bool, replace: bool, trust: bool, cwd: Path, as_json: bool
) -> None:
    """Import memories from SOURCE, a file or directory of another program."""
    from ..maintenance.transfer.import_export import import_into
    from ..maintenance.transfer.project_choice import ProjectChoice
    from ..memory.store.change_sets import new_act
    from ..memory.store.contract import ChangeReason
    from ..memory.store.scopes import project_root

    why = ChangeReason(who="user", why=f"imported from {source}", act=new_act())
    choice = ProjectChoice(project, project_root(cwd).name)
    with _opened(cwd, writing=True) as store, waiting("Importing the memories") as progress:
        report = import_into(
            store,
            source,
            format=format,
            dry_run=dry_run,
            replace=replace,
            trust=trust,
            choice=choice,
            why=why,
            tell=progress.count,
        )
    _print_report(report, as_json=as_json, what="Memories", act="" if dry_run else why.act)


@click.command("export")
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--format", "format", type=click.Choice(WRITTEN_FORMATS), required=True, help="Format to write.")
@click.option("--dry-run", is_flag=True, help="Show what would be written and change nothing.")
@click.option("--replace", is_flag=True, help="Overwrite existing files that differ.")
@options.cwd()
@options.as_json
def export_command(target: Path, format: WrittenFormat, dry_run: bool, replace: bool, cwd: Path, as_json: bool) -> None:
    """Write all memories to TARGET in the format of another program.

    TARGET is a directory for claude-code and codex, and a file for the other formats.
    """
    from ..maintenance.transfer.import_export import export_from

    with _opened(cwd, writing=False) as store, waiting("Writing the memories") as progress:
        report = export_from(store, target, format, replace=replace, dry_run=dry_run, tell=progress.count)
    _print_report(report, as_json=as_json, what="Files")


@contextmanager
def _opened(cwd: Path, *, writing: bool) -> Iterator[GatedStore]:
    """Open the private memory of the project of `cwd`. If it may not be written, a dry run fails too."""
    from ..memory.memory import Memory
    from ..memory.store.modes import not_allowed, plan_write

    with Memory.open(cwd, read_only=not writing) as memory:
        store = memory.store()
        if not store.readable or (writing and plan_write(store.mode, "user") == "refuse"):
            raise not_allowed("private", store.mode, "changed" if writing else "read")
        yield store


def _to_json(report: TransferReport) -> dict[str, Any]:
    items = [
        {"name": item.name, "outcome": item.outcome}
        | ({"why": item.why} if item.why else {})
        | ({"redacted": list(item.redacted)} if item.redacted else {})
        for item in report.items
    ]
    shown = {"format": report.format, "path": report.place, "dry_run": report.dry_run}
    counts = Counter(item.outcome for item in report.items)
    return {**shown, "counts": counts, "items": items, "problems": list(report.problems)}


def _print_report(report: TransferReport, *, as_json: bool, what: str, act: str = "") -> None:
    """Print the report to standard output and problems to standard error. `act` is the id of the import, for `lamina memory undo`."""
    print_result(_to_json(report) | ({"act": act} if act else {}), _lines(report, what), as_json=as_json)
    notice(*(() if as_json else report.problems))


def _lines(report: TransferReport, what: str) -> Iterator[str]:
    items = [_line(item) for outcome in SHOWN for item in report.items if item.outcome == outcome]
    yield from capped(items, MOST_SHOWN, Text("… and {count:,} more; --json lists all."))
    parts = [f"{len(names):,} {outcome}" for outcome in (*SHOWN, "unchanged") if (names := report.named(outcome))]
    dry = "Dry run, nothing was written. " if report.dry_run else ""
    kept = " Conflicts were kept as they are; use --replace to overwrite them." if report.named("conflict") else ""
    about = " Run `lamina inbox` to review what was proposed." if report.named("proposed") else ""
    yield f"{dry}{what} ({report.format}): {', '.join(parts) or 'nothing to do'}.{kept}{about}"


def _line(item: TransferItem) -> str:
    secrets = f"secrets removed: {', '.join(item.redacted)}" if item.redacted else ""
    notes = "; ".join(filter(None, (item.why, secrets)))
    return f"{item.outcome:10}{item.name}" + (f" ({sentence(notes)})" if notes else "")
