"""Files that begin as a copy of another session's file: a resumed session, or a file that was copied.

An answer counts once, in the oldest file that holds it; a copy costs what it adds. Pure: the callers read the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ..core.records import Message, Record

if TYPE_CHECKING:
    from .scan import Scan
    from .sessions import SourceSession


def older_files(found: Iterable[SourceSession]) -> dict[str, list[str]]:
    """Return the files that begin with the same answer as an older one, with the paths of these, oldest first."""
    alike: dict[str, list[SourceSession]] = {}
    for one in found:
        if one.first:
            alike.setdefault(one.first, []).append(one)
    groups = [[one.path for one in sorted(group, key=lambda one: (one.modified, one.path))] for group in alike.values()]
    return {path: paths[:at] for paths in groups for at, path in enumerate(paths) if at}


def contained_files(files: Sequence[tuple[str, Scan]]) -> dict[str, str]:
    """Return the files whose answers are all in another one, with the path of that one. Of equal files the first stays."""
    alike: dict[str, list[tuple[str, Scan]]] = {}
    for path, scan in files:
        if scan.first:
            alike.setdefault(scan.first, []).append((path, scan))
    found: dict[str, str] = {}
    for group in alike.values():
        # The largest first; the sort is stable, so of equal files the first one is not in another.
        ordered = sorted(group, key=lambda one: -len(one[1].answers))
        for at, (path, scan) in enumerate(ordered):
            whole = next((other for other, larger in ordered[:at] if scan.answers <= larger.answers), None)
            if whole is not None:
                found[path] = whole
    return found


def added_records(read: Callable[[str], Iterable[Record]], path: str, older: Iterable[str]) -> Iterator[Record]:
    """Return the records of a file after the last message that an older file holds too."""
    known = {key for file in older for key in map(_message_key, read(file)) if key}
    repeated = max((number for number, record in enumerate(read(path), 1) if _message_key(record) in known), default=0)
    return islice(iter(read(path)), repeated, None)


def _message_key(record: Record) -> str:
    if not isinstance(record, Message):
        return ""
    # Some agents give a user's message no id of its own; its time then tells it from others in the same place.
    return record.message_id or record.uuid if record.role == "assistant" else f"{record.uuid} {record.time}"
