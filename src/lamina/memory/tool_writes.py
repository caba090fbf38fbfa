"""Writes into memory by a model's file tools, taken over by the store.

This module turns a path and a text into a save, a removal or an index change, and reports the result. Invariants: whatever
the model wrote, a topic passes through guard, journal, redaction, modes and index like any other save. A file changed by someone
else in the meantime is left alone. Nothing raises for a model's input. An empty text removes the memory. A daily log accepts
only new bullets at its end. Crash safety: see `store.directory` and `daily_logs`, which do the writing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..core.blocks import Wire
from ..core.errors import DiskError, InputError, LaminaError
from ..disk.paths.file_names import fold
from ..language.invisible import has_invisible
from ..language.memory_requests import asks_to_forget, to_forget
from ..language.text import SENTENCES, Text, joined
from ..language.wording import counted
from .guard.judgement import WantedMemory, backs, find_origin, judge, mentions
from .guard.sources import Sources
from .guard.support import SHARE, content, negated, shared, weight
from .memory import Memory
from .recall.library import ScopeName
from .store.contract import ChangeReason, Proposed, Saved
from .store.daily_logs import FOUND_IN, LOGS, plan_addition
from .store.index import INDEX, read_entries
from .store.modes import GatedStore
from .store.scopes import TEAM, MemoryLocation
from .store.topic import Topic, restore_command

SUFFIX = ".md"
HIDDEN_REMOVED = "Invisible characters were removed."
QUOTED_LINE = 80
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
    if it may. `inbox` is the command that lists the proposals of this memory."""

    path: Path
    text: str
    before: bytes | None
    unread: str | None = None
    inbox: str = "lamina inbox"


class GuardedWrite(NamedTuple):
    """A write that the guard has accepted, and its reason."""

    wish: RequestedWrite
    why: ChangeReason


class IndexChange(NamedTuple):
    path: Path
    before: bytes
    after: bytes


class WriteOutcome(msgspec.Struct, frozen=True):
    """The outcome of a write. `said` is for the model, `notice` for the user. `data` is the new content if the file was
    written, and `beside` the index before and after. `path` is the file's new path if it was renamed. `facts` are those of the tool."""

    said: str
    notice: str | None = None
    data: bytes | None = None
    is_error: bool = False
    beside: IndexChange | None = None
    path: Path | None = None
    facts: Wire = {}


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
    memory: Memory,
    found: MemoryFile,
    wish: RequestedWrite,
    *,
    why: ChangeReason,
    now: datetime | None = None,
    heard: Sources | None = None,
) -> WriteOutcome:
    """Do the write, or explain why not. `now`, the local time, is given in assistant mode, which keeps daily logs. `heard` is what the
    writer knows from its conversation; None if the change has passed the guard already."""
    file, first = found.file, fold(found.file.split("/")[0])
    try:
        gated = memory.store(found.scope)
        gated.check(why.who)
        if first == LOGS and now is not None and found.scope == "private":
            return _log(gated, file, wish, why, now, heard)
        if problem := _OTHERS.get(first):
            raise InputError(str(wish.path), problem, "save it in the memory directory itself")
        if fold(file) == fold(INDEX):
            return _index(gated, wish, why, heard)
        if wish.unread is not None:
            return WriteOutcome(wish.unread, is_error=True)
        if not wish.text.strip():
            return _removal(gated, found, wish, why, heard)
        guarded = _guarded(file, wish, why, heard)
        cleaned = guarded.wish._replace(text=memory.pin_text(file, guarded.wish.text))
        done = _topic(gated, file, cleaned, guarded.why)
        if done.is_error or not has_invisible(wish.text):
            return done
        return msgspec.structs.replace(
            done, said=f"{done.said} {HIDDEN_REMOVED}", notice=f"{done.notice} {HIDDEN_REMOVED}" if done.notice else None
        )
    except LaminaError as error:
        return WriteOutcome(str(error), is_error=True)


def _guarded(file: str, wish: RequestedWrite, why: ChangeReason, heard: Sources | None) -> GuardedWrite:
    """Return the write as the guard accepts it."""
    if heard is None:
        return GuardedWrite(wish, why)
    before = wish.before.decode("utf-8", "replace") if wish.before is not None else None
    done = judge(WantedMemory(file, wish.text, before), heard)
    return GuardedWrite(wish._replace(text=done.text), with_source(why, done.origin))


def with_source(why: ChangeReason, origin: str) -> ChangeReason:
    """Return the reason with the origin of the content, if it is not the user's."""
    return msgspec.structs.replace(why, why=f"found in the conversation ({origin})", origin=origin) if origin else why


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
                said = f"{wish.path} already has this content; nothing was changed.{secret}"
                return WriteOutcome(said, data=data, facts={"memory": "unchanged"})
            word = "Saved" if created else "Updated"
            line = f"; its line in {INDEX} is up to date." if not unfinished else f". {unfinished}"
            path = wish.path if topic.file == file else wish.path.with_name(topic.file)
            moved = f" {RENAMED} {path}." if path != wish.path else ""
            said = f"{word} the memory {topic.name!r} in {path}{line}{moved}{secret}"
            changed = IndexChange(gated.store.root.path / INDEX, index.encode(), gated.store.index().encode())
            notice = Text("Saved memory: {name}." if created else "Updated memory: {name}.", name=topic.name)
            notice = joined([notice, *_secret_notice(redacted), *([unfinished] if unfinished else ())], SENTENCES)
            return WriteOutcome(said, notice, data, beside=changed, path=path, facts={"memory": word.lower()})


