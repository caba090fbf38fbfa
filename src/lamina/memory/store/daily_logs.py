"""Daily logs: in assistant mode what is worth keeping is noted as the day goes, a dream makes memories of it at night (W2).

Owns `logs/YYYY/MM/YYYY-MM-DD.md` in the private memory directory: one bullet a line, with the local time it was noted at. Invariants:
a log only grows, at its end, and only on its own day; the time before a bullet is the session's, not a model's; secrets are taken
out; of any number of processes none loses another's bullet, since all take the guard of the directory. No topic, no index line and no
version in the journal comes of it.

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
from .directory import GUARD, PATIENCE
from .secrets import redact

LOGS = "logs"
# What the model is told instead of a date, so that the prompt stays as it was sent when the day changes.
PATTERN = f"{LOGS}/YYYY/MM/YYYY-MM-DD.md"
# Two or three sentences. What is longer belongs in a memory of its own, or is none.
MOST_CHARACTERS = 500
# Some five hundred of the longest bullets: more than a day has, as much as a dream can read, and quick to rewrite.
MOST_BYTES = 256 << 10
# An editor may save between our look and our rename; after so many times it is no editor.
_TRIES = 5

_FILE = re.compile(rf"{LOGS}/(\d{{4}})/(\d\d)/(\1-\2-\d\d)\.md")
_MARK = "\ufeff"  # some editors put it before a text
_TIME = re.compile(r"\d\d:\d\d\b")
_MARKER = re.compile(r"\s*[-*+•]\s+(?=\S)")


class Addition(NamedTuple):
    """What a write adds, with the kinds of secrets that were taken out of it."""

    bullets: tuple[str, ...]
    redacted: tuple[str, ...] = ()


class Day(NamedTuple):
    """A log that is there."""

    day: date
    file: str  # from the memory directory
    size: int


def file_of(day: date) -> str:
    return f"{LOGS}/{day:%Y}/{day:%m}/{day.isoformat()}.md"


def day_of(file: str) -> date | None:
    """None for what is no daily log."""
    found = _FILE.fullmatch(file)
    try:
        return date.fromisoformat(found[3]) if found else None
    except ValueError:
        return None


# What is added


def plan_addition(file: str, text: str, before: str, now: datetime) -> Addition:
    """The bullets that a write of `text` adds; InputError where it would do anything else. Pure: `before` is the log as the writer
    knows it, `now` is local."""
    today = file_of(now.date())
    if file != today:
        problem = "is no daily log" if day_of(file) is None else "is the log of another day, and only today's is added to"
        raise InputError(file, problem, f"write to {today}")
    if not text.strip():
        raise InputError(file, "a daily log is only added to, so nothing in it is removed", "`lamina forget` takes a subject out")
    if text.lstrip().startswith("---\n"):
        raise InputError(file, "a daily log has no front matter", "write only the new bullets, a line each")
    clean = redact(_new(file, text, before))
    lines = [line for line in clean.text.splitlines() if line.strip()]
    return Addition(tuple(_bullet(line, file, now) for line in lines), clean.kinds)


def _new(file: str, text: str, before: str) -> str:
    """What stands there may be repeated as a whole or left out: the rest is what is new."""
    text, known = text.removeprefix(_MARK), before.removeprefix(_MARK).rstrip()
    if known and text.startswith(known) and text[len(known) : len(known) + 1] in ("", "\r", "\n"):
        return text[len(known) :]
    there = {line.strip() for line in known.splitlines()}
    if any(line.strip() in there for line in text.splitlines() if line.strip()):
        problem = "what stands in a daily log is neither changed nor written again"
        raise InputError(file, problem, "write only the new bullets, a line each; a correction is a bullet too")
    return text


def _bullet(line: str, file: str, now: datetime) -> str:
    marker = _MARKER.match(line)
    words = " ".join(line[marker.end() if marker else 0 :].split())
    if _TIME.match(words):  # copied from the log, or made up: a model has no clock
        raise InputError(file, "a bullet begins with a time, and that is put there for you", "begin it with its words")
    if len(words) > MOST_CHARACTERS:
        problem = f"a bullet has {len(words):,} characters, and {MOST_CHARACTERS} is the most"
        raise InputError(file, problem, "say it shorter, or in two bullets")
    return f"- {now:%H:%M} {words}"


def append(root: RootDir, file: str, bullets: Sequence[str], *, durability: Durability = "full") -> bytes:
    """Adds lines behind whatever stands in the log by now; what it holds then."""
    added = "".join(f"{line}\n" for line in bullets).encode("utf-8", "replace")
    with root.guard(GUARD, timeout=PATIENCE):
        for _ in range(_TRIES):
            old = root.read_bytes(file, MOST_BYTES + 1)
            new = (old or b"") + (b"\n" if old and not old.endswith(b"\n") else b"") + added
            if len(new) > MOST_BYTES:
                raise DiskError(file, f"is full ({MOST_BYTES >> 10} KiB a day)", "`lamina dream` makes memories of what it holds")
            if root.replace_if(file, new, expected=old, durability=durability):
                return new
    raise DiskError(file, "is changed by another program again and again", "try again when it is done")


# What is there


def days(root: RootDir) -> list[Day]:
    """All logs, newest first. What is no log by its name is passed over."""
    found = []
    for year in _below(root, LOGS, 4):
        for month in _below(root, f"{LOGS}/{year}", 2):
            for entry in root.listdir(f"{LOGS}/{year}/{month}"):
                file = f"{LOGS}/{year}/{month}/{entry.name}"
                if not entry.is_dir and (day := day_of(file)) is not None:
                    found.append(Day(day, file, entry.size))
    return sorted(found, reverse=True)


def _below(root: RootDir, directory: str, digits: int) -> list[str]:
    return [entry.name for entry in root.listdir(directory) if entry.is_dir and re.fullmatch(rf"\d{{{digits}}}", entry.name)]


def read_day(root: RootDir, day: date) -> str | None:
    """The log as far as it counts; None when there is none of that day."""
    data = root.read_bytes(file_of(day), MOST_BYTES)
    return None if data is None else data.decode("utf-8", "replace")


def to_distil(root: RootDir, last: float | None, now: float) -> list[date]:
    """The days behind us whose logs no dream has seen whole, newest first; `last` is when the last dream was, in seconds. Without any
    there is no need for a dream at midnight."""
    today = date.fromtimestamp(now)
    since = date.min if last is None else date.fromtimestamp(last)
    return [each.day for each in days(root) if since <= each.day < today]
