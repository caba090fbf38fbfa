"""Check the sessions of a project and the home directory (Z4, Z9, Z12).

Reads complete transcripts, newest first, up to a budget, and reports the rest as not checked. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ...core.errors import DiskError
from ...core.log import Log
from ...disk.home.approvals import FILE_NAME as APPROVALS
from ...disk.home.trust import FILE_NAME as TRUST
from ...disk.locks.lock_file import live_holder
from ...disk.settings_files import FILE_NAME, FLAGS_NAME
from ...disk.transcripts.jsonl import Health
from ...disk.transcripts.repairs import MOST_BYTES
from ...disk.transcripts.store import FORK_NAME, lock_path, read_origin, read_transcript
from ...disk.trees.survey import SurveyedEntry, look_at, survey
from ...language.wording import counted, plural
from .files import check_private, check_tree
from .finding import Finding, PathFix

# About two seconds of reading, or a hundred sessions of usual length.
MOST_READ = 256 << 20
_OWN_FILES = (FILE_NAME, FLAGS_NAME, TRUST, APPROVALS)

Tell = Callable[[str], None]


def check_home(home: Path, project: Path) -> Iterator[Finding]:
    """Check that the home is private. Files below are checked too, since homes are copied and opened later."""
    own = [home / name for name in _OWN_FILES]
    for path in (home, *own, project.parent, project):
        found = look_at(path)
        # A file in place of a directory is not ours to change: the user named it as the home by mistake.
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
            text = f"{seen.path} was left by a fork that was killed before it started; the original session is intact."
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
        were = f"{counted(len(files), 'transcript')} ({size}) {plural(len(skipped), 'was', 'were')}"
        text = f"{len(skipped):,} of {were} not checked; the limit is {MOST_READ >> 20} MB."
        yield Finding("sessions", "not-looked-at", text, str(project))


def _live(path: Path) -> str | None:
    """Return the process that has the transcript open. In a read-only directory this is unknown, so assume there is one."""
    try:
        return live_holder(lock_path(path))
    except DiskError:
        return "an unknown process"


def _transcript(path: Path, seen: SurveyedEntry) -> Iterator[Finding]:
    health = Health()
    try:
        tree = Log.tree_of(read_transcript(path, health=health))
        written = read_origin(path)
    except DiskError as error:
        yield Finding("sessions", "unreadable", f"{path.name} cannot be read: {error.problem}.", str(path))
        return
    if written.newer is not None:
        text = f"{path.name} was written in format {written.newer} by a newer Lamina; it can be read, not continued."
        yield Finding("sessions", "newer-format", text, str(path))
    for problem in tree.problems():
        yield Finding("sessions", "odd-tree", f"{path.name}: {problem}", str(path))
    if not health.kinds:
        return
    live, fix = _live(path), None
    advice = "All other records are intact."
    if written.ours and live is None and seen.size <= MOST_BYTES:
        fix = PathFix("repair", str(path))
        advice += " Use --fix to repair the file; a backup is kept in the session's directory."
    if live is not None:
        advice += f" It is in use by {live}."
    elif not written.ours:
        advice += " Another program wrote it last, so Lamina does not change it."
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(health.kinds.items()))
    kind, text = "rescued-records", f"{path.name} is damaged, but every record was recovered ({kinds})."
    if health.skipped:
        lines = counted(health.skipped, "unreadable line")
        kind, text = "damaged-transcript", f"{path.name} has {lines} ({kinds})."
    yield Finding("sessions", kind, text, str(path), fix=fix, advice=advice)
