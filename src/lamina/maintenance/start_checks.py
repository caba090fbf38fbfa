"""What is looked after when a session starts: which project this is, whether its memory lies under an old path, whether sessions
are too old.

Gives sentences for the person and never fails a start. Costs one small read where nothing is to be done; root commits are asked
for in the background, the ages of sessions once a day and only where a setting lets them go.
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
from ..disk.transcripts.search import project_directories
from ..memory.store.project_identity import Identity, identify, identity_in, note
from ..memory.store.scopes import project_root
from . import retention
from .migrate.migrate import candidates, gone, root_commits, topics_in

# A person waits for this one, and only where some project's path is gone.
WAIT = 1.0


def run_start_checks(
    cwd: Path, home: Path | None, settings: Settings, *, environ: Mapping[str, str], now: float | None = None
) -> list[str]:
    """The sentences a person should read at the start of a session in `cwd`."""
    if home is None or not (home / "projects").is_dir():
        return []
    now = time.time() if now is None else now
    found: list[str | None] = []
    with suppress(LaminaError, OSError):
        found.append(_offer(cwd, home, settings, environ))
    with suppress(LaminaError, OSError):
        found.append(_retention(home, settings, now))
    with suppress(LaminaError, OSError):
        found.append(retention.clear_ledgers(home, now=now, keep=settings.retention_days))
    return [said for said in found if said is not None]


def _offer(cwd: Path, home: Path, settings: Settings, environ: Mapping[str, str]) -> str | None:
    """Who this project may have been, if there is exactly one and nothing is remembered here yet."""
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
    return f"The memory of {one.known.path}, which is gone, may belong here ({one.because}): lamina migrate brings it over."


def learn_roots(home: Path, project: Path, environ: Mapping[str, str]) -> Identity | None:
    """Adds the root commits to the project's file; it is asked for again next time where they could not be found out."""
    directory = home / "projects" / slug(project)
    roots = root_commits(project, environ=environ)
    own = identity_in(directory)
    if own is None or roots is None or own.path != str(project):
        return own
    new = msgspec.structs.replace(own, roots=roots)
    note(directory, new)
    return new


def _retention(home: Path, settings: Settings, now: float) -> str | None:
    days = settings.retention_days
    before = retention.load_state(home)
    if days is not None and not 0 <= now - before.passed < retention.DAY:
        retention.save_state(home, msgspec.structs.replace(before, passed=now))
        retention.finish_removals(home)
        directories = project_directories(home / "projects")
        planned = retention.plan_removal(directories, home, now=now, older_than=days * retention.DAY)
        retention.remove_sessions(planned, home, now=now, days=days)
    return retention.announce(home)
