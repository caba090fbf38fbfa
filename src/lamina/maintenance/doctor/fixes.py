"""`mend`: does what findings offer, and says what it did.

Owns the order: modes first, so that what follows may read; what dreams left, before memories are changed; doubles before the index,
so that no line is mended that goes anyway.
Invariants: every change of a memory goes through its store and is journaled as the person's own, with "doctor" as the reason, so
`lamina memory restore` takes it back; before each one the disk is looked at again, and what no longer fits is left alone; what fails
is one sentence, and the rest is still mended. A crash between two steps leaves what was done, done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, assert_never

from ...core.dates import dated
from ...core.errors import DiskError, InputError, LaminaError
from ...disk.locks.dream_lock import DreamLock
from ...disk.temp_files import sweep_temps
from ...disk.transcripts.repairs import drop_fork, make_private, repair_transcript
from ...disk.trees.rootdir import RootDir
from ...disk.trees.survey import look_at
from ...layers.l6_dream.undo import recover
from ...memory.store.contract import Why
from ...memory.store.directory import DirectoryStore
from ...memory.store.draft import Draft
from ...memory.store.index import INDEX, Entry
from ...memory.store.index_lint import IndexPlan, kept_indexes, mend_index
from ...memory.store.lint import identical
from ...memory.store.modes import GatedStore
from ...memory.store.topic import Topic
from .examine import Report
from .finding import DateIt, DropFork, Finding, Fix, MakePrivate, MendIndex, PutRight, Repair, Sweep, ToTrash
from .memory_snapshot import Where, read_memory
from .topics import dates_in, may_be_dated

WHY = Why("user", "doctor")
_ORDER = (MakePrivate, Sweep, PutRight, DropFork, Repair, ToTrash, DateIt, MendIndex)
# A double that goes makes room for a line in the index: one more look than that.
_ROUNDS = 3


class Done(NamedTuple):
    """One thing that was mended, or (`ok` false) was tried. `undo` says how to take it back; empty where nothing is lost."""

    kind: str
    text: str
    file: str = ""
    undo: str = ""
    ok: bool = True


def mend_all(look: Callable[[], Report], *, now: float) -> tuple[list[Done], Report]:
    """Looks and mends until nothing is left to mend; what was done, and what is left for the person.

    One cure can make room for another, so it takes a second look, never more than a few.
    """
    done: list[Done] = []
    report = look()
    for _ in range(_ROUNDS):
        new = mend(report.findings, now=now, shared=report.shared)
        done += [each for each in new if each not in done]
        if not new:
            break
        report = look()
        if not any(each.ok for each in new):
            break
    return done, report


def mend(findings: Sequence[Finding], *, now: float, shared: Sequence[str] = ()) -> list[Done]:
    """Does each fix once. `shared` are the memory directories of teams."""
    wanted: dict[Fix, str] = {}
    for found in findings:
        if found.fix is not None:
            wanted.setdefault(found.fix, found.kind)
    done: list[Done] = []
    for fix in sorted(wanted, key=lambda fix: _ORDER.index(type(fix))):
        try:
            done += _do(fix, wanted[fix], now, frozenset(shared))
        except LaminaError as error:
            done.append(Done(wanted[fix], str(error), ok=False))
    return done


def _do(fix: Fix, kind: str, now: float, shared: frozenset[str]) -> list[Done]:
    match fix:
        case MakePrivate(paths):
            return _private(paths, kind)
        case Sweep(directory):
            count = sweep_temps(directory, now=now)
            return [Done(kind, f"Removed {count:,} temporary {_files(count)} from {directory}.", directory)] if count else []
        case DropFork(path):
            return [Done(kind, f"Removed {path}.", path)] if drop_fork(Path(path)) else []
        case Repair(path):
            repaired = repair_transcript(Path(path))
            text = f"Took the damage out of {path}; all records that could be read are kept."
            return [Done(kind, text, path, f"The file as it was: {repaired.backup}")]
        case ToTrash(memory, file, twin):
            return _to_trash(memory, file, twin, kind, now, memory in shared)
        case DateIt(memory, file):
            return _date(memory, file, kind, now, memory in shared)
        case MendIndex(memory):
            return _index(memory, kind, now, memory in shared)
        case PutRight(memory):
            with _bare_store(memory, False) as store:
                said = recover(GatedStore(store, "auto"), DreamLock(store.root), now=now)
            return [Done(kind, text, memory) for text in said]
        case _:
            assert_never(fix)


def _files(count: int) -> str:
    return "file" if count == 1 else "files"


def _private(paths: Sequence[str], kind: str) -> list[Done]:
    changed, failed = 0, list[Done]()
    for path in paths:
        try:
            changed += make_private(path)
        except DiskError as error:
            failed.append(Done(kind, str(error), path, ok=False))
    top = os.path.commonpath(paths)
    said = (
        [Done(kind, f"Closed {changed:,} {'entry' if changed == 1 else 'entries'} in {top} to other users.", top)]
        if changed
        else []
    )
    return [*said, *failed]


@contextmanager
def _store(memory: str, shared: bool, now: float) -> Iterator[DirectoryStore]:
    """Without the mending of `DirectoryStore.open`: what is mended here is said here."""
    with _bare_store(memory, shared) as store:
        if store.root.stat(INDEX) is None:
            # The store would make one for every memory there is; this one stops where a session stops reading.
            _mended_index(store, now)
        yield store


def _bare_store(memory: str, shared: bool) -> DirectoryStore:
    return DirectoryStore(RootDir.open(memory, create=False, shared=shared), scope="team" if shared else "private")


def _to_trash(memory: str, file: str, twin: str, kind: str, now: float, shared: bool) -> list[Done]:
    with _store(memory, shared, now) as store:
        one, other = _at(store, twin), _at(store, file)
        if one is None or other is None or not identical([one, other]):
            return []
        if not store.remove(file, why=WHY):
            return []
        text = f"Moved {file} to the trash; {twin} says the same."
        return [Done(kind, text, str(Path(memory) / file), f"To undo: lamina memory restore {_asked(file, shared)}")]


def _asked(file: str, shared: bool) -> str:
    return f"team/{file}" if shared else file


def _at(store: DirectoryStore, file: str) -> Topic | None:
    """The memory of this very file; None where the store would take another one for it."""
    raw = store.raw(file)
    return store.get(file) if raw is not None and raw.file == file else None


def _date(memory: str, file: str, kind: str, now: float, shared: bool) -> list[Done]:
    reading = read_memory(Where(Path(memory), Path(memory), shared), now=now)
    page = next((page for page in reading.pages if page.topic.file == file), None) if reading is not None else None
    if reading is None or page is None:
        return []
    sure = [phrase for phrase, _, certain in dates_in(reading, page) if certain and may_be_dated(page.topic, phrase)]
    body = dated(page.topic.body, sure)
    if body == page.topic.body:
        return []
    with _store(memory, shared, now) as store:
        topic = page.topic
        draft = Draft(topic.name, topic.type, topic.description, body)
        planned = store.plan(draft)
        if planned.topic.file != file or planned.before is None or planned.before.decode("utf-8", "replace") != page.text:
            raise InputError(file, "cannot be changed by its name", "put the dates there by hand")
        store.save(draft, why=WHY)
    said = ", ".join(f"{phrase.text} ({phrase.says})" for phrase in sure)
    return [
        Done(
            kind,
            f"Put dates into {file}: {said}.",
            str(Path(memory) / file),
            f"To undo: lamina memory restore {_asked(file, shared)}",
        )
    ]


def _index(memory: str, kind: str, now: float, shared: bool) -> list[Done]:
    with _bare_store(memory, shared) as store:
        plan = _mended_index(store, now)
        if plan is None:
            return []
        kept = kept_indexes(store)
        undo = f"The index as it was: {store.root.path / kept[-1]}" if kept else ""
        return [Done(kind, f"Mended {INDEX}: {_said(plan)}.", str(store.root.path / INDEX), undo)]


def _mended_index(store: DirectoryStore, now: float) -> IndexPlan | None:
    def topics() -> list[Entry]:
        return [Entry(topic.name, topic.file, topic.description) for topic in store.topics()]

    return mend_index(store, topics, exists=lambda file: look_at(store.root.path / file) is not None, now=now)


def _said(plan: IndexPlan) -> str:
    parts = ((len(plan.removed), "removed"), (len(plan.shortened), "shortened"), (len(plan.added), "added"))
    return ", ".join(f"{count:,} {'line' if count == 1 else 'lines'} {word}" for count, word in parts if count)
