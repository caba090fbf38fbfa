"""What a model writes into memory with its file tools, taken over by the store (S6, B4, B5, B7, W1, W2).

Owns the step from a path and a text to a save, a removal or a change of the index, and the sentences that come of it. Invariants:
whatever the model wrote, a topic goes through the journal, the redaction, the modes and the index like any other save; a file that
somebody changed meanwhile is left to them; nothing raises for what a model sent. An empty text removes the memory. A daily log takes
bullets at its end and nothing else. Crashes: as in `directory` and `daily`, whose writers do the work.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ..core.errors import DiskError, InputError, LaminaError
from ..disk.paths.file_names import fold
from .memory import Memory
from .recall.library import Where
from .store.contract import Proposed, Saved, Why
from .store.daily_logs import LOGS, plan_addition
from .store.index import INDEX
from .store.scopes import TEAM, Place

SUFFIX = ".md"
# Directories inside memory that hold something else.
_OTHERS = {LOGS: "daily logs are kept here in assistant mode only", TEAM: "there is no team memory here"}


class Spot(NamedTuple):
    """A file of memory: its scope, and its path from that scope's directory."""

    scope: Where
    file: str


class Wish(NamedTuple):
    """`before` is what the file holds, None where there is none; `unread` is why that may not be replaced, None where it may."""

    path: Path
    text: str
    before: bytes | None
    unread: str | None = None


class IndexChange(NamedTuple):
    path: Path
    before: bytes
    after: bytes


class Written(NamedTuple):
    """`said` is for the model, `notice` for the person; `data` is what the file holds now, where it was written; `beside` is what the
    index held and holds."""

    said: str
    notice: str | None = None
    data: bytes | None = None
    is_error: bool = False
    beside: IndexChange | None = None


def spot(place: Place, path: Path) -> Spot | None:
    """Which file of memory a path means, by whatever spelling or link it leads there; None where it leads elsewhere."""
    if path.suffix != SUFFIX:
        return None
    try:
        real = Path(os.path.realpath(path))
    except ValueError:
        return None  # no system has a file of that name
    for spelled in dict.fromkeys((path, real)):
        if place.team is not None and (file := _below(place.team, spelled)) is not None:
            return Spot("team", file)
        if (file := _below(place.path, spelled)) is not None:
            return Spot("private", file)
    return None


def _below(root: Path, path: Path) -> str | None:
    for above in path.parents:
        try:
            if above == root or os.path.samefile(above, root):
                return path.relative_to(above).as_posix()
        except (OSError, ValueError):
            continue  # a directory that is not there yet, or that cannot be
    return None


def write(memory: Memory, found: Spot, wish: Wish, *, why: Why, now: datetime | None = None) -> Written:
    """Does what was asked, or says why not. `now`, the local time, is given in assistant mode: daily logs are kept then."""
    first = fold(found.file.split("/")[0])
    try:
        if first == LOGS and now is not None and found.scope == "private":
            return _log(memory, found, wish, why, now)
        if problem := _OTHERS.get(first):
            raise InputError(str(wish.path), problem, "save it in the memory directory itself")
        if fold(found.file) == fold(INDEX):
            return _index(memory, found, wish, why)
        if wish.unread is not None:
            return Written(wish.unread, is_error=True)
        return _topic(memory, found, wish, why) if wish.text.strip() else _removal(memory, found, wish, why)
    except LaminaError as error:
        return Written(str(error), is_error=True)


def _topic(memory: Memory, found: Spot, wish: Wish, why: Why) -> Written:
    gated = memory.store(found.scope)
    index = gated.store.index()
    done = gated.put(found.file, wish.text, expected=wish.before, why=why)
    match done:
        case Proposed():
            return _waits(done, wish)
        case Saved(topic, created, redacted, unfinished):
            raw = gated.store.raw(found.file)
            data = raw.data if raw is not None else None
            secret = f" A secret was left out ({', '.join(redacted)})." if redacted else ""
            if data == wish.before:
                return Written(f"{wish.path} says that already; nothing was changed.{secret}", data=data)
            word = "Saved" if created else "Updated"
            line = f"; its line in {INDEX} is in place." if not unfinished else f". {unfinished}"
            said = f"{word} the memory {topic.name!r} in {wish.path}{line}{secret}"
            changed = IndexChange(gated.store.root.path / INDEX, index.encode(), gated.store.index().encode())
            also = f" {unfinished}" if unfinished else ""
            return Written(said, f"{word} memory: {topic.name}.{secret}{also}", data, beside=changed)


def _removal(memory: Memory, found: Spot, wish: Wish, why: Why) -> Written:
    gated = memory.store(found.scope)
    topic = gated.store.get(found.file)
    if wish.before is None or topic is None:
        raise DiskError(str(wish.path), "is not there, so there is nothing to remove", "look for its name in the index")
    done = gated.drop(found.file, why=why, expected=wish.before)
    if isinstance(done, Proposed):
        return _waits(done, wish)
    said = f"Removed the memory {topic.name!r}: {wish.path} is in the trash, and its line in {INDEX} is gone."
    return Written(said, f"Removed memory: {topic.name} (lamina memory restore brings it back).")


def _log(memory: Memory, found: Spot, wish: Wish, why: Why, now: datetime) -> Written:
    """Who has not read it may add to it all the same."""
    gated = memory.store(found.scope)
    added = plan_addition(found.file, wish.text, (wish.before or b"").decode("utf-8", "replace"), now)
    if not added.bullets:
        return Written(f"{wish.path} says that already; nothing was added.", data=wish.before)
    data = gated.note(found.file, added.bullets, why=why)
    lines = "1 bullet" if len(added.bullets) == 1 else f"{len(added.bullets)} bullets"
    secret = f" A secret was left out ({', '.join(added.redacted)})." if added.redacted else ""
    said = f"Added {lines} at the end of {wish.path}, at {now:%H:%M}; what stood there stays.{secret}"
    return Written(said, f"Noted in the log of {now:%Y-%m-%d}: {lines}.{secret}", data)


def _waits(done: Proposed, wish: Wish) -> Written:
    said = f"{wish.path} is not changed yet: the change waits for the person's yes. Tell them: lamina inbox accept {done.id}"
    return Written(said, f"A change to memory waits for your yes: lamina inbox accept {done.id}")


def _index(memory: Memory, found: Spot, wish: Wish, why: Why) -> Written:
    if not wish.text.strip():
        raise InputError(INDEX, "is the index of all memories", "to remove a memory, write its own file empty")
    gated = memory.store(found.scope)
    known = wish.before if wish.unread is None else None
    done = gated.put_index(wish.text, expected=known, why=why)
    said = [f"{wish.path} is written."]
    if wish.before is not None and known is None:
        said = [f"{wish.path} was not read in this conversation or has changed since: your lines were added, all others stay."]
    if done.missing:
        said.append(f"Lines for files that are not there were left out ({', '.join(done.missing[:5])}): Write the file first.")
    if done.redacted:
        said.append(f"A secret was left out ({', '.join(done.redacted)}).")
    # Who did not know the whole of it does not know it now either.
    data = done.text.encode("utf-8", "surrogateescape") if known == wish.before else None
    return Written(" ".join(said), data=data)
