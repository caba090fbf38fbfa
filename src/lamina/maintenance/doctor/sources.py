"""Check the sessions of other agents (U3): which were found, which directories cannot be read, which files are damaged.

Reads the newest files up to a budget, into an index in memory. Nothing is written, and nothing of another agent is ever repaired.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...core.settings import Settings
from ...history.catalogue import Catalogue
from ...history.places import NAMES, Origin, SourceFile, note_unread, session_files
from ...history.sessions import homes_of
from ...language.wording import counted
from .finding import Finding

# About half a second of reading.
MOST_READ = 64 << 20


def check_sources(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    unread: list[str] = []
    homes: dict[Origin, Path] = {origin: home for origin, home in homes_of(settings, environ).items() if origin != "lamina"}
    files = list(session_files(homes, unread))
    for file in files:
        if not os.access(file.path, os.R_OK):
            note_unread(unread, file.path, PermissionError(errno.EACCES, ""))
    for sentence in unread:
        yield Finding("sessions", "source-unread", sentence)
    for origin, home in homes.items():
        theirs = [file for file in files if file.origin == origin]
        if theirs:
            size = f"{sum(file.stamp.size for file in theirs) / 1e6:,.1f} MB"
            yield Finding("sessions", "source", f"{NAMES[origin]}: {counted(len(theirs), 'transcript')}, {size}.", str(home))
    yield from _damaged(files)


def _damaged(files: list[SourceFile]) -> Iterator[Finding]:
    left, newest = MOST_READ, list[SourceFile]()
    for file in sorted(files, key=lambda file: -file.stamp.mtime_ns):
        if file.stamp.size <= left:
            left -= file.stamp.size
            newest.append(file)
    catalogue = Catalogue(None)
    try:
        for row in catalogue.follow("session", newest):
            cut = row.stamp.size - row.offset
            lines = row.scan.skipped + (cut > 0)
            if lines:
                problem = f"A session of {NAMES[row.origin]} has {counted(lines, 'unreadable line')}."
                yield Finding("sessions", "source-damaged", problem, row.path)
    finally:
        catalogue.close()
