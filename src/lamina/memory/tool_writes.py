"""Writes into memory by a model's file tools, taken over by the store.

This module turns a path and a text into a save, a removal or an index change, and reports the result. Invariants: whatever
the model wrote, a topic passes through journal, redaction, modes and index like any other save. A file changed by someone
else in the meantime is left alone. Nothing raises for a model's input. An empty text removes the memory. A daily log accepts
only new bullets at its end. Crash safety: see `store.directory` and `daily_logs`, which do the writing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ..core.errors import DiskError, InputError, LaminaError
from ..core.wording import counted
from ..disk.paths.file_names import fold
from .memory import Memory
from .recall.library import ScopeName
from .store.contract import ChangeReason, Proposed, Saved
from .store.daily_logs import LOGS, plan_addition
from .store.index import INDEX
from .store.modes import GatedStore
from .store.scopes import TEAM, MemoryLocation

SUFFIX = ".md"
# The offline chat reads the new path from this sentence.
RENAMED = "Its file was renamed with it and is now"
# Directories inside memory with a different purpose.
_OTHERS = {LOGS: "daily logs are available in assistant mode only", TEAM: "team memory is off"}


class MemoryFile(NamedTuple):
    """A file of memory: its scope, and its path relative to that scope's directory."""

    scope: ScopeName
    file: str


class RequestedWrite(NamedTuple):
    """A write to a memory file. `before` is its content, None for a new file. `unread` is why it may not be replaced, None
    if it may."""

    path: Path
    text: str
    before: bytes | None
    unread: str | None = None


class IndexChange(NamedTuple):
    path: Path
    before: bytes
    after: bytes


class WriteOutcome(NamedTuple):
    """The outcome of a write. `said` is for the model, `notice` for the user. `data` is the new content if the file was
    written, and `beside` the index before and after. `path` is the file's new path if it was renamed."""

    said: str
    notice: str | None = None
    data: bytes | None = None
    is_error: bool = False
    beside: IndexChange | None = None
    path: Path | None = None


def find_memory_file(place: MemoryLocation, path: Path) -> MemoryFile | None:
    """Return the memory file that a path leads to, by any spelling or link; None if it leads elsewhere."""
    if path.suffix != SUFFIX:
        return None
    try:
        real = Path(os.path.realpath(path))
    except ValueError:
        return None  # no file can have this name
    for spelled in dict.fromkeys((path, real)):
        if place.team is not None and (file := _below(place.team, spelled)) is not None:
            return MemoryFile("team", file)
        if (file := _below(place.path, spelled)) is not None:
            return MemoryFile("private", file)
    return None


def _below(root: Path, path: Path) -> str | None:
    for above in path.parents:
        try:
            if above == root or os.path.samefile(above, root):
                return path.relative_to(above).as_posix()
        except (OSError, ValueError):
            continue  # a directory that does not exist yet, or that cannot exist
    return None


def write_memory_file(
    memory: Memory, found: MemoryFile, wish: RequestedWrite, *, why: ChangeReason, now: datetime | None = None
) -> WriteOutcome:
    """Do the write, or explain why not. `now`, the local time, is given in assistant mode, which keeps daily logs."""
    file, first = found.file, fold(found.file.split("/")[0])
    try:
        gated = memory.store(found.scope)
        if first == LOGS and now is not None and found.scope == "private":
            return _log(gated, file, wish, why, now)
        if problem := _OTHERS.get(first):
            raise InputError(str(wish.path), problem, "save it in the memory directory itself")
        if fold(file) == fold(INDEX):
            return _index(gated, wish, why)
        if wish.unread is not None:
            return WriteOutcome(wish.unread, is_error=True)
        return _topic(gated, file, wish, why) if wish.text.strip() else _removal(gated, file, wish, why)
    except LaminaError as error:
        return WriteOutcome(str(error), is_error=True)


