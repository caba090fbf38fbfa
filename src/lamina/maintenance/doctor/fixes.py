"""`mend`: apply the fixes that findings offer, and report what was done.

Owns the order: file modes first, so that later fixes can read; interrupted dreams before memories are changed; duplicates
before the index, so that no line is repaired that is removed anyway.

Invariants: every change to a memory goes through its store and is journaled as the user's, with the reason "doctor", so `lamina
memory restore` can undo it. Before each fix the disk is checked again, and what has changed is left alone. A failure becomes
one message, and the other fixes still run. A crash between two steps leaves the completed steps in place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, assert_never

from ...core.errors import DiskError, InputError, LaminaError
from ...disk.locks.dream_lock import DreamLock
from ...disk.temp_files import sweep_temps
from ...disk.transcripts.repairs import drop_fork, make_private, repair_transcript
from ...disk.trees.rootdir import RootDir
from ...disk.trees.survey import look_at
from ...language.dates import dated
from ...language.wording import counted
from ...layers.l6_dream.undo import recover
from ...memory.store.contract import ChangeReason
from ...memory.store.directory import DirectoryStore
from ...memory.store.draft import Draft
from ...memory.store.index import INDEX
from ...memory.store.lint import IndexPlan, find_identical, list_index_backups, repair_index
from ...memory.store.modes import GatedStore
from ...memory.store.topic import Topic
from ..forget.job import resume_job
from .examination import DoctorReport
from .finding import DateIt, Finding, Fix, MakePrivate, PathFix, ToTrash
from .memory_snapshot import MemoryDirectory, read_memory
from .topics import dates_in, may_be_dated

WHY = ChangeReason("user", "doctor")
_ORDER = (MakePrivate, "sweep", "put-right", "finish-forget", "drop-fork", "repair", ToTrash, DateIt, "mend-index")
# Removing a duplicate can make room in the index, so check again a few times.
_ROUNDS = 3


class AppliedFix(NamedTuple):
    """A fix that was applied, or failed (`ok` is false). `undo` tells how to undo it; empty if nothing was lost."""

    kind: str
    text: str
    file: str = ""
    undo: str = ""
    ok: bool = True


def mend_all(look: Callable[[], DoctorReport], *, now: float) -> tuple[list[AppliedFix], DoctorReport]:
    """Check and fix until there is nothing left to fix; return what was done and the final report.

    One fix can enable another, so the checks run again, a few times at most.
    """
    done: list[AppliedFix] = []
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


def mend(findings: Sequence[Finding], *, now: float, shared: Sequence[str] = ()) -> list[AppliedFix]:
    """Apply each fix once. `shared` are the memory directories of teams."""
    wanted: dict[Fix, str] = {}
    for found in findings:
        if found.fix is not None:
            wanted.setdefault(found.fix, found.kind)
    done: list[AppliedFix] = []
    for fix in sorted(wanted, key=lambda fix: _ORDER.index(fix.action if isinstance(fix, PathFix) else type(fix))):
        try:
            done += [outcome._replace(kind=wanted[fix]) for outcome in _mended(fix, now, shared)]
        except LaminaError as error:
            done.append(AppliedFix(wanted[fix], str(error), ok=False))
    return done


def _mended(fix: Fix, now: float, shared: Sequence[str]) -> Iterator[AppliedFix]:
    match fix:
        case MakePrivate(paths):
            yield from _private(paths)
        case ToTrash(memory, file, twin):
            with _store(memory, memory in shared, now) as store:
                one, other = _at(store, twin), _at(store, file)
                if one and other and find_identical([one, other]) and store.remove(file, why=WHY):
                    yield _changed(store, file, f"Moved {file} to the trash; {twin} has the same content.")
        case DateIt(memory, file):
            yield from _date(memory, file, now, memory in shared)
        case PathFix():
            yield from _mended_path(fix, now, shared)
        case _:
            assert_never(fix)


def _mended_path(fix: PathFix, now: float, shared: Sequence[str]) -> Iterator[AppliedFix]:
    path = fix.path
    match fix.action:
        case "sweep":
            if count := sweep_temps(path, now=now):
                yield AppliedFix("", f"Removed {counted(count, 'temporary file', 'temporary files')} from {path}.", path)
        case "finish-forget":
            yield from _finished(Path(path))
        case "drop-fork":
            if drop_fork(Path(path)):
                yield AppliedFix("", f"Removed {path}.", path)
        case "repair":
            repaired = repair_transcript(Path(path))
            text = f"Repaired {path}; all readable records are kept."
            yield AppliedFix("", text, path, f"Backup: {repaired.backup}")
        case "mend-index":
            with _bare_store(path, path in shared) as store:
                if (plan := _mended_index(store, now)) is not None:
                    kept = list_index_backups(store)
                    undo = f"Backup: {store.root.path / kept[-1]}" if kept else ""
                    yield AppliedFix("", f"Repaired {INDEX}: {_summary(plan)}.", str(store.root.path / INDEX), undo)
        case "put-right":
            with _bare_store(path, False) as store:
                for text in recover(GatedStore(store, "auto"), DreamLock(store.root), now=now):
                    yield AppliedFix("", text, path)
        case _:
            assert_never(fix.action)


def _finished(path: Path) -> Iterator[AppliedFix]:
    """Resume a forget; the file of its job is in the home's own directory for them."""
    resumed = resume_job(path.parent.parent, path, os.environ)
    if resumed is None:
        return
    job, report = resumed
    if report.unfinished:
        left = [*report.skipped, *report.left][0]
        yield AppliedFix("", f"Forgetting {job.subject!r} is still unfinished: {left.path}: {left.why}.", str(path), ok=False)
    else:
        yield AppliedFix("", f"Finished forgetting {job.subject!r}.", str(path))


