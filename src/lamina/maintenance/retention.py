"""How long sessions are kept (`cleanupPeriodDays`): for ever unless somebody says otherwise, and never silently.

Decides which sessions are old enough; keeps those that are open and those a memory refers to, and says so. Removing one: a line
in `<home>/removed-sessions.jsonl` (which, when, how old; nothing of what was said), then the transcript, then the files beside
it. A session's spilled results go with it and never before.

The ledgers of background work (B9) go after LEDGER_DAYS, or with the sessions where those are kept for less, and that is said too.

A crash at any line leaves a session, or what is left of its directory, which the next pass removes because its line is there.
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
from ..disk.transcripts.search import project_directories
from ..disk.transcripts.store import lock_path
from ..disk.trees.rewrite import remove_tree
from .kept_files import MEMORY, SessionFiles, regular_files, session_files, windows

JOURNAL = "removed-sessions.jsonl"
STATE = "retention.json"
DAY = 86_400.0
# One start must not spend its time on years of sessions; the rest goes on the following days.
MOST_IN_A_PASS = 500
# Some twenty thousand sessions fill half of it; then its older half goes, since those are long gone. A pass adds far less than the rest.
MOST_JOURNAL = 8 << 20
# Of a file that is searched for sessions' ids, and how long such an id is at most.
PART = 1 << 20
LONGEST_ID = 128
# A quarter of a year shows what a month costs; a day's ledger is some ten thousand bytes.
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
    """A line of the journal."""

    time: float
    session: str
    project: str
    modified: float
    size: int
    days: float


class RetentionState(msgspec.Struct, frozen=True):
    """`told`: how far the journal was announced. `passed`: when the last pass was."""

    told: int = 0
    passed: float = 0.0


def parse_age(text: str) -> float:
    """Seconds of `30d`, `12w`, `6m`, `1y`; a plain number is days."""
    number, unit = (text[:-1], text[-1:]) if text[-1:].lower() in _UNITS else (text, "d")
    if not number.isascii() or not number.isdigit() or not int(number):
        raise InputError("--older-than", f"{text!r} is no length of time", "write 30d, 12w, 6m or 1y")
    return int(number) * _UNITS[unit.lower()]


def plan_removal(directories: Iterable[Path], home: Path, *, now: float, older_than: float) -> RetentionPlan:
    """Which sessions of these directories go, oldest first, and which that are old enough stay and why."""
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
    """Those of the ids that a memory still there, or its history, names."""
    wanted = {one.encode(): one for one in ids}
    found: set[str] = set()
    for project in project_directories(home / "projects"):
        for path in regular_files(project / MEMORY, skip={project / MEMORY / ".history" / "git"}):
            if path.suffix in (".md", ".jsonl"):
                with suppress(OSError):
                    found |= {name for data in windows(path, PART, LONGEST_ID) for raw, name in wanted.items() if raw in data}
    return found


def remove_sessions(planned: RetentionPlan, home: Path, *, now: float, days: float) -> list[RemovedSession]:
    """Removes what was decided. One that was opened meanwhile stays."""
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
                journal.append([msgspec.json.encode(line)])
                journal.sync()
            remove(files.transcript)
            done.append(line)
            # With its lock file, which is held: whoever waits for it sees that it is gone and begins anew.
            remove_tree(files.directory)
    return done


def _shorten(home: Path) -> None:
    """Halves a journal that is full (Z7). A line that another process adds meanwhile is refused there, and its session stays."""
    data = read(home / JOURNAL, MOST_JOURNAL) or b""
    if len(data) < MOST_JOURNAL // 2:
        return
    cut = data.find(b"\n", len(data) // 2) + 1
    update(home / JOURNAL, lambda now: (now or b"")[cut:])
    before = load_state(home)
    save_state(home, msgspec.structs.replace(before, told=max(0, before.told - cut)))


def finish_removals(home: Path) -> None:
    """Removes the directories that a crash left of sessions whose line is in the journal."""
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
    """Removes old ledgers, and says so in one sentence. `keep`: how many days sessions are kept; None: for ever."""
    first = day_of(now - (LEDGER_DAYS if keep is None else min(LEDGER_DAYS, keep)) * DAY)
    old = [day for day in ledger_days(home) if day < first]
    gone = [day for day in old[:MOST_IN_A_PASS] if remove(ledger_file(home, day))]
    if not gone:
        return None
    count, days = len(gone), "day" if len(gone) == 1 else "days"
    return f"The ledgers of background work of {count} {days} up to {gone[-1]} were removed; {LEDGER_DAYS} days are kept at most."


def load_state(home: Path) -> RetentionState:
    with suppress(msgspec.DecodeError, DiskError):
        return msgspec.json.decode(read(home / STATE, 4_096) or b"{}", type=RetentionState)
    return RetentionState()


def save_state(home: Path, new: RetentionState) -> None:
    update(home / STATE, lambda _: msgspec.json.encode(new) + b"\n", durability="process")


def announce(home: Path) -> str | None:
    """One sentence on what was removed since the last one, and it is noted as said."""
    before = load_state(home)
    size = len(read(home / JOURNAL, MOST_JOURNAL) or b"")
    new = read_journal(home, start=before.told if before.told <= size else 0)
    if not new:
        return None
    save_state(home, msgspec.structs.replace(before, told=size))
    days = max(line.days for line in new)
    sessions_, were = ("session", "was") if len(new) == 1 else ("sessions", "were")
    return (
        f"{len(new)} {sessions_} older than {days:g} days {were} removed, with {sum(line.size for line in new):,} bytes; "
        f"{home / JOURNAL} lists them, and cleanupPeriodDays says how long they are kept."
    )