def _removal(
    gated: GatedStore, found: MemoryFile, wish: RequestedWrite, why: ChangeReason, heard: Sources | None
) -> WriteOutcome:
    topic = gated.store.get(found.file)
    if wish.before is None or topic is None:
        raise DiskError(str(wish.path), "does not exist, so there is nothing to remove", "look up its name in the index")
    if heard is not None and not may_remove(topic, heard):
        why = with_source(why, find_origin(topic.description, heard))
    done = gated.drop(found.file, why=why, expected=wish.before)
    if isinstance(done, Proposed):
        return _waits(done, wish)
    said = f"Removed the memory {topic.name!r}: {wish.path} is in the trash, and its line in {INDEX} was removed."
    back = restore_command(topic, team=found.scope == "team")
    notice = Text("Removed memory: {name}. To undo, run `{back}`.", name=topic.name, back=back)
    return WriteOutcome(said, notice, facts={"memory": "removed"})


def _log(
    gated: GatedStore, file: str, wish: RequestedWrite, why: ChangeReason, now: datetime, heard: Sources | None
) -> WriteOutcome:
    """Add bullets to a daily log, which needs no earlier Read. A bullet that the user's words do not back names its origin."""
    added = plan_addition(file, wish.text, (wish.before or b"").decode("utf-8", "replace"), now)
    if not added.bullets:
        return WriteOutcome(
            f"{wish.path} already has this content; nothing was added.", data=wish.before, facts={"memory": "unchanged"}
        )
    marked = [each if heard is None else mark_bullet(each, heard) for each in added.bullets]
    data = gated.note(file, marked, why=why)
    lines = counted(len(added.bullets), "bullet")
    secret = _secrets(added.redacted)
    said = f"Added {lines} at the end of {wish.path}, at {now:%H:%M}. Nothing else was changed.{secret}"
    return WriteOutcome(
        said,
        joined(
            [
                Text("Added {lines} to the log of {day}.", lines=lines, day=f"{now:%Y-%m-%d}"),
                *_secret_notice(added.redacted),
            ],
            SENTENCES,
        ),
        data,
        facts={"bullets": len(added.bullets)},
    )


def _waits(done: Proposed, wish: RequestedWrite) -> WriteOutcome:
    command = f"{wish.inbox} accept {done.id}"
    said = f"{wish.path} is not changed yet: the change waits for the user's approval. Tell them: {command}"
    notice = Text("A memory change waits for your approval: {command}", command=command)
    return WriteOutcome(said, notice, facts={"memory": "waiting"})


def _index(gated: GatedStore, wish: RequestedWrite, why: ChangeReason, heard: Sources | None) -> WriteOutcome:
    if not wish.text.strip():
        raise InputError(
            INDEX, "is the index of all memories and cannot be emptied", "to remove a memory, write its file with empty content"
        )
    if heard is not None and (line := find_foreign_line(gated, wish, heard)) is not None:
        problem = f"the line {line[:QUOTED_LINE]!r} says more than its memory does"
        raise InputError(INDEX, problem, "use the name and the description of the memory")
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


def may_remove(topic: Topic, heard: Sources) -> bool:
    """Whether the user's last message asks to forget this memory, or their words are about it."""
    last = heard.said[-1].own if heard.said else ""
    named = content(to_forget(last)) if asks_to_forget(last) else None
    about = content(f"{topic.name} {topic.description}\n{topic.body}")
    asked = named is not None and (not named or bool(shared(named, about)))
    return asked or mentions(topic.description or topic.body, heard)


def mark_bullet(bullet: str, heard: Sources) -> str:
    return (
        bullet
        if backs(bullet[len("- 00:00 ") :], heard) is not None
        else f"{bullet} {FOUND_IN.format(find_origin(bullet, heard))}"
    )


def find_foreign_line(gated: GatedStore, wish: RequestedWrite, heard: Sources) -> str | None:
    """Return the first new line of an index that says more than its memory, or that is neither an entry nor the user's words."""
    there = {line.strip() for line in (wish.before or b"").decode("utf-8", "replace").splitlines()}
    said = "\n".join(one.own for one in heard.said)
    for line in wish.text.splitlines():
        entries = read_entries(line)
        topic = gated.store.get(entries[0].file) if entries else None
        if line.strip() in there or (entries and topic is None):  # a line without a file is left out and reported
            continue
        about = f"{entries[0].title} {entries[0].hook}" if entries else line
        known = f"{topic.name} {topic.description}\n{topic.body}" if topic is not None else said
        wanted = content(about)
        if weight(shared(wanted, content(known))) < SHARE * weight(wanted) or (negated(about) and not negated(known)):
            return line.strip()
    return None


def _secret_notice(kinds: Sequence[str]) -> list[Text]:
    return [Text("A secret was removed ({kinds}).", kinds=joined(kinds))] if kinds else []


def _secrets(kinds: Sequence[str]) -> str:
    return f" A secret was removed ({', '.join(kinds)})." if kinds else ""
