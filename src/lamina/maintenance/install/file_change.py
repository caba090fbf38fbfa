"""Changes to files of another agent: planned as whole contents, then written one after the other.

Invariants: a file is written whole or not at all. A change that another program made in between is never lost, because the plan is made
again from what the file is now. A dry run plans the same changes and writes none. Running it twice changes nothing the second time.
A crash between two files leaves the first ones, which the next run finds unchanged, and at most one temporary file, which it removes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from ...core.errors import DiskError, InputError, ReadOnly
from ...disk.settings_files import user_home
from ...disk.temp_files import is_temp, sweep_temps
from ...disk.user_files import FileContent, read_whole, remove, remove_empty_directory, replace

# A configuration of this size is none.
MOST_BYTES = 4 << 20
# Two installations at once meet at most once or twice.
_ATTEMPTS = 5

Action: TypeAlias = Literal["written", "unchanged", "removed", "kept"]
# From the old content to the new one; None: the file does not exist, or is to be removed.
Plan: TypeAlias = Callable[[bytes | None], bytes | None]


class InstallChange(NamedTuple):
    """A change of a file, done or planned by a dry run."""

    path: str
    action: Action
    about: str = ""


class AgentReport(NamedTuple):
    """The outcome of an installation or a removal. `notes` are sentences for the user."""

    agent: str
    changes: tuple[InstallChange, ...]
    notes: tuple[str, ...] = ()
    dry_run: bool = False


def change_files(
    plans: Mapping[Path, tuple[str, Plan]], *, dry_run: bool, environ: Mapping[str, str]
) -> tuple[InstallChange, ...]:
    """Bring files to the planned contents, in this order. A file that is refused leaves all of them untouched."""
    planned = tuple(_change(path, plan, about, dry_run=True, environ=environ) for path, (about, plan) in plans.items())
    if dry_run:
        return planned
    for directory in {path.parent for path in plans if path.parent.is_dir()}:
        with suppress(DiskError):
            sweep_temps(directory)  # a run that was killed left them
    return tuple(_change(path, plan, about, dry_run=False, environ=environ) for path, (about, plan) in plans.items())


def _change(path: Path, plan: Plan, about: str, *, dry_run: bool, environ: Mapping[str, str]) -> InstallChange:
    """Bring a file to the planned content, and report what was done."""
    roots = [str(home)] if (home := user_home(environ)) is not None else []
    for attempt in range(_ATTEMPTS):
        found = _current(path)
        new = plan(found.data if found is not None else None)
        if new == (found.data if found is not None else None):
            return InstallChange(str(path), "unchanged", about)
        try:
            if not dry_run:
                _write(path, found, new, roots)
        except ReadOnly as error:
            refused = Path(error.path)
            where = refused.parent if is_temp(refused.name) else refused
            raise InputError(str(where), "is not writable", "check its permissions") from None
        except DiskError:
            if attempt == _ATTEMPTS - 1 or _current(path) == found:
                raise
            continue
        return InstallChange(str(path), "removed" if new is None else "written", about)
    raise AssertionError("the last attempt returns or raises")


def _current(path: Path) -> FileContent | None:
    return read_whole(path, MOST_BYTES)


def read_file(path: Path) -> bytes | None:
    """Return the content of a file, or None if it does not exist. A file that is too large is refused."""
    found = _current(path)
    return found.data if found is not None else None


def _write(path: Path, found: FileContent | None, new: bytes | None, roots: list[str]) -> None:
    if new is not None:
        replace(path, new, expect=found.stamp if found is not None else None, roots=roots)
    elif found is not None:
        remove(path, expect=found.stamp)


def remove_empty(directories: list[Path], *, dry_run: bool) -> None:
    """Remove the directories that are empty now, innermost first."""
    for directory in [] if dry_run else directories:
        if os.path.isdir(directory):
            remove_empty_directory(directory)
