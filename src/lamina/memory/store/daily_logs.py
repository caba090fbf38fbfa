"""Daily logs: in assistant mode notes go to a log during the day, and a dream turns them into memories at night.

It owns `logs/YYYY/MM/YYYY-MM-DD.md` in the private memory directory: one bullet per line, with its local time. Invariants: a
log only grows, at its end, and only on its day. The time in front of a bullet comes from the session, not from a model.
Secrets are removed. No process loses another one's bullet, since all take the guard of the directory. Logs have no topic, no
index line and no version in the journal.

A crash at any line leaves the log without the new bullets or with all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import NamedTuple

from ...core.errors import DiskError, InputError
from ...disk.temp_files import Durability
from ...disk.trees.rootdir import RootDir
from .history import hold_guard
from .secrets import redact

LOGS = "logs"
# The model gets this pattern instead of a date, so that the prompt does not change with the day.
PATTERN = f"{LOGS}/YYYY/MM/YYYY-MM-DD.md"
# Two or three sentences. A longer text belongs in a memory.
MOST_CHARACTERS = 500
# About five hundred of the longest bullets: more than a day needs, as much as a dream can read, and quick to rewrite.
MOST_BYTES = 256 << 10
# An editor may save between our read and our rename; after this many times it is another kind of program.
_TRIES = 5

_FILE = re.compile(rf"{LOGS}/(\d{{4}})/(\d\d)/(\1-\2-\d\d)\.md")
_MARK = "\ufeff"  # some editors put it in front of a text
_TIME = re.compile(r"\d\d:\d\d\b")
# Ends a bullet whose content does not come from the user.
FOUND_IN = "[from: {}]"
_FOUND = re.compile(r"\[from: [^\]\n]{1,120}\]\s*$")
_MARKER = re.compile(r"\s*[-*+•]\s+(?=\S)")


class LogAddition(NamedTuple):
    """The bullets that a write adds, and the kinds of secrets removed from them."""

    bullets: tuple[str, ...]
    redacted: tuple[str, ...] = ()


class DailyLog(NamedTuple):
    """An existing log."""

    day: date
    file: str  # relative to the memory directory
    size: int


def log_file(day: date) -> str:
    return f"{LOGS}/{day:%Y}/{day:%m}/{day.isoformat()}.md"


def log_day(file: str) -> date | None:
    """Return the day of a log file; None for any other file."""
    match = _FILE.fullmatch(file)
    try:
        return date.fromisoformat(match[3]) if match else None
    except ValueError:
        return None


def is_found(bullet: str) -> bool:
    """Whether a bullet says that its content does not come from the user."""
    return _FOUND.search(bullet) is not None


# Adding


def plan_addition(file: str, text: str, before: str, now: datetime) -> LogAddition:
    """Return the bullets that a write of `text` adds. Raises InputError if it would do anything else. Pure: `before` is the
    log as the writer knows it, `now` is local time."""
    today = log_file(now.date())
    if file != today:
        problem = "is not a daily log" if log_day(file) is None else "is the log of another day, and only today's can be extended"
        raise InputError(file, problem, f"write to {today}")
    if not text.strip():
        raise InputError(file, "a daily log can only grow, so nothing in it was removed", "`lamina forget` removes a subject")
    if text.lstrip().startswith("---\n"):
        raise InputError(file, "a daily log has no front matter", "write only the new bullets, one per line")
    clean = redact(_new(file, text, before))
    bullets = list[str]()
    for line in filter(str.strip, clean.text.splitlines()):
        marker = _MARKER.match(line)
        words = " ".join(line[marker.end() if marker else 0 :].split())
        if _TIME.match(words):  # copied from the log, or made up: a model has no clock
            raise InputError(file, "a bullet begins with a time, which is added automatically", "begin with the text")
        if len(words) > MOST_CHARACTERS:
            problem = f"a bullet has {len(words):,} characters (the limit is {MOST_CHARACTERS})"
            raise InputError(file, problem, "shorten it or split it into two bullets")
        bullets.append(f"- {now:%H:%M} {words}")
    return LogAddition(tuple(bullets), clean.kinds)


def _new(file: str, text: str, before: str) -> str:
    """Return the new part of a text, which may repeat the whole log or leave it out."""
    text, log = text.removeprefix(_MARK), before.removeprefix(_MARK).rstrip()
    if log and text.startswith(log) and text[len(log) : len(log) + 1] in ("", "\r", "\n"):
        return text[len(log) :]
    existing = {line.strip() for line in log.splitlines()}
    if any(line.strip() in existing for line in text.splitlines() if line.strip()):
        problem = "existing lines of a daily log can't be changed or repeated"
        raise InputError(file, problem, "write only the new bullets, one per line, also for a correction")
    return text


def append_bullets(root: RootDir, file: str, bullets: Sequence[str], *, durability: Durability = "full") -> bytes:
    """Add lines at the end of the current log, and return its new content."""
    added = "".join(f"{line}\n" for line in bullets).encode("utf-8", "replace")
    with hold_guard(root):
        for _ in range(_TRIES):
            old = root.read_bytes(file, MOST_BYTES + 1)
            new = (old or b"") + (b"\n" if old and not old.endswith(b"\n") else b"") + added
            if len(new) > MOST_BYTES:
                raise DiskError(file, f"is full ({MOST_BYTES >> 10} KiB a day)", "run `lamina dream` to turn it into memories")
            if root.replace_if(file, new, expected=old, durability=durability):
                return new
    raise DiskError(file, "another program keeps changing it", "try again when that program is done")


# Reading


def list_logs(root: RootDir) -> list[DailyLog]:
    """List all logs, newest first. Files with other names are skipped."""
    logs = []
    for year in _below(root, LOGS, 4):
        for month in _below(root, f"{LOGS}/{year}", 2):
            for entry in root.listdir(f"{LOGS}/{year}/{month}"):
                file = f"{LOGS}/{year}/{month}/{entry.name}"
                if not entry.is_dir and (day := log_day(file)) is not None:
                    logs.append(DailyLog(day, file, entry.size))
    return sorted(logs, reverse=True)


def _below(root: RootDir, directory: str, digits: int) -> list[str]:
    return [entry.name for entry in root.listdir(directory) if entry.is_dir and re.fullmatch(rf"\d{{{digits}}}", entry.name)]


def read_log(root: RootDir, day: date) -> str | None:
    """Read the log of a day, up to its limit; None if it does not exist."""
    data = root.read_bytes(log_file(day), MOST_BYTES)
    return None if data is None else data.decode("utf-8", "replace")


def days_to_distil(root: RootDir, last: float | None, now: float) -> list[date]:
    """List the past days whose logs no dream has seen completely, newest first. `last` is the time of the last dream, in
    seconds. If the list is empty, no dream is needed at midnight."""
    today = date.fromtimestamp(now)
    since = date.min if last is None else date.fromtimestamp(last)
    return [log.day for log in list_logs(root) if since <= log.day < today]
