"""What lies in a directory of ours and should not: links, pipes, hard links, loose modes, leftovers, twins (Z9, G1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...disk.paths.file_names import fold
from ...disk.temp_files import is_temp
from ...disk.trees.survey import Survey, SurveyedEntry
from .finding import Area, Finding, MakePrivate, Sweep

# A living writer has its temporary file for milliseconds.
LIVING_SECONDS = 60.0
# The first few say where to look.
_NAMED = 3


def not_plain(entries: Iterable[SurveyedEntry], top: Path, area: Area, *, shared: bool = False) -> Iterator[Finding]:
    """What every reader of ours passes over, so that a person wonders where it went."""
    for seen in entries:
        if (problem := _problem(seen, shared)) is not None:
            yield Finding(area, "not-plain", f"{seen.path} {problem[0]}.", problem[1], str(top / seen.path))


def _problem(seen: SurveyedEntry, shared: bool) -> tuple[str, str] | None:
    if seen.kind == "link":
        return "is a symbolic link, which is not followed", "Put the file itself there, or remove the link."
    if seen.kind == "other":
        return "is a pipe, a socket or a device, not a file", "Remove it."
    if seen.kind == "directory":
        return ("is a directory with the name of a file", "Rename it.") if seen.name.endswith((".md", ".jsonl")) else None
    if seen.links > 1:
        return "has a second name elsewhere (a hard link), so it is not read", "Copy it to a file of its own."
    if not seen.ours and not shared:
        return "belongs to another user, so it is not read", "Change its owner, or remove it."
    return None


def not_private(entries: Sequence[SurveyedEntry], top: Path, area: Area) -> Iterator[Finding]:
    """One finding for a whole directory: its cure is one too."""
    loose = [seen for seen in entries if not seen.private and seen.ours and (seen.kind == "directory" or seen.links == 1)]
    if not loose:
        return
    paths = tuple(str(top / seen.path) if seen.path else str(top) for seen in loose)
    named = ", ".join(f"{path} ({seen.mode:04o})" for path, seen in list(zip(paths, loose, strict=True))[:_NAMED])
    more = f" and {len(loose) - _NAMED:,} more" if len(loose) > _NAMED else ""
    yield Finding(
        area,
        "not-private",
        f"{len(loose):,} {'entry is' if len(loose) == 1 else 'entries are'} open to other users: {named}{more}.",
        "Files should have the mode 0600 and directories 0700.",
        str(top),
        fix=MakePrivate(paths),
    )


def leftovers(entries: Iterable[SurveyedEntry], top: Path, area: Area, now: float) -> Iterator[Finding]:
    old = [seen for seen in entries if is_temp(seen.name) and seen.kind == "file" and now - seen.mtime_ns / 1e9 > LIVING_SECONDS]
    directories: dict[str, int] = {}
    for seen in old:
        above = seen.path.rpartition("/")[0]
        directories[above] = directories.get(above, 0) + 1
    for above, count in directories.items():
        place = top / above if above else top
        text = (
            f"{count:,} temporary {'file was' if count == 1 else 'files were'} left by a writer that was killed; nothing is lost."
        )
        yield Finding(area, "leftover", text, "They go at the next start, or now.", str(place), fix=Sweep(str(place)))


def twins(entries: Iterable[SurveyedEntry], top: Path, area: Area) -> Iterator[Finding]:
    seen_as: dict[str, str] = {}
    for seen in sorted(entries):
        first = seen_as.setdefault(fold(seen.path), seen.path)
        if first != seen.path:
            text = f"{seen.path} and {first} differ only in case or Unicode form."
            yield Finding(area, "twin", text, "Rename one: on some systems they are one file.", str(top / seen.path))


def not_read(found: Survey, top: Path, area: Area) -> Iterator[Finding]:
    for path in found.unread:
        yield Finding(area, "unreadable", f"The directory {path} cannot be listed.", "Check its permissions.", str(top / path))
    if not found.whole:
        text = f"Only the first {len(found.entries):,} entries were looked at."
        yield Finding(area, "too-many", text, "Move away what is no memory and no session.", str(top))
