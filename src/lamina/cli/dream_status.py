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
PUT_RIGHT = "the next session repairs this, or run `lamina dream --kill`"


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
    return None if last is None else f"Last dream: {minute(last.ended or last.started)}, {sentence(describe_outcome(last))}"


def find_running(known: tuple[DreamRecord, ...], holder: DreamLockHolder | None) -> DreamRecord | None:
    """Return the dream recorded as running; `holder` tells whether its process is still alive."""
    return next((record for record in known if record.status == "running"), None) if holder is not None else None


def _seconds(last_ns: int | None) -> float | None:
    return None if last_ns is None else last_ns / 1e9


def _in_the_way(root: RootDir, source: MemorySource, last_ns: int | None, holder: DreamLockHolder | None) -> DreamStop | None:
    """Return why an interactive session would not start a dream at the end of its next turn."""
    if holder is not None and holder.alive and find_switch(source.settings) is None:
        return DreamStop("lock", f"process {holder.pid} has been dreaming since {minute(holder.since)}")
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
        yield f"Running: {_running(found.running, found.holder)}"
    yield f"Last dream: {minute(found.last) if found.last is not None else 'none yet'}"
    if found.running is None:
        yield "Next: at the end of the next turn" if found.stop is None else f"Next: not yet, {found.stop.why}"
    if found.waiting:
        yield f"Pending memory changes: {found.waiting} (lamina inbox)"
    for record in found.records:
        if record is not found.running:
            yield f"  {record.id}  {describe_outcome(record)}"


def _running(record: DreamRecord, holder: DreamLockHolder | None) -> str:
    if holder is not None and not holder.alive:
        return f"{record.id}, but its process {record.pid} has died; {PUT_RIGHT}"
    answers = counted(len(record.turns), "answer")
    return f"{record.id} since {minute(record.started)}, process {record.pid}, {record.phase}, {answers} so far"


def describe_outcome(record: DreamRecord) -> str:
    """Describe the result of a dream as a clause without a full stop."""
    match record.status:
        case "running":
            return f"was interrupted; {PUT_RIGHT}"
        case "completed":
            cut = f" (cut short: {sentence(record.why)})" if record.why else ""
            changes = f"{', '.join(list_changes(record)) or 'nothing to change'}{cut}"
            return f"was partly undone; {PUT_RIGHT}" if record.phase == "undoing" else changes
        case "undone":
            return "was undone"
        case "failed" | "killed":
            word = "was stopped" if record.status == "killed" else "failed"
            left = f"some memories were changed; {PUT_RIGHT}" if record.phase == "applying" else "nothing was changed"
            return f"{word}: {sentence(record.why) or 'unknown reason'}; {left}"


def describe_undo(undone: UndoneDream, *, again: bool = False) -> str:
    index_only = not undone.back and not undone.left
    what = "the index" if index_only else counted(len(undone.back), "memory")
    if again:
        return f"Applied dream {undone.record.id} again: changed {what}."
    return f"Undid dream {undone.record.id}: restored {what}."


def list_changes(record: DreamRecord) -> list[str]:
    added, changed = record.written()
    parts = [("merged", record.merged), ("added", added), ("changed", changed), ("removed", record.removed)]
    changes = [f"{word} {len(files)} ({_some(files)})" for word, files in parts if files]
    return [
        *changes,
        *(["repaired the index"] if INDEX in record.files else []),
        *([f"{counted(len(record.waiting), 'change')} pending approval"] if record.waiting else []),
    ]


def _some(files: Sequence[str]) -> str:
    more = f" and {len(files) - MOST_NAMED} more" if len(files) > MOST_NAMED else ""
    return ", ".join(file.removesuffix(".md") for file in files[:MOST_NAMED]) + more


def list_remarks(record: DreamRecord) -> Iterator[str]:
    """Return remarks about skipped files and pending changes."""
    left = [f"left unchanged: {one.file} {one.why}" for one in record.skipped]
    yield from capped(left, MOST_NAMED, "and {} more left unchanged; --json lists them")
    if record.waiting:
        yield "Run `lamina inbox` to review the pending changes."