def _topic(gated: GatedStore, file: str, wish: RequestedWrite, why: ChangeReason) -> WriteOutcome:
    index = gated.store.index()
    done = gated.put(file, wish.text, expected=wish.before, why=why)
    match done:
        case Proposed():
            return _waits(done, wish)
        case Saved(topic, created, redacted, unfinished):
            raw = gated.store.raw(topic.file)
            data = raw.data if raw is not None else None
            secret = _secrets(redacted)
            if data == wish.before:
                return WriteOutcome(f"{wish.path} already has this content; nothing was changed.{secret}", data=data)
            word = "Saved" if created else "Updated"
            line = f"; its line in {INDEX} is up to date." if not unfinished else f". {unfinished}"
            path = wish.path if topic.file == file else wish.path.with_name(topic.file)
            moved = f" {RENAMED} {path}." if path != wish.path else ""
            said = f"{word} the memory {topic.name!r} in {path}{line}{moved}{secret}"
            changed = IndexChange(gated.store.root.path / INDEX, index.encode(), gated.store.index().encode())
            also = f" {unfinished}" if unfinished else ""
            return WriteOutcome(said, f"{word} memory: {topic.name}.{secret}{also}", data, beside=changed, path=path)


def _removal(gated: GatedStore, file: str, wish: RequestedWrite, why: ChangeReason) -> WriteOutcome:
    topic = gated.store.get(file)
    if wish.before is None or topic is None:
        raise DiskError(str(wish.path), "does not exist, so there is nothing to remove", "look up its name in the index")
    done = gated.drop(file, why=why, expected=wish.before)
    if isinstance(done, Proposed):
        return _waits(done, wish)
    said = f"Removed the memory {topic.name!r}: {wish.path} is in the trash, and its line in {INDEX} was removed."
    return WriteOutcome(said, f"Removed memory: {topic.name}. To undo, run `lamina memory restore`.")


def _log(gated: GatedStore, file: str, wish: RequestedWrite, why: ChangeReason, now: datetime) -> WriteOutcome:
    """Add bullets to a daily log, which needs no earlier Read."""
    added = plan_addition(file, wish.text, (wish.before or b"").decode("utf-8", "replace"), now)
    if not added.bullets:
        return WriteOutcome(f"{wish.path} already has this content; nothing was added.", data=wish.before)
    data = gated.note(file, added.bullets, why=why)
    lines = counted(len(added.bullets), "bullet")
    secret = _secrets(added.redacted)
    said = f"Added {lines} at the end of {wish.path}, at {now:%H:%M}. Nothing else was changed.{secret}"
    return WriteOutcome(said, f"Added {lines} to the log of {now:%Y-%m-%d}.{secret}", data)


def _waits(done: Proposed, wish: RequestedWrite) -> WriteOutcome:
    said = f"{wish.path} is not changed yet: the change waits for the user's approval. Tell them: lamina inbox accept {done.id}"
    return WriteOutcome(said, f"A memory change waits for your approval: lamina inbox accept {done.id}")


def _index(gated: GatedStore, wish: RequestedWrite, why: ChangeReason) -> WriteOutcome:
    if not wish.text.strip():
        raise InputError(
            INDEX, "is the index of all memories and cannot be emptied", "to remove a memory, write its file with empty content"
        )
    known = wish.before if wish.unread is None else None
    done = gated.put_index(wish.text, expected=known, why=why)
    said = [f"{wish.path} was written."]
    if wish.before is not None and known is None:
        said = [f"{wish.path} was not read in this conversation or has changed since. Your lines were added; all others stay."]
    if done.missing:
        said.append(f"Lines for missing files were left out ({', '.join(done.missing[:5])}). Write the files first.")
    # A writer that did not know the whole index does not know it now either.
    data = done.text.encode("utf-8", "surrogateescape") if known == wish.before else None
    return WriteOutcome(" ".join(said) + _secrets(done.redacted), data=data)


def _secrets(kinds: Sequence[str]) -> str:
    return f" A secret was removed ({', '.join(kinds)})." if kinds else ""
