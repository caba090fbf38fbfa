"""The status of a memory's dreams: which one is running, the results of earlier ones, and why the next one is not due.

Read-only. A dream belongs to the process that runs it; other processes know only its record and the lock.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..agent.dream_gate import find_gate, find_switch
from ..core.errors import DiskError
from ..disk.locks.dream_lock import DreamLock
from ..disk.locks.dream_lock_owner import DreamLockHolder
from ..disk.settings_files import settings_in_force, user_home
from ..disk.trees.rootdir import RootDir
from ..language.text import Text, joined
from ..language.wording import counted
from ..layers.l6_dream.gates import DreamStop
from ..layers.l6_dream.record import DreamRecord, read_records
from ..layers.l6_dream.undo import redo, undo
from ..memory.store.scopes import locate_memory
from ..memory.store.topic import INDEX
from .console import capped, minute, sentence, utc_time
from .options import find_home
from .start import MemorySource

if TYPE_CHECKING:
    from ..conversation.state import Conversation
    from ..layers.l6_dream.undo import UndoneDream

# Files named on a screen; --json has them all.
MOST_NAMED = 5
PUT_RIGHT = Text("the next session repairs this, or run `lamina dream --kill`")


class DreamStatus(NamedTuple):
    """`last` is when the last dream ran, in seconds; `stop` is the reason why no dream starts automatically now."""

    records: tuple[DreamRecord, ...]
    running: DreamRecord | None
    holder: DreamLockHolder | None
    last: float | None
    stop: DreamStop | None
    waiting: int


def read_status(source: MemorySource, chat: Conversation | None = None) -> DreamStatus:
    """Read the status. In a chat, its own state counts too: its transcript, its last look and its failures."""
    with source.open() as memory:
        store = memory.store("private")
        lock, known = DreamLock(store.store.root), tuple(read_records(store.store.root))
        last_ns, holder = lock.last_ns(), lock.holder()
        running = find_running(known, holder)
        waiting = sum(proposal.why.who == "dream" for proposal in store.inbox.waiting())
        stop = _in_the_way(store.store.root, source, last_ns, holder)
    if chat is not None and (stop is None or stop.gate != "lock"):
        from ..layers.l6_dream.step import find_next_stop  # imported late: it loads the tools of a dream

        stop = find_next_stop(chat)
    # While a dream is running, also before it has a record, the lock carries its time: the last one is in the records.
    last = next((record.started for record in known if record.status in ("completed", "undone")), None)
    return DreamStatus(known, running, holder, last if holder is not None else _seconds(last_ns), stop, waiting)


def undo_dream(source: MemorySource, dream: str | None, *, again: bool = False) -> UndoneDream:
    """Undo a dream, or apply it again."""
    with source.open() as memory:
        return redo(memory.store("private"), dream) if again else undo(memory.store("private"), dream)


def read_dreams(cwd: Path) -> tuple[DreamRecord, ...]:
    """Return the dreams of the memory of `cwd`, newest first, without creating a memory directory."""
    if (home := find_home()) is None:
        return ()
    try:
        settings = settings_in_force(cwd)
        place = locate_memory(cwd=cwd, home=home, settings=settings, user_home=user_home(os.environ) or home)
        with RootDir.open(place.path, create=False) as root:
            return tuple(read_records(root))
    except DiskError:
        return ()


def summarise(known: tuple[DreamRecord, ...]) -> dict[str, Any]:
    """Return the counts for `lamina stats`."""
    counts = {status: sum(record.status == status for record in known) for status in ("completed", "failed", "killed", "undone")}
    last = next((record for record in known if record.status == "completed"), None)
    return {**counts, "last": _iso(last.ended) if last is not None else None}


def describe_last(known: tuple[DreamRecord, ...]) -> str | None:
    """Describe the last dream's result; None if there was none."""
    last = next((record for record in known if record.status != "running"), None)
    return (
        None
        if last is None
        else Text("Last dream: {ended}, {last}", ended=minute(last.ended or last.started), last=describe_outcome(last))
    )


def find_running(known: tuple[DreamRecord, ...], holder: DreamLockHolder | None) -> DreamRecord | None:
    """Return the dream recorded as running; `holder` tells whether its process is still alive."""
    return next((record for record in known if record.status == "running"), None) if holder is not None else None


def _seconds(last_ns: int | None) -> float | None:
    return None if last_ns is None else last_ns / 1e9


def _in_the_way(root: RootDir, source: MemorySource, last_ns: int | None, holder: DreamLockHolder | None) -> DreamStop | None:
    """Return why an interactive session would not start a dream at the end of its next turn."""
    if holder is not None and holder.alive and find_switch(source.settings) is None:
        return DreamStop(
            "lock", Text("process {pid} has been dreaming since {since}", pid=holder.pid, since=minute(holder.since))
        )
    return find_gate(root, cwd=source.cwd, home=source.home, settings=source.settings, last_ns=last_ns)


# JSON output


