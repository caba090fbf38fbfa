"""How long sessions are kept (`cleanupPeriodDays`): for ever unless somebody says otherwise, and never silently.

Decides which sessions are old enough; keeps those that are open and those a memory refers to, and says so. Removing one: a line
in `<home>/removed-sessions.jsonl` (which, when, how old; nothing of what was said), then the transcript, then the files beside
it. A session's spilled results go with it and never before.

The ledgers of background work (B9) go after LEDGER_DAYS, or with the sessions where those are kept for less, and that is said too.

A crash at any line leaves a session, or what is left of its directory, which the next pass removes because its line is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
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
from .forget.files import MEMORY, Session, files, sessions

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


class Old(NamedTuple):
    session: Session
    modified: float
    size: int
    live: bool = False
    referred: bool = False


class Kept(NamedTuple):
    session: Session
    why: str


class Plan(NamedTuple):
    remove: tuple[Old, ...]
    keep: tuple[Kept, ...]


class Removed(msgspec.Struct, frozen=True):
    """A line of the journal."""

    time: float
    session: str
    project: str
    modified: float
    size: int
    days: float


class State(msgspec.Struct, frozen=True):
    """`told`: how far the journal was announced. `passed`: when the last pass was."""

    told: int = 0
    passed: float = 0.0


def age(text: str) -> float:
    """Seconds of `30d`, `12w`, `6m`, `1y`; a plain number is days."""
    number, unit = (text[:-1], text[-1:]) if text[-1:].lower() in _UNITS else (text, "d")
    if not number.isascii() or not number.isdigit() or not int(number):
        raise InputError("--older-than", f"{text!r} is no length of time", "write 30d, 12w, 6m or 1y")
    return int(number) * _UNITS[unit.lower()]


def plan(found: Iterable[Old], *, now: float, older_than: float) -> Plan:
    """Pure: which of these go, and which that are old enough stay and why."""
    old = [one for one in found if now - one.modified > older_than]
    keep = [Kept(one.session, "it is open") for one in old if one.live]
    keep += [Kept(one.session, "a memory refers to it") for one in old if one.referred and not one.live]
    return Plan(tuple(one for one in old if not one.live and not one.referred), tuple(keep))


def look(directories: list[Path], home: Path, *, now: float, older_than: float) -> list[Old]:
    """The sessions of these directories that are old enough to be asked about, oldest first."""
    old = [one for directory in directories for session in sessions(directory) if (one := _seen(session)) is not None]
    old = sorted((one for one in old if now - one.modified > older_than), key=lambda one: one.modified)
    named = _referred({one.session.transcript.stem for one in old}, home) if old else set()
    return [
        one._replace(
            size=one.size + sum(path.stat().st_size for path in files(one.session.directory)),
            live=one.session.holder() is not None,
            referred=one.session.transcript.stem in named,
        )
        for one in old
    ]


def _seen(session: Session) -> Old | None:
    try:
        found = os.stat(session.transcript)
    except OSError:
        return None
    return Old(session, found.st_mtime, found.st_size)


def _referred(ids: set[str], home: Path) -> set[str]:
    """Those of the ids that a memory still there, or its history, names."""
    wanted = {one.encode(): one for one in ids}
    found: set[str] = set()
    for project in project_directories(home / "projects"):
        for path in files(project / MEMORY, skip={project / MEMORY / ".history" / "git"}):
            if path.suffix in (".md", ".jsonl"):
                with suppress(OSError):
                    found |= {name for data in _parts(path) for raw, name in wanted.items() if raw in data}
    return found


def _parts(path: Path) -> Iterator[bytes]:
    """A file a part at a time; each begins with the end of the one before, so that an id is whole in one of them."""
    with open(path, "rb") as file:
        end = b""
        while part := file.read(PART):
            yield end + part
            end = part[-LONGEST_ID:]


def run(planned: Plan, home: Path, *, now: float, days: float) -> list[Removed]:
    """Removes what was decided. One that was opened meanwhile stays."""
    done: list[Removed] = []
    if planned.remove:
        _shorten(home)
    for one in planned.remove[:MOST_IN_A_PASS]:
        lock = LifeLock.acquire(lock_path(one.session.transcript))
        if lock is None:
            continue
        try:
            line = Removed(now, one.session.transcript.stem, one.session.transcript.parent.name, one.modified, one.size, days)
            with Appender.open(home / JOURNAL) as journal:
                journal.append([msgspec.json.encode(line)])
                journal.sync()
            remove(one.session.transcript)
            done.append(line)
            # With its lock file, which is held: whoever waits for it sees that it is gone and begins anew.
            remove_tree(one.session.directory)
        finally:
            lock.close()
    return done


def _shorten(home: Path) -> None:
    """Halves a journal that is full (Z7). A line that another process adds meanwhile is refused there, and its session stays."""
    data = read(home / JOURNAL, MOST_JOURNAL) or b""
    if len(data) < MOST_JOURNAL // 2:
        return
    cut = data.find(b"\n", len(data) // 2) + 1
    update(home / JOURNAL, lambda now: (now or b"")[cut:])
    before = state(home)
    note(home, msgspec.structs.replace(before, told=max(0, before.told - cut)))


def finish(home: Path) -> None:
    """Removes the directories that a crash left of sessions whose line is in the journal."""
    for line in journal(home):
        project = home / "projects" / line.project
        if not (project / f"{line.session}.jsonl").exists() and (project / line.session).is_dir():
            remove_tree(project / line.session)


def journal(home: Path, *, start: int = 0) -> list[Removed]:
    found = []
    for row in (read(home / JOURNAL, MOST_JOURNAL) or b"")[start:].split(b"\n"):
        with suppress(msgspec.DecodeError):
            found.append(msgspec.json.decode(row, type=Removed))
    return found


def old_ledgers(days: Iterable[str], *, now: float, keep: float | None) -> list[str]:
    """Pure: the days whose ledgers go. `keep`: how many days sessions are kept; None: for ever."""
    first = day_of(now - min(LEDGER_DAYS, LEDGER_DAYS if keep is None else keep) * DAY)
    return [day for day in days if day < first]


def clear_ledgers(home: Path, *, now: float, keep: float | None) -> str | None:
    """Removes them, and says so in one sentence."""
    gone = [day for day in old_ledgers(ledger_days(home), now=now, keep=keep)[:MOST_IN_A_PASS] if remove(ledger_file(home, day))]
    if not gone:
        return None
    count, days = len(gone), "day" if len(gone) == 1 else "days"
    return f"The ledgers of background work of {count} {days} up to {gone[-1]} were removed; {LEDGER_DAYS} days are kept at most."


def state(home: Path) -> State:
    with suppress(msgspec.DecodeError, DiskError):
        return msgspec.json.decode(read(home / STATE, 4_096) or b"{}", type=State)
    return State()


def note(home: Path, new: State) -> None:
    update(home / STATE, lambda _: msgspec.json.encode(new) + b"\n", durability="process")


def announcement(home: Path) -> str | None:
    """One sentence on what was removed since the last one, and it is noted as said."""
    before = state(home)
    size = len(read(home / JOURNAL, MOST_JOURNAL) or b"")
    new = journal(home, start=before.told if before.told <= size else 0)
    if not new:
        return None
    note(home, msgspec.structs.replace(before, told=size))
    days = max(line.days for line in new)
    sessions_, were = ("session", "was") if len(new) == 1 else ("sessions", "were")
    return (
        f"{len(new)} {sessions_} older than {days:g} days {were} removed, with {sum(line.size for line in new):,} bytes; "
        f"{home / JOURNAL} lists them, and cleanupPeriodDays says how long they are kept."
    )
