"""What is wrong with the sessions of a project, and with the home they lie in (Z4, Z9, Z12).

Reads transcripts whole, newest first, up to a budget; what is beyond it is said, not read. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ...core.errors import DiskError
from ...disk.home.approvals import FILE_NAME as APPROVALS
from ...disk.home.trust import FILE_NAME as TRUST
from ...disk.locks.lock_file import live_holder
from ...disk.settings_files import FILE_NAME, FLAGS_NAME
from ...disk.transcripts.jsonl import Health, read_lines
from ...disk.transcripts.repairs import MOST_BYTES
from ...disk.transcripts.store import FORK_NAME, lock_path, read_origin
from ...disk.trees.survey import SurveyedEntry, look_at, survey
from .files import leftovers, not_plain, not_private, not_read
from .finding import DropFork, Finding, Repair

# About two seconds of reading: some hundred sessions of a usual length.
MOST_READ = 256 << 20
_OWN_FILES = (FILE_NAME, FLAGS_NAME, TRUST, APPROVALS)
_TRANSCRIPT = ".jsonl"

Tell = Callable[[str], None]


def check_home(home: Path, project: Path) -> Iterator[Finding]:
    """Whether others can look into it. Below a home that is closed nobody gets anywhere, but homes are copied and opened."""
    places = [home, *(home / name for name in _OWN_FILES), project.parent, project]
    seen = [(path, found) for path in places if (found := look_at(path)) is not None]
    for path, found in seen:
        # A file where a directory should be is somebody else's: whoever named it as the home did not mean to have it changed.
        if found.kind == "directory" or (found.kind == "file" and path.parent == home and path.name in _OWN_FILES):
            # An empty path stands for the place itself.
            yield from not_private([found._replace(path="")], path, "sessions")


def check_sessions(project: Path, *, now: float, tell: Tell) -> Iterator[Finding]:
    found = survey(project)
    if found is None:
        return
    entries = tuple(seen for seen in found.entries if seen.path != "memory" and not seen.path.startswith("memory/"))
    top = [seen for seen in entries if "/" not in seen.path and seen.path.endswith(_TRANSCRIPT)]
    yield from not_read(found, project, "sessions")
    yield from not_plain(top, project, "sessions")
    yield from not_private(entries, project, "sessions")
    yield from leftovers(entries, project, "sessions", now)
    yield from _forks(entries, project)
    yield from _transcripts([seen for seen in top if seen.kind == "file" and seen.links == 1 and seen.ours], project, tell)


def _forks(entries: tuple[SurveyedEntry, ...], project: Path) -> Iterator[Finding]:
    for seen in entries:
        path = project / seen.path
        if (
            seen.kind == "file"
            and seen.name == FORK_NAME
            and seen.path.count("/") == 1
            and live_holder(path.with_name("writer.lock")) is None
        ):
            text = f"{seen.path} was left by a fork that was killed before it began; the session it came from is whole."
            yield Finding("sessions", "stale-fork", text, "Remove it.", str(path), fix=DropFork(str(path)))


def _transcripts(files: list[SurveyedEntry], project: Path, tell: Tell) -> Iterator[Finding]:
    left, skipped = MOST_READ, list[SurveyedEntry]()
    newest = sorted(files, key=lambda seen: (-seen.mtime_ns, seen.path))
    for number, seen in enumerate(newest, 1):
        if seen.size > left:
            skipped.append(seen)
            continue
        left -= seen.size
        tell(f"reading session {number:,} of {len(files):,}")
        yield from _transcript(project / seen.path, seen)
    if skipped:
        size = sum(seen.size for seen in skipped) / 1e6
        text = (
            f"{len(skipped):,} of {len(files):,} transcripts ({size:,.0f} MB) were not read: {MOST_READ >> 20} MB are the most."
        )
        yield Finding(
            "sessions", "not-looked-at", text, "lamina sessions show ID reads one, and says what is wrong with it.", str(project)
        )


def _live(path: Path) -> str | None:
    """Who writes it; where nobody can be asked (a directory that may not be written), somebody might."""
    try:
        return live_holder(lock_path(path))
    except DiskError:
        return "somebody who cannot be asked"


def _transcript(path: Path, seen: SurveyedEntry) -> Iterator[Finding]:
    health = Health()
    try:
        for _ in read_lines(path, health=health):
            pass
        written = read_origin(path)
    except DiskError as error:
        yield Finding(
            "sessions", "unreadable", f"{path.name} cannot be read: {error.problem}.", "Check its permissions.", str(path)
        )
        return
    if written.newer is not None:
        text = f"{path.name} was written in format {written.newer} by a newer Lamina; it can be read, not continued."
        yield Finding("sessions", "newer-format", text, "Upgrade to continue it.", str(path))
    if not health.kinds:
        return
    live = _live(path)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(health.kinds.items()))
    may = written.ours and live is None and seen.size <= MOST_BYTES
    fix = Repair(str(path)) if may else None
    remedy = "All other records are read as they are." + (
        " --fix takes the damage out, with a backup in the session's directory." if may else ""
    )
    if live is not None:
        remedy += f" It is in use by {live}."
    elif not written.ours:
        remedy += " Another program wrote it last, so it is not touched."
    if health.skipped:
        text = f"{path.name} has {health.skipped:,} {'line' if health.skipped == 1 else 'lines'} that cannot be read ({kinds})."
        yield Finding("sessions", "damaged-transcript", text, remedy, str(path), fix=fix)
    else:
        text = f"{path.name} has damage from which every record was rescued ({kinds})."
        yield Finding("sessions", "rescued-records", text, remedy, str(path), fix=fix)
