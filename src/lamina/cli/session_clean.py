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
from ..maintenance.forget.scope import project_of
from ..maintenance.retention import DAY, Plan
from .options import Reported, confirm, need_home
from .safe_text import capped, printable

# More lines than a person reads before they answer.
SHOWN = 40


def clean(length: str | None, cwd: Path, *, everywhere: bool, dry_run: bool, yes: bool) -> Reported:
    home = need_home()
    seconds = retention.age(length) if length is not None else _set(cwd, home)
    directories = project_directories(home / "projects") if everywhere else project_of(home, cwd)
    now = time.time()
    old = retention.look(directories, home, now=now, older_than=seconds)
    planned = retention.plan(old, now=now, older_than=seconds)
    if not dry_run and planned.remove and not yes:
        click.echo(_shown(planned, "would go"), err=True)
        confirm("Remove them for good?")
    if not dry_run:
        retention.finish(home)
        done = retention.run(planned, home, now=now, days=seconds / retention.DAY)
        # The person has just been told.
        retention.announcement(home)
        names = {line.session for line in done}
        planned = planned._replace(remove=tuple(one for one in planned.remove if one.session.transcript.stem in names))
    return _rows(planned) | {"dry_run": dry_run}, _shown(planned, "would go" if dry_run else "went")


def _set(cwd: Path, home: Path) -> float:
    days = load_settings(cwd=cwd, home=home, environ=os.environ).retention_days
    if days is None:
        raise click.UsageError("sessions are kept for ever: say --older-than 30d, or set cleanupPeriodDays.")
    return days * DAY


def _rows(planned: Plan) -> dict[str, Any]:
    def named(path: Path) -> dict[str, Any]:
        return {"session_id": path.stem, "path": str(path)}

    return {
        "removed": [named(one.session.transcript) | {"bytes": one.size} for one in planned.remove],
        "kept": [named(one.session.transcript) | {"why": one.why} for one in planned.keep],
    }


def _shown(planned: Plan, verb: str) -> str:
    sizes = [f"{one.session.transcript.stem}  {one.size:,} bytes" for one in planned.remove]
    rows = capped(sizes, SHOWN, "… and {} more")
    rows.append(f"{len(planned.remove)} sessions {verb}.")
    rows += [f"Kept {one.session.transcript.stem}: {one.why}." for one in planned.keep]
    return printable("\n".join(rows))
