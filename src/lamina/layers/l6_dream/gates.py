"""Decides whether a dream is due: the gates, cheapest first, and the count of sessions for one of them.

The gates are in order of cost: the settings, one stat, nothing at all while the last scan is recent, one listing of the transcripts, the
ledger, the lock. A dream started by hand skips the gates about time, sessions and the main agent.

Owns `<memory>/.dreams/places/`. It has one file for each directory of transcripts whose sessions use this memory, with the same name as
the directory and its path as the content. (Subdirectories and worktrees of a repository share a memory, and so do projects that were
given the same directory.) Invariants: a file is written once and then only checked, so it costs a session one stat; unreadable and
missing directories count as empty; no transcript is opened. A crash at any line leaves no entry or a complete one, and the next session
writes it again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from ...core.errors import DiskError
from ...core.settings.collection_kinds import Mode
from ...core.settings.resolution import Settings
from ...disk.trees.rootdir import RootDir
from ...language.text import Text
from ...language.wording import counted
from ...memory.store.daily_logs import days_to_distil
from ...memory.store.modes import plan_write
from ...memory.switches import why_off

Gate: TypeAlias = Literal[
    "off", "remote", "agent", "mode", "failures", "time", "throttle", "sessions", "nothing", "budget", "lock"
]

# After three failures in a row in one session, a fourth attempt would most likely fail too.
MOST_FAILURES = 3
MINUTE_NS = 60 * 1_000_000_000
HOUR_NS = 60 * MINUTE_NS

PLACES = ".dreams/places"
# Nobody uses more checkouts of one repository at a time. The limit keeps the listing short.
MOST_PLACES = 256
_PATH_BYTES = 8_192


class DreamStop(NamedTuple):
    """The gate that stopped a dream, and the reason for the message `no dream: …`."""

    gate: Gate
    why: str


def find_off(settings: Settings) -> DreamStop | None:
    """Return the setting that switched private memory off, with what to do; None if it is on."""
    why = why_off(settings)
    return DreamStop("mode" if settings.memory else "off", why) if why is not None else None


def find_stop(*, on: bool, remote: bool, lent: bool, mode: Mode, failures: int = 0) -> DreamStop | None:
    """Check the gates that read nothing from disk. `on` is the switch; the settings turn it off without memory and in bare mode.
    `lent`: this is a main agent with memory. `mode` is that of the private scope. `failures` counts failed dreams in a row."""
    checks: tuple[tuple[bool, Gate, str], ...] = (
        (not on, "off", "dreaming is off"),
        (remote, "remote", "ephemeral machine"),
        (not lent, "agent", "this is not a main agent with memory"),
        (plan_write(mode, "dream") == "refuse", "mode", "private memory is read-only"),
        (failures >= MOST_FAILURES, "failures", Text("{limit} failures in a row", limit=MOST_FAILURES)),
    )
    return next((DreamStop(gate, why) for stops, gate, why in checks if stops), None)


def check_time(last_ns: int | None, now_ns: int, *, hours: float, daily: bool, zone: tzinfo | None = None) -> DreamStop | None:
    """Check the time since the last dream (None: there was none). With `daily` (assistant mode), the first turn after local midnight
    passes; `zone` defaults to the machine's. A timestamp over an hour in the future is ignored; one slightly ahead counts as now."""
    if last_ns is None or last_ns - now_ns > HOUR_NS:
        return None
    if daily:
        return DreamStop("time", "the last dream was today") if _day(last_ns, zone) >= _day(now_ns, zone) else None
    if now_ns - last_ns >= hours * HOUR_NS:
        return None
    passed = max(0, now_ns - last_ns) // MINUTE_NS
    wait = max(1, math.ceil(hours * 60) - passed)
    return DreamStop(
        "time", Text("the last dream was {passed} ago; the next may run in {left}", passed=_ago(passed), left=_span(wait))
    )


