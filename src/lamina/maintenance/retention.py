"""Retention of sessions (`cleanupPeriodDays`): they are kept forever by default, and never removed silently.

Finds the sessions that are old enough. Open sessions, and those a memory refers to, are kept and reported. Removing one takes
three steps: a line in `<home>/removed-sessions.jsonl` (id, time and age, no content), then the transcript, then the session's
other files. A session's spilled results are removed with it and never before.

The ledgers of background work (B9) are removed after LEDGER_DAYS, or with the sessions if those are kept for less. This is
reported too.

A crash at any point leaves either the whole session or a part of its directory, which the next pass removes because its line is
in the journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..core.errors import DiskError, InputError
from ..disk.append import Appender
from ..disk.files import read, remove, update
from ..disk.home.ledger import day_of, ledger_file
from ..disk.home.ledger import list_ledger_days as ledger_days
from ..disk.locks.lock_file import LifeLock
from ..disk.regular_file import subdirectories
from ..disk.transcripts.store import lock_path
from ..disk.trees.rewrite import remove_tree
from ..language.text import encodable
from ..language.wording import counted
from .kept_files import MEMORY, SessionFiles, regular_files, session_files, windows

JOURNAL = "removed-sessions.jsonl"
STATE = "retention.json"
DAY = 86_400.0
# Sessions removed at one start; the rest follows on the next days.
MOST_IN_A_PASS = 500
# About twenty thousand sessions fill half of it; then the older half is dropped. One pass adds far less than the other half.
MOST_JOURNAL = 8 << 20
# Size of the parts in which files are searched for session ids, and the longest such id.
PART = 1 << 20
LONGEST_ID = 128
# Enough to compare months; a day's ledger has about ten thousand bytes.
LEDGER_DAYS = 90
_UNITS = {"d": DAY, "w": 7 * DAY, "m": 30 * DAY, "y": 365 * DAY, "h": 3_600.0}


class OldSession(NamedTuple):
    files: SessionFiles
    modified: float
    size: int


class KeptSession(NamedTuple):
    files: SessionFiles
    why: str


class RetentionPlan(NamedTuple):
    remove: tuple[OldSession, ...]
    keep: tuple[KeptSession, ...]


class RemovedSession(msgspec.Struct, frozen=True):
    """A line of the journal of removed sessions."""

    time: float
    session: str
    project: str
    modified: float
    size: int
    days: float


class RetentionState(msgspec.Struct, frozen=True):
    """`told` is the journal size at the last announcement, `passed` the time of the last pass."""

    told: int = 0
    passed: float = 0.0


def parse_age(text: str) -> float:
    """Parse an age such as `30d`, `12w`, `6m` or `1y` into seconds; a plain number means days."""
    number, unit = (text[:-1], text[-1:]) if text[-1:].lower() in _UNITS else (text, "d")
    if not number.isascii() or not number.isdigit() or not int(number):
        raise InputError("--older-than", f"invalid age {text!r}", "use a value like 30d, 12w, 6m or 1y")
    return int(number) * _UNITS[unit.lower()]


def plan_removal(directories: Iterable[Path], home: Path, *, now: float, older_than: float) -> RetentionPlan:
    """Plan which sessions to remove, oldest first, and which old ones to keep and why."""
    seen = (one for directory in directories for files in session_files(directory) if (one := _seen(files)) is not None)
    old = sorted((one for one in seen if now - one.modified > older_than), key=lambda one: one.modified)
    named = _referred({one.files.id for one in old}, home) if old else set()
    live = {one.files for one in old if one.files.holder() is not None}
    referred = {one.files for one in old if one.files.id in named} - live
    keep = [KeptSession(one.files, "it is open") for one in old if one.files in live]
    keep += [KeptSession(one.files, "a memory refers to it") for one in old if one.files in referred]
    remove = (
        one._replace(size=one.size + sum(path.stat().st_size for path in regular_files(one.files.directory)))
        for one in old
        if one.files not in live | referred
    )
    return RetentionPlan(tuple(remove), tuple(keep))


def _seen(files: SessionFiles) -> OldSession | None:
    try:
        found = os.stat(files.transcript)
    except OSError:
        return None
    return OldSession(files, found.st_mtime, found.st_size)


def _referred(ids: set[str], home: Path) -> set[str]:
    """Return the ids that an existing memory or its history refers to."""
    wanted = {one.encode(): one for one in ids}
    found: set[str] = set()
    for project in subdirectories(home / "projects"):
        for path in regular_files(project / MEMORY, skip={project / MEMORY / ".history" / "git"}):
            if path.suffix in (".md", ".jsonl"):
                with suppress(OSError):
                    found |= {name for data in windows(path, PART, LONGEST_ID) for raw, name in wanted.items() if raw in data}
    return found


def remove_sessions(planned: RetentionPlan, home: Path, *, now: float, days: float) -> list[RemovedSession]:
    """Remove the planned sessions, except those opened in the meantime."""
    done: list[RemovedSession] = []
    if planned.remove:
        _shorten(home)
    for files, modified, size in planned.remove[:MOST_IN_A_PASS]:
        lock = LifeLock.acquire(lock_path(files.transcript))
        if lock is None:
            continue
        with closing(lock):
            line = RemovedSession(now, files.id, files.transcript.parent.name, modified, size, days)
            with Appender.open(home / JOURNAL) as journal:
                journal.append([msgspec.json.encode(line, enc_hook=encodable)])
                journal.sync()
            remove(files.transcript)
            done.append(line)
            # This also removes the lock file we hold: a process waiting for it notices and starts over.
            remove_tree(files.directory)
    _drop_from_index(home, [one.files for one in planned.remove])
    return done


def _drop_from_index(home: Path, removed: list[SessionFiles]) -> None:
    """Remove the texts of these sessions, and of their subagents, from the index of sessions, if there is one."""
    from ..history.catalogue import index_path, with_catalogue

    gone = [str(files.transcript) for files in removed if not files.transcript.exists()]
    if gone and index_path(home).exists():
        with_catalogue(home, lambda catalogue: catalogue.drop(gone))


def _shorten(home: Path) -> None:
    """Drop the older half of a full journal. A line that another process appends meanwhile fails there; its session stays."""
    data = read(home / JOURNAL, MOST_JOURNAL) or b""
    if len(data) < MOST_JOURNAL // 2:
        return
    cut = data.find(b"\n", len(data) // 2) + 1
    update(home / JOURNAL, lambda now: (now or b"")[cut:])
    before = load_state(home)
    save_state(home, msgspec.structs.replace(before, told=max(0, before.told - cut)))


def finish_removals(home: Path) -> None:
    """Finish removals that a crash interrupted: delete directories of sessions already in the journal."""
    for line in read_journal(home):
        project = home / "projects" / line.project
        if not (project / f"{line.session}.jsonl").exists() and (project / line.session).is_dir():
            remove_tree(project / line.session)


def read_journal(home: Path, *, start: int = 0) -> list[RemovedSession]:
    found = []
    for row in (read(home / JOURNAL, MOST_JOURNAL) or b"")[start:].split(b"\n"):
        with suppress(msgspec.DecodeError):
            found.append(msgspec.json.decode(row, type=RemovedSession))
    return found


def clear_ledgers(home: Path, *, now: float, keep: float | None) -> str | None:
    """Remove old ledgers and return a message about it. `keep` is how many days sessions are kept, None meaning forever."""
    first = day_of(now - (LEDGER_DAYS if keep is None else min(LEDGER_DAYS, keep)) * DAY)
    old = [day for day in ledger_days(home) if day < first]
    gone = [day for day in old[:MOST_IN_A_PASS] if remove(ledger_file(home, day))]
    if not gone:
        return None
    return f"Removed background-work ledgers of {counted(len(gone), 'day')} up to {gone[-1]}; the limit is {LEDGER_DAYS} days."


def load_state(home: Path) -> RetentionState:
    with suppress(msgspec.DecodeError, DiskError):
        return msgspec.json.decode(read(home / STATE, 4_096) or b"{}", type=RetentionState)
    return RetentionState()


def save_state(home: Path, new: RetentionState) -> None:
    update(home / STATE, lambda _: msgspec.json.encode(new) + b"\n", durability="process")


def announce(home: Path) -> str | None:
    """Return a message about sessions removed since the last announcement, and mark them as announced."""
    before = load_state(home)
    size = len(read(home / JOURNAL, MOST_JOURNAL) or b"")
    new = read_journal(home, start=before.told if before.told <= size else 0)
    if not new:
        return None
    save_state(home, msgspec.structs.replace(before, told=size))
    days = max(line.days for line in new)
    return (
        f"Removed {counted(len(new), 'session')} older than {days:g} {'day' if days == 1 else 'days'} "
        f"({counted(sum(line.size for line in new), 'byte')}), as set by cleanupPeriodDays. See {home / JOURNAL} for the list."
    )
