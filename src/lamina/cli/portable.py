"""What `lamina import` and `lamina export` share: the store of a project, and how a report is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .safe_text import document, printable, sentence

if TYPE_CHECKING:
    from ..maintenance.transfer.import_export import TransferReport
    from ..maintenance.transfer.plan import Outcome
    from ..memory.store.modes import GatedStore

# What is worth a line each; what did not change is only counted.
SHOWN: tuple[Outcome, ...] = ("created", "replaced", "proposed", "conflict", "refused")
# A screen or two; --json has them all.
MOST_SHOWN = 100


@contextmanager
def opened(cwd: Path, *, writing: bool) -> Iterator[GatedStore]:
    """The private memory of the project that `cwd` belongs to. Where a person may not write, a dry run says so too."""
    from ..core.errors import SettingError
    from ..memory.memory import Memory
    from ..memory.store.modes import plan_write

    with Memory.open(cwd) as memory:
        store = memory.store()
        if not store.readable or (writing and plan_write(store.mode, "user") == "refuse"):
            problem = f"private memory is {store.mode}, so nothing in it is {'changed' if writing else 'read'}"
            raise SettingError("lamina.memoryMode", "private", problem, "set it to auto or confirm")
        yield store


def to_json(report: TransferReport) -> dict[str, Any]:
    items = [
        {"name": item.name, "outcome": item.outcome}
        | ({"why": item.why} if item.why else {})
        | ({"redacted": list(item.redacted)} if item.redacted else {})
        for item in report.items
    ]
    counts: dict[str, int] = {}
    for item in report.items:
        counts[item.outcome] = counts.get(item.outcome, 0) + 1
    shown = {"format": report.format, "path": report.place, "dry_run": report.dry_run}
    return {**shown, "counts": counts, "items": items, "problems": list(report.problems)}


def show(report: TransferReport, *, as_json: bool, what: str) -> None:
    """The report on standard output; what went wrong on standard error, so that a pipe gets the rest."""
    if as_json:
        click.echo(document(to_json(report)))
        return
    shown = [item for outcome in SHOWN for item in report.items if item.outcome == outcome]
    for item in shown[:MOST_SHOWN]:
        secrets = f"secrets taken out: {', '.join(item.redacted)}" if item.redacted else ""
        notes = "; ".join(filter(None, (item.why, secrets)))
        click.echo(f"{item.outcome:10}{printable(item.name)}" + (f" ({sentence(notes)})" if notes else ""))
    if len(shown) > MOST_SHOWN:
        click.echo(f"… and {len(shown) - MOST_SHOWN:,} more; --json lists all.")
    click.echo(summary(report, what))
    for problem in report.problems:
        click.echo(f"lamina: {sentence(problem)}", err=True)


def summary(report: TransferReport, what: str) -> str:
    parts = [f"{len(names):,} {outcome}" for outcome in (*SHOWN, "unchanged") if (names := report.named(outcome))]
    said = ", ".join(parts) or "nothing to do"
    dry = "Dry run, nothing was written: " if report.dry_run else ""
    kept = " What is there was kept; --replace takes the new one." if report.named("conflict") else ""
    return f"{dry}{what} ({report.format}): {said}.{kept}"
