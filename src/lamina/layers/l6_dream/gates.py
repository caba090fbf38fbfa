"""Whether a dream is due (D1, W2): the gates, the cheapest first, and the sessions that one of them counts.

The order of the gates is the order of cost: what the settings say, one stat, nothing while the last look is young, one listing of the
transcripts, the ledger, the lock. A dream by hand passes the gates of time and sessions, and those about who is there.

Owns `<memory>/.dreams/places/`: a file for each directory of transcripts whose sessions use this memory (subdirectories and worktrees
of a repository share one; so do projects that were given the same directory), named like it and holding its path. Invariants: a place
is written once and then only looked at, so a session pays one stat for it; unreadable and missing places count nothing; no transcript
is opened. A crash at any line leaves no entry or a whole one; the next session writes it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from ...core.errors import DiskError
from ...core.settings.collection_kinds import Mode
from ...disk.trees.rootdir import RootDir
from ...memory.store.modes import plan_write

Gate: TypeAlias = Literal[
    "off", "remote", "agent", "mode", "failures", "time", "throttle", "sessions", "nothing", "budget", "lock"
]

# What fails three times in a row in one session fails for a reason that a fourth time does not mend.
MOST_FAILURES = 3
HOUR_NS = 3_600 * 1_000_000_000

PLACES = ".dreams/places"
# Nobody works in more checkouts of one repository at a time; the listing stays short whatever lies there.
MOST_PLACES = 256
_PATH_BYTES = 8_192


class DreamStop(NamedTuple):
    """The gate that stopped a dream, and its reason as a sentence's end: `no dream: …`."""

    gate: Gate
    why: str


def find_stop(*, on: bool, remote: bool, lent: bool, mode: Mode, failures: int = 0) -> DreamStop | None:
    """The gates that look at no disk. `on`: the switch, which rules of the settings turn off where memory is off and in bare mode.
    `lent`: there is a main agent with memory. `mode`: of the private scope. `failures`: of dreams, in a row, in this session."""
    checks: tuple[tuple[bool, Gate, str], ...] = (
        (not on, "off", "dreaming is off"),
        (remote, "remote", "this machine is thrown away"),
        (not lent, "agent", "this is no main agent with memory"),
        (plan_write(mode, "dream") == "refuse", "mode", "private memory is not written to"),
        (failures >= MOST_FAILURES, "failures", f"it failed {MOST_FAILURES} times in a row"),
    )
    return next((DreamStop(gate, why) for stops, gate, why in checks if stops), None)


def check_time(last_ns: int | None, now_ns: int, *, hours: float, daily: bool, zone: tzinfo | None = None) -> DreamStop | None:
    """The gate of time. `last_ns` None: there was none yet. `daily`: assistant mode (W2), where the first turn behind local midnight
    is the one; `zone` None: where this machine is. A time more than an hour ahead of us says nothing, one a little ahead is now."""
    if last_ns is None or last_ns - now_ns > HOUR_NS:
        return None
    if daily:
        return DreamStop("time", "the last one was today") if _day(last_ns, zone) >= _day(now_ns, zone) else None
    if now_ns - last_ns >= hours * HOUR_NS:
        return None
    passed = max(0, now_ns - last_ns) / HOUR_NS
    return DreamStop("time", f"the last one was {passed:.1f} of {hours:g} hours ago")


def _day(moment_ns: int, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(moment_ns / 1e9, UTC).astimezone(zone).date().isoformat()


def check_throttle(seconds: float | None, *, minutes: float) -> DreamStop | None:
    """`seconds` since sessions were last counted; None: not in this session."""
    if seconds is None or seconds >= minutes * 60:
        return None
    return DreamStop("throttle", f"sessions were counted {seconds / 60:.0f} of {minutes:g} minutes ago")


def check_sessions(found: int, *, wanted: int) -> DreamStop | None:
    return DreamStop("sessions", f"{found} of {wanted} sessions since the last one") if found < wanted else None


# Sessions


def register_place(memory: Path, transcripts: Path) -> bool:
    """Note that sessions kept in `transcripts` use this memory. False: there is no memory yet, or it cannot be written."""
    name = f"{PLACES}/{transcripts.name}"
    if os.path.lexists(memory / name):
        return True
    if not memory.is_dir():
        return False
    try:
        with RootDir.open(memory, create=False) as root:
            root.replace(name, os.fsencode(transcripts), durability="process")
    except DiskError:
        return False  # those of the session's own directory are counted all the same
    return True


def transcript_places(root: RootDir, own: Path | None) -> tuple[Path, ...]:
    """The directories of transcripts; that of the session itself first."""
    found: dict[Path, None] = {own: None} if own is not None else {}
    entries = []
    with suppress(DiskError):
        entries = root.listdir(PLACES)
    for entry in sorted(entries, key=lambda entry: entry.name)[:MOST_PLACES]:
        with suppress(DiskError, ValueError):
            data = root.read_bytes(f"{PLACES}/{entry.name}", _PATH_BYTES) or b""
            path = Path(os.fsdecode(data))
            if path.is_absolute() and path.name == entry.name:
                found[path] = None
    return tuple(found)


def searchable_places(memory: Path, own: Path | None, home: Path | None) -> tuple[Path, ...]:
    """The directories a dream may search: only those where Lamina keeps transcripts."""
    with RootDir.open(memory, create=False) as root:
        return tuple(place for place in transcript_places(root, own) if home is not None and place.parent == home / "projects")


def check_empty(memory: Path) -> DreamStop | None:
    """Stops where there is no file and no directory but our own."""
    if memory.is_dir():
        with RootDir.open(memory, create=False) as root:
            if any(not entry.name.startswith(".") for entry in root.listdir()):
                return None
    return DreamStop("nothing", "nothing is remembered yet")


def count_newer(places: Iterable[Path], since_ns: int | None, *, own: Path | None, enough: int) -> int:
    """How many transcripts were written to since then, the session's own left out; counted up to `enough`."""
    count = 0
    for place in places:
        try:
            entries = os.scandir(place)
        except OSError:
            continue
        with entries:
            for entry in entries:
                if count >= enough:
                    return count
                count += _counts(entry, since_ns, own)
    return count


def _counts(entry: os.DirEntry[str], since_ns: int | None, own: Path | None) -> bool:
    if not entry.name.endswith(".jsonl") or (own is not None and entry.name == own.name and Path(entry.path) == own):
        return False
    try:
        if not entry.is_file(follow_symlinks=False):
            return False
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    # A session in which nothing was said has left nothing to dream of.
    return found.st_size > 0 and (since_ns is None or found.st_mtime_ns > since_ns)
