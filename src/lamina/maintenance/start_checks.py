"""Checks at the start of a session: identify the project, offer to migrate memory from an old path, remove expired sessions, and
name unfinished forgets.

Returns messages for the user and never fails a start. Costs one small read if there is nothing to do. Root commits are looked
up in the background; session ages are checked once a day, and only if a setting limits them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ..core.errors import LaminaError
from ..core.settings import Settings
from ..disk.paths.project import slug
from ..disk.regular_file import subdirectories
from ..memory.store.project_identity import ProjectIdentity, identify, read_identity, write_identity
from ..memory.store.scopes import project_root
from . import retention
from .forget.job import list_jobs
from .migrate.migrate import candidates, gone, root_commits, topics_in

# The user waits for this lookup, which runs only if the path of some project no longer exists.
WAIT = 1.0


def run_start_checks(
    cwd: Path, home: Path | None, settings: Settings, *, environ: Mapping[str, str], now: float | None = None
) -> list[str]:
    """Run the checks and return the messages to show at the start of a session in `cwd`."""
    if home is None or not (home / "projects").is_dir():
        return []
    now = time.time() if now is None else now
    found: list[str | None] = []
    with suppress(LaminaError, OSError):
        found.append(_offer(cwd, home, settings, environ))
    with suppress(LaminaError, OSError):
        found.append(_retention(home, settings, now))
    if list_jobs(home):
        found.append("A forget is unfinished, so some of its subject is left. Run `lamina forget --resume` to finish it.")
    with suppress(LaminaError, OSError):
        found.append(retention.clear_ledgers(home, now=now, keep=settings.retention_days))
    return [message for message in found if message is not None]


def _offer(cwd: Path, home: Path, settings: Settings, environ: Mapping[str, str]) -> str | None:
    """Offer a migration if exactly one moved project matches this one and there are no memories here yet."""
    project = project_root(cwd)
    own = identify(home, cwd)
    if own is not None and not own.roots and (own.roots is None or (project / ".git").exists()):
        threading.Thread(target=learn_roots, args=(home, project, dict(environ)), name="lamina-roots", daemon=True).start()
    if not settings.memory or settings.memory_directory is not None or topics_in(home / "projects" / slug(project)):
        return None
    if not gone(home, project):
        return None
    roots = own.roots if own is not None and own.roots is not None else root_commits(project, environ=environ, seconds=WAIT)
    found = candidates(home, project, roots or ())
    if len(found) != 1:
        return None
    [one] = found
    moved = f"The memory of {one.known.path}, which no longer exists, may belong here ({one.because})."
    return f"{moved} Run `lamina migrate` to move it."


def learn_roots(home: Path, project: Path, environ: Mapping[str, str]) -> ProjectIdentity | None:
    """Add the root commits to the project's identity file; if they cannot be determined, the next start tries again."""
    directory = home / "projects" / slug(project)
    roots = root_commits(project, environ=environ)
    own = read_identity(directory)
    if own is None or roots is None or own.path != str(project):
        return own
    new = msgspec.structs.replace(own, roots=roots)
    write_identity(directory, new)
    return new


def _retention(home: Path, settings: Settings, now: float) -> str | None:
    days = settings.retention_days
    before = retention.load_state(home)
    if days is not None and not 0 <= now - before.passed < retention.DAY:
        retention.save_state(home, msgspec.structs.replace(before, passed=now))
        retention.finish_removals(home)
        directories = subdirectories(home / "projects")
        planned = retention.plan_removal(directories, home, now=now, older_than=days * retention.DAY)
        retention.remove_sessions(planned, home, now=now, days=days)
    return retention.announce(home)