def to_json(record: DreamRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "status": record.status,
        "phase": record.phase,
        "by": record.by,
        "session_id": record.session,
        "pid": record.pid,
        "started": _iso(record.started),
        "ended": _iso(record.ended),
        "turns": [{"text": turn.text, "calls": turn.calls} for turn in record.turns],
        **{name: list(getattr(record, name)) for name in ("files", "removed", "merged", "waiting")},
        "skipped": [{"file": one.file, "why": one.why} for one in record.skipped],
        "why": record.why,
        "tokens": record.tokens,
        "cost_usd": record.cost,
    }


def status_json(found: DreamStatus) -> dict[str, Any]:
    holder = found.holder
    return {
        "running": to_json(found.running) if found.running is not None else None,
        "holder": {"pid": holder.pid, "since": _iso(holder.since), "alive": holder.alive} if holder is not None else None,
        "last": _iso(found.last),
        "due": found.stop is None,
        "gate": found.stop.gate if found.stop is not None else None,
        "why": found.stop.why if found.stop is not None else None,
        "waiting": found.waiting,
        "dreams": [to_json(record) for record in found.records],
    }


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else utc_time(seconds)


# Text output


def status_lines(found: DreamStatus) -> Iterator[str]:
    if found.running is not None:
        yield _running(found.running, found.holder)
    yield Text("Last dream: {last}", last=minute(found.last) if found.last is not None else Text("none yet"))
    if found.running is None:
        yield (
            Text("Next: at the end of the next turn")
            if found.stop is None
            else Text("Next: not yet, {why}", why=Text.whole(found.stop.why))
        )
    if found.waiting:
        yield Text("Pending memory changes: {waiting} (lamina inbox)", waiting=found.waiting)
    for record in found.records:
        if record is not found.running:
            yield Text("  {id}  {outcome}", id=record.id, outcome=describe_outcome(record))


def _running(record: DreamRecord, holder: DreamLockHolder | None) -> Text:
    if holder is not None and not holder.alive:
        form = Text("Running: {id}, but its process {pid} has died; {repair}")
        return Text(form, id=record.id, pid=record.pid, repair=PUT_RIGHT)
    return Text(
        "Running: {id} since {started}, process {pid}, {phase}, {answers} so far",
        id=record.id,
        started=minute(record.started),
        pid=record.pid,
        phase=Text.whole(record.phase),
        answers=counted(len(record.turns), "answer"),
    )


def describe_outcome(record: DreamRecord) -> Text:
    """Describe the result of a dream as a clause without a full stop."""
    match record.status:
        case "running":
            return Text("was interrupted; {repair}", repair=PUT_RIGHT)
        case "completed":
            if record.phase == "undoing":
                return Text("was partly undone; {repair}", repair=PUT_RIGHT)
            changes = joined(list_changes(record) or [Text("nothing to change")])
            if not record.why:
                return changes
            return Text("{changes} (cut short: {why})", changes=changes, why=Text.whole(sentence(record.why)))
        case "undone":
            return Text("was undone")
        case "failed" | "killed":
            left = Text("nothing was changed")
            if record.phase == "applying":
                left = Text("some memories were changed; {repair}", repair=PUT_RIGHT)
            form = Text("was stopped: {why}; {left}" if record.status == "killed" else "failed: {why}; {left}")
            return Text(form, why=Text.whole(sentence(record.why) or "unknown reason"), left=left)


def describe_undo(undone: UndoneDream, *, again: bool = False) -> str:
    index_only = not undone.back and not undone.left
    what = Text("the index") if index_only else counted(len(undone.back), "memory")
    form = Text("Applied dream {id} again: changed {what}." if again else "Undid dream {id}: restored {what}.")
    return Text(form, id=undone.record.id, what=what)


def list_changes(record: DreamRecord) -> list[Text]:
    added, changed = record.written()
    parts = (
        (Text("merged {count} ({names})"), record.merged),
        (Text("added {count} ({names})"), added),
        (Text("changed {count} ({names})"), changed),
        (Text("removed {count} ({names})"), record.removed),
    )
    changes = [Text(form, count=len(files), names=_some(files)) for form, files in parts if files]
    return [
        *changes,
        *([Text("repaired the index")] if INDEX in record.files else []),
        *([Text("{n} change pending approval|{n} changes pending approval", n=len(record.waiting))] if record.waiting else []),
    ]


def _some(files: Sequence[str]) -> str:
    names = ", ".join(file.removesuffix(".md") for file in files[:MOST_NAMED])
    return Text("{names} and {count} more", names=names, count=len(files) - MOST_NAMED) if len(files) > MOST_NAMED else names


def list_remarks(record: DreamRecord) -> Iterator[str]:
    """Return remarks about skipped files and pending changes."""
    left = [Text("left unchanged: {file} {why}", file=one.file, why=Text.whole(one.why)) for one in record.skipped]
    yield from capped(left, MOST_NAMED, Text("and {count:,} more left unchanged; --json lists them"))
    if record.waiting:
        yield Text("Run `lamina inbox` to review the pending changes.")
