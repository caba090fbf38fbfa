"""What is wrong with the daily logs: files among them that are none, and secrets that somebody typed in by hand (W2, B7)."""

from __future__ import annotations

from collections.abc import Iterator

from ...core.errors import DiskError
from ...disk.files import is_bookkeeping
from ...disk.trees.rootdir import RootDir
from ...disk.trees.survey import SurveyedEntry
from ...memory.store.daily_logs import LOGS, MOST_BYTES, PATTERN, day_of
from ...memory.store.lint import secrets_in
from .finding import Finding
from .memory_snapshot import Reading

# The search for secrets takes a second or so a megabyte: the newest logs of some months, as people fill them.
MOST_SEARCHED = 1 << 20


def check_daily(reading: Reading) -> Iterator[Finding]:
    if reading.where.shared:
        return
    logs: list[SurveyedEntry] = []
    for seen in reading.found.entries:
        if seen.path.startswith(f"{LOGS}/") and seen.kind == "file" and not is_bookkeeping(seen.name):
            if day_of(seen.path) is not None:
                logs.append(seen)
            else:
                text = f"{seen.path} lies among the daily logs and is none: those are {PATTERN}."
                yield Finding(
                    "memory", "stray-log", text, "Move it away, or into the memory directory itself.", reading.full(seen.path)
                )
    yield from _secrets(reading, sorted(logs, key=lambda seen: seen.path, reverse=True))


def _secrets(reading: Reading, logs: list[SurveyedEntry]) -> Iterator[Finding]:
    left = MOST_SEARCHED
    with RootDir.open(reading.where.path, create=False) as root:
        for seen in logs:
            if (left := left - min(seen.size, MOST_BYTES)) < 0:
                return
            try:
                data = root.read_bytes(seen.path, MOST_BYTES)
            except DiskError:
                continue  # `not-plain` and `unreadable` say it
            if kinds := secrets_in((data or b"").decode("utf-8", "replace")):
                text = f"{seen.path} holds what looks like a secret ({', '.join(kinds)})."
                remedy = "Take it out, and change the secret: it has been on disk and may have been sent to a model."
                yield Finding("memory", "secret", text, remedy, reading.full(seen.path))
