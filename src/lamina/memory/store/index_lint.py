"""What is wrong with an index, and the index as it should be (S3, S4).

`plan_index` is pure: it says which lines point at nothing, stand there twice, are too long or hold content, which memories have no line,
and what the text would be with all of that mended. Lines that are a person's own words keep their bytes. New lines are added only while a
session would still be sent all of the index. `mend_index` writes it under the store's guard.

A crash at any line leaves the old index or the new one; the old one lies in `.history/` first, because its lines are in no journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias

from .directory import GUARD, PATIENCE, DirectoryStore
from .history import DIRECTORY
from .index import INDEX, LINE_CHARS, MOST_BYTES, MOST_LINES, Entry, entries, line_of, with_entry
from .index_file import MOST_INDEX, never_still, too_long
from .topic import folded

Fault: TypeAlias = Literal["dead", "outside", "double", "long", "long and fixed", "content"]
# Old indexes that are kept: a person who wants one back wants one of the last.
MOST_KEPT = 5
# Each lost round means that somebody saved the index in that very moment.
_ROUNDS = 10
_KEPT = "index-"


class LineFault(NamedTuple):
    line: int  # from 1
    fault: Fault
    file: str
    chars: int


class IndexPlan(NamedTuple):
    """`unlisted`: memories without a line; those for which there is room have one in `text`, the others are in `no_room`."""

    text: str
    faults: tuple[LineFault, ...] = ()
    unlisted: tuple[str, ...] = ()
    no_room: tuple[str, ...] = ()

    @property
    def removed(self) -> list[LineFault]:
        return [fault for fault in self.faults if fault.fault in ("dead", "double")]

    @property
    def shortened(self) -> list[LineFault]:
        return [fault for fault in self.faults if fault.fault == "long and fixed"]

    @property
    def added(self) -> list[str]:
        left = set(self.no_room)
        return [file for file in self.unlisted if file not in left]


def plan_index(text: str, *, exists: Callable[[str], bool], topics: Sequence[Entry]) -> IndexPlan:
    """`exists` says whether a file below the directory is there; `topics` are all memories, as their lines would be."""
    kept: list[str] = []
    faults: list[LineFault] = []
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):
        new, fault = _judged(line, number, exists, seen)
        if fault is not None:
            faults.append(fault)
        if new is not None:
            kept.append(new)
    unlisted = [topic for topic in topics if folded(topic.file) not in seen]
    mended, no_room = _with_lines("\n".join(kept), unlisted)
    return IndexPlan(mended, tuple(faults), tuple(topic.file for topic in unlisted), tuple(no_room))


def _judged(line: str, number: int, exists: Callable[[str], bool], seen: set[str]) -> tuple[str | None, LineFault | None]:
    """The line as it should be (None: gone) and what is wrong with it."""
    found = entries(line)
    chars = len(line.rstrip("\r"))
    if not found:
        return line, LineFault(number, "content", "", chars) if chars > LINE_CHARS else None
    entry, key = found[0], folded(found[0].file)
    if _leads_out(entry.file):
        return line, LineFault(number, "outside", entry.file, chars)
    if not exists(entry.file):
        return None, LineFault(number, "dead", entry.file, chars)
    if key in seen:
        return None, LineFault(number, "double", entry.file, chars)
    seen.add(key)
    if chars <= LINE_CHARS:
        return line, None
    short = line_of(entry)
    if len(short) > LINE_CHARS:
        return line, LineFault(number, "long", entry.file, chars)
    return short + ("\r" if line.endswith("\r") else ""), LineFault(number, "long and fixed", entry.file, chars)


def _leads_out(file: str) -> bool:
    return file.startswith(("/", "\\", "~")) or ".." in file.replace("\\", "/").split("/")


def _with_lines(text: str, unlisted: Sequence[Entry]) -> tuple[str, list[str]]:
    """With a line for each while a session is still sent the whole index."""
    for number, topic in enumerate(unlisted):
        longer = with_entry(text, topic)
        if longer.count("\n") > MOST_LINES or len(longer.encode("utf-8", "replace")) > MOST_BYTES:
            return text, [each.file for each in unlisted[number:]]
        text = longer
    return text, []


def mend_index(
    store: DirectoryStore, topics: Callable[[], Sequence[Entry]], *, exists: Callable[[str], bool], now: float
) -> IndexPlan | None:
    """Does what `plan_index` says of the index as it is now; None when there is nothing to do."""
    with store.root.guard(GUARD, timeout=PATIENCE):
        for _ in range(_ROUNDS):
            old = store.root.read_bytes(INDEX, MOST_INDEX)
            if old is not None and len(old) >= MOST_INDEX:
                raise too_long()
            text = (old or b"").decode("utf-8", "surrogateescape")
            plan = plan_index(text, exists=exists, topics=topics())
            if plan.text == text:
                return None
            if old:
                _keep(store, old, now)
            if store.root.replace_if(INDEX, plan.text.encode("utf-8", "surrogateescape"), expected=old):
                return plan
    raise never_still()


def _keep(store: DirectoryStore, old: bytes, now: float) -> None:
    stamp = f"{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%S%f}"
    store.root.replace(f"{DIRECTORY}/{_KEPT}{stamp}.md", old)
    for name in kept_indexes(store)[:-MOST_KEPT]:
        store.root.unlink(name)


def kept_indexes(store: DirectoryStore) -> list[str]:
    """The indexes as they were before they were mended, oldest first, as paths below the directory."""
    names = [entry.name for entry in store.root.listdir(DIRECTORY) if entry.name.startswith(_KEPT) and not entry.is_dir]
    return [f"{DIRECTORY}/{name}" for name in sorted(names)]