def _ago(minutes: int) -> Text:
    if minutes < 60:
        return counted(minutes, "minute") if minutes else Text("less than a minute")
    return counted(minutes // 60, "hour")


def _span(minutes: int) -> Text:
    hours, remainder = divmod(minutes, 60)
    if hours and remainder:
        return Text("{h} h {m} min", h=hours, m=remainder)
    return Text("{n} h", n=hours) if hours else Text("{n} min", n=remainder)


def _day(moment_ns: int, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(moment_ns / 1e9, UTC).astimezone(zone).date().isoformat()


def check_throttle(seconds: float | None, *, minutes: float) -> DreamStop | None:
    """Check the time since sessions were last counted (None: not yet in this session)."""
    if seconds is None or seconds >= minutes * 60:
        return None
    return DreamStop(
        "throttle",
        Text(
            "sessions were counted {n} minute ago (the minimum is {minutes:g})|sessions were counted {n} minutes "
            "ago (the minimum is {minutes:g})",
            n=round(seconds / 60),
            minutes=minutes,
        ),
    )


def check_sessions(found: int, *, wanted: int) -> DreamStop | None:
    return (
        DreamStop(
            "sessions",
            Text(
                "only {found} of {n} session since the last dream|only {found} of {n} sessions since the last dream",
                found=found,
                n=wanted,
            ),
        )
        if found < wanted
        else None
    )


# Sessions


def register_place(memory: Path, transcripts: Path) -> bool:
    """Note that sessions in `transcripts` use this memory. False if there is no memory yet or it cannot be written."""
    name = f"{PLACES}/{transcripts.name}"
    if os.path.lexists(memory / name):
        return True
    if not memory.is_dir():
        return False
    try:
        with RootDir.open(memory, create=False) as root:
            root.replace(name, os.fsencode(transcripts), durability="process")
    except DiskError:
        return False  # sessions in the session's own directory still count
    return True


def transcript_places(root: RootDir, own: Path | None) -> tuple[Path, ...]:
    """Return the directories of transcripts, the session's own first."""
    places: dict[Path, None] = {own: None} if own is not None else {}
    entries = []
    with suppress(DiskError):
        entries = root.listdir(PLACES)
    for entry in sorted(entries, key=lambda entry: entry.name)[:MOST_PLACES]:
        with suppress(DiskError, ValueError):
            data = root.read_bytes(f"{PLACES}/{entry.name}", _PATH_BYTES) or b""
            path = Path(os.fsdecode(data))
            if path.is_absolute() and path.name == entry.name:
                places[path] = None
    return tuple(places)


def searchable_places(memory: Path, own: Path | None, home: Path | None) -> tuple[Path, ...]:
    """Return the directories a dream may search: only those where Lamina keeps transcripts."""
    with RootDir.open(memory, create=False) as root:
        return tuple(place for place in transcript_places(root, own) if home is not None and place.parent == home / "projects")


def check_empty(memory: Path) -> DreamStop | None:
    """Stop if the memory directory contains nothing but our own files."""
    if memory.is_dir():
        with RootDir.open(memory, create=False) as root:
            if any(not entry.name.startswith(".") for entry in root.each()):
                return None
    return DreamStop("nothing", "there are no memories yet")


def check_new(
    root: RootDir, settings: Settings, *, last_ns: int | None, now: float, transcripts: Path | None, own: Path | None
) -> DreamStop | None:
    """Stop unless there were enough sessions since the last dream or, in assistant mode, a daily log of a past day. `transcripts` is the
    session's directory, `own` its transcript, which does not count."""
    if settings.assistant:
        days = days_to_distil(root, last_ns / 1e9 if last_ns is not None else None, now)
        return None if days else DreamStop("nothing", "no earlier day has a new daily log, and today's waits for midnight")
    wanted = settings.dream_sessions
    return check_sessions(count_newer(transcript_places(root, transcripts), last_ns, own=own, enough=wanted), wanted=wanted)


def count_newer(places: Iterable[Path], since_ns: int | None, *, own: Path | None, enough: int) -> int:
    """Count the transcripts written since then, up to `enough` and without the session's own."""
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
                count += _is_newer(entry, since_ns, own)
    return count


def _is_newer(entry: os.DirEntry[str], since_ns: int | None, own: Path | None) -> bool:
    if not entry.name.endswith(".jsonl") or (own is not None and entry.name == own.name and Path(entry.path) == own):
        return False
    try:
        if not entry.is_file(follow_symlinks=False):
            return False
        stat = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    # An empty session leaves nothing to process.
    return stat.st_size > 0 and (since_ns is None or stat.st_mtime_ns > since_ns)
