"""Check a directory for files that do not belong there: links, pipes, hard links, open modes, leftovers, twins (Z9, G1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...disk.paths.file_names import fold
from ...disk.temp_files import is_temp
from ...disk.trees.survey import Survey, SurveyedEntry
from ...language.wording import counted, plural
from ...memory.store.history import HISTORY_DIRECTORY
from ...memory.store.scopes import TEAM
from .finding import Area, Finding, MakePrivate, PathFix
from .memory_snapshot import MemorySnapshot, is_topic

# A running writer keeps its temporary file for milliseconds.
LIVING_SECONDS = 60.0
# Paths named in a finding.
_NAMED = 3


def check_files(memory: MemorySnapshot) -> Iterator[Finding]:
    where, found = memory.where, memory.found
    # A team directory below the private one is checked separately; the history's repository is managed by git.
    entries = [
        seen
        for seen in found.entries
        if (where.shared or seen.path.split("/")[0] != TEAM) and not seen.path.startswith(f"{HISTORY_DIRECTORY}/git/")
    ]
    named = [seen for seen in entries if seen.kind != "directory" or is_topic(seen.path)]
    yield from check_tree(found, entries, named, where.path, "memory", now=memory.now, shared=where.shared)
    seen_as: dict[str, str] = {}
    for seen in sorted(entries):
        first = seen_as.setdefault(fold(seen.path), seen.path)
        if first != seen.path:
            yield memory.finding("twin", f"{seen.path} and {first} differ only in case or Unicode form.", seen.path)
    for file in memory.unread:
        yield memory.finding("unreadable", f"{file} cannot be read.", file)
    if memory.passed_over:
        count = memory.passed_over
        were = plural(count, "memory was", "memories were")
        text = f"{count:,} {were} not checked, because there are too many or they are too large together."
        yield memory.finding("too-many", text, advice="Merge or remove memories.")


def check_tree(
    found: Survey,
    entries: Sequence[SurveyedEntry],
    named: Iterable[SurveyedEntry],
    top: Path,
    area: Area,
    *,
    now: float,
    shared: bool = False,
) -> Iterator[Finding]:
    """Check the `entries` of `top`; `named` are those that Lamina would open."""
    for path in found.unread:
        yield Finding(area, "unreadable", f"The directory {path} cannot be listed.", str(top / path))
    if not found.whole:
        text = f"Only the first {len(found.entries):,} entries were checked."
        yield Finding(area, "too-many", text, str(top), advice="Move files elsewhere that are neither memories nor sessions.")
    for seen in named:
        # Every reader skips such a file, so tell the user why it is missing.
        if (problem := _problem(seen, shared)) is not None:
            yield Finding(area, "not-plain", f"{seen.path} {problem[0]}.", str(top / seen.path), advice=problem[1])
    if not shared:
        yield from check_private(entries, top, area)
    old = [seen for seen in entries if is_temp(seen.name) and seen.kind == "file" and now - seen.mtime_ns / 1e9 > LIVING_SECONDS]
    for above, count in Counter(seen.path.rpartition("/")[0] for seen in old).items():
        files = counted(count, "temporary file was", "temporary files were")
        text = f"{files} left behind by a killed process; nothing is lost."
        yield Finding(area, "leftover", text, str(top / above), fix=PathFix("sweep", str(top / above)))


def _problem(seen: SurveyedEntry, shared: bool) -> tuple[str, str] | None:
    if seen.kind == "link":
        return "is a symbolic link, which is not followed", "Replace it with the file itself, or remove it."
    if seen.kind == "other":
        return "is a pipe, a socket or a device, not a file", "Remove it."
    if seen.kind == "directory":
        return ("is a directory with the name of a file", "Rename it.") if seen.name.endswith((".md", ".jsonl")) else None
    if seen.links > 1:
        return "has a hard link elsewhere, so it is not read", "Replace it with a copy."
    if not seen.ours and not shared:
        return "belongs to another user, so it is not read", "Change its owner, or remove it."
    return None


def check_private(entries: Iterable[SurveyedEntry], top: Path, area: Area) -> Iterator[Finding]:
    """Report files open to other users, as one finding with one fix for the directory. An empty path means `top` itself."""
    loose = [seen for seen in entries if not seen.private and seen.ours and (seen.kind == "directory" or seen.links == 1)]
    if not loose:
        return
    paths = tuple(str(top / seen.path) for seen in loose)
    named = ", ".join(f"{path} ({seen.mode:04o})" for path, seen in list(zip(paths, loose, strict=True))[:_NAMED])
    more = f" and {len(loose) - _NAMED:,} more" if len(loose) > _NAMED else ""
    text = f"{counted(len(loose), 'entry is', 'entries are')} accessible to other users: {named}{more}."
    yield Finding(area, "not-private", text, str(top), fix=MakePrivate(paths))
