"""`lamina sessions clean`: old sessions go, listed before and after."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from ..disk.settings_files import load_settings
from ..disk.transcripts.search import project_directories
from ..maintenance import retention
from ..maintenance.kept_files import directories_of_project
from ..maintenance.retention import DAY, RetentionPlan
from .options import Reported, confirm, need_home
from .safe_text import capped, printable

# More lines than a person reads before they answer.
SHOWN = 40


def clean(length: str | None, cwd: Path, *, everywhere: bool, dry_run: bool, yes: bool) -> Reported:
    home = need_home()
    seconds = retention.parse_age(length) if length is not None else _set(cwd, home)
    directories = project_directories(home / "projects") if everywhere else directories_of_project(home, cwd)
    now = time.time()
    planned = retention.plan_removal(directories, home, now=now, older_than=seconds)
    if not dry_run and planned.remove and not yes:
        click.echo(_shown(planned, "would go"), err=True)
        confirm("Remove them for good?")
    if not dry_run:
        retention.finish_removals(home)
        done = retention.remove_sessions(planned, home, now=now, days=seconds / retention.DAY)
        # The person has just been told.
        retention.announce(home)
        names = {line.session for line in done}
        planned = planned._replace(remove=tuple(one for one in planned.remove if one.files.id in names))
    return _rows(planned) | {"dry_run": dry_run}, _shown(planned, "would go" if dry_run else "went")


def _set(cwd: Path, home: Path) -> float:
    days = load_settings(cwd=cwd, home=home, environ=os.environ).retention_days
    if days is None:
        raise click.UsageError("sessions are kept for ever: say --older-than 30d, or set cleanupPeriodDays.")
    return days * DAY


def _rows(planned: RetentionPlan) -> dict[str, Any]:
    def named(path: Path) -> dict[str, Any]:
        return {"session_id": path.stem, "path": str(path)}

    return {
        "removed": [named(one.files.transcript) | {"bytes": one.size} for one in planned.remove],
        "kept": [named(one.files.transcript) | {"why": one.why} for one in planned.keep],
    }


def _shown(planned: RetentionPlan, verb: str) -> str:
    sizes = [f"{one.files.id}  {one.size:,} bytes" for one in planned.remove]
    rows = capped(sizes, SHOWN, "… and {} more")
    rows.append(f"{len(planned.remove)} sessions {verb}.")
    rows += [f"Kept {one.files.id}: {one.why}." for one in planned.keep]
    return printable("\n".join(rows))
