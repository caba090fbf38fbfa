"""A snapshot of a memory directory, read once for all checks.

Owns the read budget. Invariants: nothing is created, repaired, cleaned or cached, so a second run finds the same. Only regular
files are opened, up to 1 MB each and 24 MB in total. What exceeds the budget is counted, never read.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from ...core.errors import DiskError
from ...disk.trees.rootdir import RootDir
from ...disk.trees.scan import read_heads
from ...disk.trees.survey import Survey, SurveyedEntry, files_of, survey
from ...memory.store.contract import MOST_READ
from ...memory.store.distinct import read_distinct
from ...memory.store.index import INDEX, MOST_INDEX
from ...memory.store.journal import digest_of
from ...memory.store.journal_check import InboxContents, JournalContents, read_inbox, read_journal
from ...memory.store.scopes import TEAM
from ...memory.store.topic import Topic, read_topic
from .finding import Finding, Fix

# Ten thousand memories of twice the usual length; searching them for secrets takes some seconds.
MOST_BYTES = 24 << 20
# The other checks take about a second for this many, which is more than anyone keeps.
MOST_TOPICS = 20_000
_SKIPPED = ("logs", TEAM)


class MemoryDirectory(NamedTuple):
    """A memory directory. `shared` marks a team's; `writable` tells whether its mode allows changes by the user."""

    path: Path
    project: Path
    shared: bool = False
    writable: bool = True


class TopicFile(NamedTuple):
    """A topic and its file; `whole` tells whether all of it was read."""

    topic: Topic
    text: str
    digest: str
    size: int
    whole: bool
    utf8: bool


class MemorySnapshot(NamedTuple):
    where: MemoryDirectory
    found: Survey
    pages: tuple[TopicFile, ...]
    unread: tuple[str, ...]  # regular topic files that could not be read
    passed_over: int  # topic files beyond the budget
    index_text: str
    index_size: int
    has_index: bool
    journal: JournalContents
    waiting: InboxContents
    now: float
    distinct: frozenset[tuple[str, str]] = frozenset()  # pairs of memories that the user called no duplicates, by identity

    def are_distinct(self, first: str, second: str) -> bool:
        """Tell whether the user called the memories in two files no duplicates."""
        last = self.journal.last
        one, other = sorted((last[file].memory or file) if file in last else file for file in (first, second))
        return (one, other) in self.distinct

    @property
    def topics(self) -> list[Topic]:
        return [page.topic for page in self.pages]

    @property
    def files(self) -> frozenset[str]:
        return frozenset(seen.path for seen in self.found.entries if seen.kind == "file")

    def full(self, file: str) -> str:
        return str(self.where.path / file)

    def finding(
        self,
        kind: str,
        problem: str,
        file: str = "",
        *,
        line: int | None = None,
        fix: Fix | None = None,
        advice: str | None = None,
    ) -> Finding:
        """Make a finding about a file of this directory, without a fix if the memory's mode forbids changes."""
        return Finding("memory", kind, problem, self.full(file), line, fix if self.where.writable else None, advice)


def read_memory(where: MemoryDirectory, *, now: float) -> MemorySnapshot | None:
    """Read the directory; None if it does not exist, DiskError if it cannot be read."""
    found = survey(where.path)
    if found is None:
        return None
    with RootDir.open(where.path, create=False, shared=where.shared) as root:
        # The same files as the store: no index, hidden files, logs or team files.
        wanted = sorted((seen for seen in files_of(found.entries) if is_topic(seen.path)), key=lambda seen: seen.path)
        sizes = accumulate(min(seen.size, MOST_READ) for seen in wanted[:MOST_TOPICS])
        chosen = wanted[: sum(size <= MOST_BYTES for size in sizes)]
        heads = read_heads(root, [seen.path for seen in chosen], MOST_READ)
        pages = tuple(_page(seen, heads[seen.path]) for seen in chosen if seen.path in heads)
        index = None
        # The index may not be a regular file; the survey reports that.
        with suppress(DiskError):
            index = root.read_bytes(INDEX, MOST_INDEX)
        return MemorySnapshot(
            where=where,
            found=found,
            pages=pages,
            unread=tuple(seen.path for seen in chosen if seen.path not in heads),
            passed_over=len(wanted) - len(chosen),
            index_text=(index or b"").decode("utf-8", "surrogateescape"),
            index_size=next((seen.size for seen in found.entries if seen.path == INDEX), 0),
            has_index=index is not None,
            journal=read_journal(root),
            waiting=read_inbox(root),
            now=now,
            distinct=read_distinct(root),
        )


def is_topic(path: str) -> bool:
    parts = path.split("/")
    hidden = any(part.startswith(".") for part in parts)
    return path.endswith(".md") and path.lower() != INDEX.lower() and not hidden and (len(parts) == 1 or parts[0] not in _SKIPPED)


def _page(seen: SurveyedEntry, data: bytes) -> TopicFile:
    text = data.decode("utf-8", "replace")
    topic = read_topic(seen.path, text, seen.mtime_ns / 1e9)
    whole = len(data) < MOST_READ
    # A character cut off by the read limit is not an error of the file.
    utf8 = "\ufffd" not in (text if whole else text[:-4]) or text.encode() == data
    return TopicFile(topic, text, digest_of(data) if whole else "", seen.size, whole, utf8)


def day_of(seconds: float) -> date | None:
    """Return the day in local time; None if the time is out of range."""
    try:
        return datetime.fromtimestamp(seconds).date()
    except (ValueError, OverflowError, OSError):
        return None