def _private(paths: Sequence[str]) -> Iterator[AppliedFix]:
    changed, failed = 0, list[AppliedFix]()
    for path in paths:
        try:
            changed += make_private(path)
        except DiskError as error:
            failed.append(AppliedFix("", str(error), path, ok=False))
    if changed:
        top = os.path.commonpath(paths)
        yield AppliedFix("", f"Made {counted(changed, 'entry')} in {top} private.", top)
    yield from failed


@contextmanager
def _store(memory: str, shared: bool, now: float) -> Iterator[DirectoryStore]:
    """Open the store without the automatic repairs of `DirectoryStore.open`, since every fix must be reported here."""
    with _bare_store(memory, shared) as store:
        if store.root.stat(INDEX) is None:
            # The store would list every memory; this index stops at the length that sessions read.
            _mended_index(store, now)
        yield store


def _bare_store(memory: str, shared: bool) -> DirectoryStore:
    return DirectoryStore(RootDir.open(memory, create=False, shared=shared), scope="team" if shared else "private")


def _at(store: DirectoryStore, file: str) -> Topic | None:
    """Return the memory of exactly this file; None if the store would resolve the name to another file."""
    raw = store.raw(file)
    return store.get(file) if raw is not None and raw.file == file else None


def _changed(store: DirectoryStore, file: str, text: str) -> AppliedFix:
    asked = f"team/{file}" if store.scope == "team" else file
    return AppliedFix("", text, str(store.root.path / file), f"To undo, run `lamina memory restore {asked}`.")


def _date(memory: str, file: str, now: float, shared: bool) -> Iterator[AppliedFix]:
    snapshot = read_memory(MemoryDirectory(Path(memory), Path(memory), shared), now=now)
    page = next((page for page in snapshot.pages if page.topic.file == file), None) if snapshot is not None else None
    if snapshot is None or page is None:
        return
    topic = page.topic
    sure = [phrase for phrase, _, certain in dates_in(snapshot, page) if certain and may_be_dated(topic, phrase)]
    body = dated(topic.body, sure)
    if body == topic.body:
        return
    with _store(memory, shared, now) as store:
        draft = Draft(topic.name, topic.type, topic.description, body)
        planned = store.plan(draft)
        if planned.topic.file != file or planned.before is None or planned.before.decode("utf-8", "replace") != page.text:
            raise InputError(file, "cannot be updated by its name", "replace the relative dates by hand")
        store.save(draft, why=WHY)
        dates = ", ".join(f"{phrase.text} ({phrase.says})" for phrase in sure)
        yield _changed(store, file, f"Replaced relative dates in {file}: {dates}.")


def _mended_index(store: DirectoryStore, now: float) -> IndexPlan | None:
    return repair_index(store, exists=lambda file: look_at(store.root.path / file) is not None, now=now)


def _summary(plan: IndexPlan) -> str:
    parts = ((len(plan.removed), "removed"), (len(plan.shortened), "shortened"), (len(plan.added), "added"))
    done = ", ".join(f"{counted(count, 'line', 'lines')} {word}" for count, word in parts if count)
    return f"{done}; {counted(len(plan.left), 'line')} left as before (see the findings)" if plan.left else done
