"""`lamina sessions clean`: old sessions go, listed before and after."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .forget import ask
from .safe_text import document, printable

if TYPE_CHECKING:
    from ..maintenance.retention import RetentionPlan

# More lines than a person reads before they answer.
SHOWN = 40


def clean(length: str | None, cwd: Path, *, everywhere: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    from ..disk.settings_files import lamina_home
    from ..disk.transcripts.search import project_directories
    from ..maintenance import retention
    from ..maintenance.kept_files import directories_of_project

    home = lamina_home(os.environ)
    if home is None:
        raise click.UsageError("no home directory is known: set LAMINA_HOME.")
    seconds = retention.parse_age(length) if length is not None else _set(cwd, home)
    directories = project_directories(home / "projects") if everywhere else directories_of_project(home, cwd)
    now = time.time()
    planned = retention.plan_removal(directories, home, now=now, older_than=seconds)
    if not dry_run and planned.remove and not yes:
        click.echo(_shown(planned, "would go"), err=True)
        ask("Remove them for good?")
    if not dry_run:
        retention.finish_removals(home)
        done = retention.remove_sessions(planned, home, now=now, days=seconds / retention.DAY)
        # The person has just been told.
        retention.announce(home)
        names = {line.session for line in done}
        planned = planned._replace(remove=tuple(one for one in planned.remove if one.files.id in names))
    if as_json:
        click.echo(document(_rows(planned) | {"dry_run": dry_run}))
    else:
        click.echo(_shown(planned, "would go" if dry_run else "went"))


def _set(cwd: Path, home: Path) -> float:
    from ..disk.settings_files import load_settings
    from ..maintenance.retention import DAY

    days = load_settings(cwd=cwd, home=home, environ=os.environ).retention_days
    if days is None:
        raise click.UsageError("sessions are kept for ever: say --older-than 30d, or set cleanupPeriodDays.")
    return days * DAY


def _rows(planned: RetentionPlan) -> dict[str, Any]:
    return {
        "removed": [{"session_id": one.files.id, "path": str(one.files.transcript), "bytes": one.size} for one in planned.remove],
        "kept": [{"session_id": one.files.id, "path": str(one.files.transcript), "why": one.why} for one in planned.keep],
    }


def _shown(planned: RetentionPlan, verb: str) -> str:
    rows = [f"{one.files.id}  {one.size:,} bytes" for one in planned.remove[:SHOWN]]
    if len(planned.remove) > SHOWN:
        rows.append(f"… and {len(planned.remove) - SHOWN} more")
    rows.append(f"{len(planned.remove)} sessions {verb}.")
    rows += [f"Kept {one.files.id}: {one.why}." for one in planned.keep]
    return printable("\n".join(rows))
