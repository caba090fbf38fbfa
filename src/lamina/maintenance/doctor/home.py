"""Check the home for what a user cannot see otherwise: unfinished forgets, and a disk that is read-only or full (B11, Z12)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ...core.errors import DiskError
from ...disk.faults import reporting
from ..forget.job import list_jobs, read_job
from ..kept_files import FORGET, directories_with_temps
from .finding import Finding, PathFix

# A session writes a few megabytes, and a rewritten transcript needs its size once more.
LEAST_FREE = 32 << 20


def check_forgets(home: Path) -> Iterator[Finding]:
    for path in list_jobs(home):
        try:
            job = read_job(path)
        except DiskError as error:
            yield Finding("sessions", "unfinished-forget", f"{path.name} {error.problem}.", str(path), advice=f"{error.remedy}.")
            continue
        if job is not None:
            text = f"Forgetting {job.subject!r} was interrupted or could not finish, so some of it is left."
            yield Finding("sessions", "unfinished-forget", text, str(path), fix=PathFix("finish-forget", str(path)))
    for left in directories_with_temps(home / FORGET):
        text = "A forget was killed while it began; its temporary file names the subject."
        yield Finding("sessions", "leftover", text, str(left), fix=PathFix("sweep", str(left)))


def check_writable(home: Path, project: Path) -> Iterator[Finding]:
    """Report the first directory in which nothing can be saved. A home that does not exist yet needs a parent that can hold it."""
    there = next(path for path in (home, *home.parents) if path.is_dir())
    for path in (there, project.parent, project, project / "memory"):
        if path.is_dir() and not os.access(path, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            yield Finding("machine", "not-writable", f"{path} is read-only: memories and sessions cannot be saved.", str(path))
            return


def check_space(home: Path) -> Iterator[Finding]:
    """Report a disk on which the next write may fail."""
    there = next(path for path in (home, *home.parents) if path.is_dir())
    with reporting(there):
        free = shutil.disk_usage(there).free
        found = os.statvfs(there) if hasattr(os, "statvfs") else None
    if free < LEAST_FREE:
        yield Finding("machine", "disk-full", f"The disk of {home} has {free >> 20:,} MB left.", str(home))
    elif found is not None and found.f_files and not found.f_favail:
        yield Finding("machine", "disk-full", f"The disk of {home} has no room for another file (no free inodes).", str(home))
