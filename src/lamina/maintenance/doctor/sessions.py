"""What is wrong with the sessions of a project, and with the home they lie in (Z4, Z9, Z12).

Reads transcripts whole, newest first, up to a budget; what is beyond it is said, not read. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ...core.errors import DiskError
from ...core.wording import counted
from ...disk.home.approvals import FILE_NAME as APPROVALS
from ...disk.home.trust import FILE_NAME as TRUST
from ...disk.locks.lock_file import live_holder
from ...disk.settings_files import FILE_NAME, FLAGS_NAME
from ...disk.transcripts.jsonl import Health, read_lines
from ...disk.transcripts.repairs import MOST_BYTES
from ...disk.transcripts.store import FORK_NAME, lock_path, read_origin
from ...disk.trees.survey import SurveyedEntry, look_at, survey
from .files import check_private, check_tree
from .finding import Finding, PathFix

# About two seconds of reading: some hundred sessions of a usual length.
MOST_READ = 256 << 20
_OWN_FILES = (FILE_NAME, FLAGS_NAME, TRUST, APPROVALS)

Tell = Callable[[str], None]


def check_home(home: Path, project: Path) -> Iterator[Finding]:
    """Whether others can look into it. Below a home that is closed nobody gets anywhere, but homes are copied and opened."""
    own = [home / name for name in _OWN_FILES]
    for path in (home, *own, project.parent, project):
        found = look_at(path)
        # A file where a directory should be is somebody else's: whoever named it as the home did not mean to have it changed.
        if found is not None and (found.kind == "directory" or (found.kind == "file" and path in own)):
            yield from check_private([found._replace(path="")], path, "sessions")


def check_sessions(project: Path, *, now: float, tell: Tell) -> Iterator[Finding]:
    found = survey(project)
    if found is None:
        return
    entries = [seen for seen in found.entries if seen.path != "memory" and not seen.path.startswith("memory/")]
    top = [seen for seen in entries if "/" not in seen.path and seen.path.endswith(".jsonl")]
    yield from check_tree(found, entries, top, project, "sessions", now=now)
    for seen in entries:
        path = project / seen.path
        begun = seen.kind == "file" and seen.name == FORK_NAME and seen.path.count("/") == 1
        if begun and live_holder(path.with_name("writer.lock")) is None:
            text = f"{seen.path} was left by a fork that was killed before it began; the session it came from is whole."
            yield Finding("sessions", "stale-fork", text, str(path), fix=PathFix("drop-fork", str(path)))
    yield from _transcripts([seen for seen in top if seen.kind == "file" and seen.links == 1 and seen.ours], project, tell)


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
        size = f"{sum(seen.size for seen in skipped) / 1e6:,.0f} MB"
        text = f"{len(skipped):,} of {len(files):,} transcripts ({size}) were not read: {MOST_READ >> 20} MB are the most."
        yield Finding("sessions", "not-looked-at", text, str(project))


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
        yield Finding("sessions", "unreadable", f"{path.name} cannot be read: {error.problem}.", str(path))
        return
    if written.newer is not None:
        text = f"{path.name} was written in format {written.newer} by a newer Lamina; it can be read, not continued."
        yield Finding("sessions", "newer-format", text, str(path))
    if not health.kinds:
        return
    live, fix = _live(path), None
    advice = "All other records are read as they are."
    if written.ours and live is None and seen.size <= MOST_BYTES:
        fix = PathFix("repair", str(path))
        advice += " --fix takes the damage out, with a backup in the session's directory."
    if live is not None:
        advice += f" It is in use by {live}."
    elif not written.ours:
        advice += " Another program wrote it last, so it is not touched."
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(health.kinds.items()))
    kind, text = "rescued-records", f"{path.name} has damage from which every record was rescued ({kinds})."
    if health.skipped:
        lines = counted(health.skipped, "line", "lines")
        kind, text = "damaged-transcript", f"{path.name} has {lines} that cannot be read ({kinds})."
    yield Finding("sessions", kind, text, str(path), fix=fix, advice=advice)
