"""`lamina forget`: one subject out of everything that is kept, and a report of what went, what could not and what is left (B11).

Owns the order. First what only copies: transcripts, spills, notes, the chat's history; then memories, and of those the journal
last: the lines of memories that go are looked for everywhere, so they must be known until all else is done. Nothing that is
done here is noted anywhere, so nothing can bring it back.

A crash at any line leaves each file old or new, and the same command goes on where it stopped. A session that is open is left
alone and reported, and so is what cannot be written. At the end every file is read once more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from ...core.errors import DiskError
from ...disk.files import remove, update
from ...disk.locks.dream_lock import DreamLock
from ...disk.locks.lock_file import LifeLock
from ...disk.transcripts.store import lock_path
from ...disk.trees.rewrite import FileState, file_state, raw_lines, remove_tree, rewrite
from ...disk.trees.rootdir import RootDir
from ...layers.l6_dream.record import dream_home, is_open, read_records, request_kill
from ...layers.l6_dream.undo import recover
from ...memory.store.directory import GUARD, PATIENCE, DirectoryStore
from ...memory.store.modes import GatedStore
from .files import Places, Root, Session, files, session_kind
from .memories import changes, copied_lines
from .subject import Subject
from .transcripts import Spilled, beside, rewritten, spilled

# A file that is no transcript is held in memory as a whole; larger ones are reported.
MOST_BYTES = 256 << 20
# How much of a long file is looked at at once, and how far two looks overlap: no subject is longer.
_WINDOW = 8 << 20
_OVERLAP = 8 << 10
# What a person typed in the chat.
HISTORY = "history"


class Item(msgspec.Struct, frozen=True):
    path: str
    kind: str
    action: Literal["removed", "rewritten"]
    places: int


class Left(msgspec.Struct, frozen=True):
    """What could not be done, or still holds the subject, and why."""

    path: str
    why: str


class Report(msgspec.Struct):
    done: list[Item] = []
    skipped: list[Left] = []
    left: list[Left] = []

    def counts(self) -> dict[str, int]:
        """Kind → places."""
        found: dict[str, int] = {}
        for item in self.done:
            found[item.kind] = found.get(item.kind, 0) + (item.places or item.action == "removed")
        return {kind: count for kind, count in found.items() if count}


def forget(places: Places, subject: Subject, *, do: bool) -> Report:
    """Without `do` nothing is changed and the report says what would be."""
    report = Report()
    whole = subject.with_also(line for root in places.roots for line in copied_lines(root, subject))
    for session in places.sessions:
        _session(session, whole, report, do=do)
    for path in places.others:
        _other(path, whole, report, do=do)
    for root in places.roots:
        _root(root, whole, report, do=do)
    return report


@contextmanager
def _reported(report: Report, path: Path) -> Iterator[None]:
    """What one file refuses is no reason to leave the others as they are."""
    try:
        yield
    except DiskError as error:
        report.skipped.append(Left(str(path), str(error)))
    except OSError as error:
        report.skipped.append(Left(str(path), os.strerror(error.errno or 0).lower()))


# Sessions


class _Beside(NamedTuple):
    path: Path
    before: FileState
    data: bytes
    places: int


def _session(session: Session, subject: Subject, report: Report, *, do: bool) -> None:
    with _reported(report, session.transcript):
        if (holder := session.holder()) is not None:
            if _holds_any(session, subject):
                why = f"the session is open ({holder}); close it and try again"
                report.skipped.append(Left(str(session.transcript), why + _copies(session, subject)))
            return
        if not _holds_any(session, subject):
            return
        lock = LifeLock.acquire(lock_path(session.transcript)) if do else None
        try:
            if do and lock is None:
                report.skipped.append(Left(str(session.transcript), "the session was opened just now; close it and try again"))
                return
            _clean_session(session, subject, report, do=do)
        finally:
            if lock is not None:
                lock.close()


def _holds_any(session: Session, subject: Subject) -> bool:
    own = [session.transcript] if session.transcript.is_file() else []
    return any(_holds(path, subject) for path in (*own, *files(session.directory)))


def _copies(session: Session, subject: Subject) -> str:
    """The next call no longer knows the lines of memories that go now: where they were copied to is said."""
    return (
        "" if _holds_any(session, subject.plain()) else "; it holds lines copied from a memory that goes, not the subject itself"
    )


def _clean_session(session: Session, subject: Subject, report: Report, *, do: bool) -> None:
    changed, spills = list[_Beside](), dict[str, Spilled]()
    logs = [session.transcript] if session.transcript.is_file() else []
    for path in files(session.directory):
        if path.suffix == ".jsonl":
            logs.append(path)
            continue
        with _reported(report, path):
            data, before = _data(path), file_state(path)
            new = beside(path, data, subject)
            if new is not None and before is not None:
                changed.append(_Beside(path, before, new.data, new.places))
                old_digest, file = spilled(data, new.data)
                spills[old_digest] = file
    for path in logs:
        with _reported(report, path):
            _clean_log(path, subject, spills, report, do=do)
    for one in changed:
        with _reported(report, one.path):
            if do:
                rewrite(one.path, [one.data], before=one.before)
            report.done.append(Item(str(one.path), session_kind(session, one.path), "rewritten", one.places))


def _clean_log(
    path: Path, subject: Subject, spills: dict[str, Spilled], report: Report, *, do: bool, kind: str = "transcripts"
) -> None:
    before = file_state(path)
    places, touched = 0, False
    for line in rewritten(raw_lines(path), subject, spills):
        places += line.places
        touched = touched or line.changed
    if not touched or before is None:
        return
    if do:
        rewrite(path, (line.data for line in rewritten(raw_lines(path), subject, spills)), before=before)
    report.done.append(Item(str(path), kind, "rewritten", places))


def _data(path: Path) -> bytes:
    with open(path, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise DiskError(str(path), f"is larger than {MOST_BYTES >> 20} MiB", "look into it yourself")
    return data


# The home's own files


def _other(path: Path, subject: Subject, report: Report, *, do: bool) -> None:
    with _reported(report, path):
        if not _holds(path, subject):
            return
        if path.name == HISTORY:
            _typed(path, subject, report, do=do)
        elif path.suffix == ".jsonl":
            _clean_log(path, subject, {}, report, do=do, kind="other files")
        else:
            before = file_state(path)
            new = beside(path, _data(path), subject)
            if new is None or before is None:
                return
            if do:
                rewrite(path, [new.data], before=before)
            report.done.append(Item(str(path), "other files", "rewritten", new.places))


def _typed(path: Path, subject: Subject, report: Report, *, do: bool) -> None:
    """What a person typed goes line by line, under the lock that open chats take before they add theirs."""
    rows = _data(path).splitlines(keepends=True)

    def kept(data: bytes | None) -> bytes:
        lines = (data or b"").splitlines(keepends=True)
        return b"".join(line for line in lines if not subject.holds(line.decode("utf-8", "surrogateescape")))

    if do:
        update(path, kept)
    gone = len(rows) - len(kept(b"".join(rows)).splitlines())
    report.done.append(Item(str(path), "chat history", "rewritten", gone))


# Memories


def _root(root: Root, subject: Subject, report: Report, *, do: bool) -> None:
    with _reported(report, root.path):
        if not do or not changes(root, subject):
            _clean_root(root, subject, report, do=False)
            return
        with RootDir.open(root.path, create=False, shared=root.shared) as opened:
            _stop_dreams(opened, report)
            with opened.guard(GUARD, timeout=PATIENCE):
                _clean_root(root, subject, report, do=True)


def _stop_dreams(opened: RootDir, report: Report) -> None:
    """One that was stopped half way is put right before what it would be put right with is gone; one that runs is told to end."""
    recover(GatedStore(DirectoryStore(opened), "auto"), DreamLock(opened), now=time.time())
    for record in read_records(opened):
        if is_open(record):
            request_kill(opened, record.id)
            why = "a dream is running on this memory; it was told to stop, so try again in a moment"
            report.skipped.append(Left(str(opened.path / dream_home(record.id)), why))


def _clean_root(root: Root, subject: Subject, report: Report, *, do: bool) -> None:
    found = changes(root, subject)
    git = root.path / ".history" / "git"
    # Git's copy holds every version: it goes before anything, and comes back from the journal as that then reads.
    if git.is_dir() and any(change.kind not in ("caches", "inbox") for change in found):
        with _reported(report, git):
            if do:
                remove_tree(git)
            report.done.append(Item(str(git), "git history", "removed", 0))
    for change in found:
        with _reported(report, change.path):
            if do and change.new is None:
                _refuse_read_only(change.path, change.before)
                remove(change.path)
            elif do and change.new is not None:
                rewrite(change.path, [change.new], before=change.before, shared=root.shared)
            action: Literal["removed", "rewritten"] = "removed" if change.new is None else "rewritten"
            report.done.append(Item(str(change.path), change.kind, action, change.places - change.trash))
            if change.trash:
                report.done.append(Item(str(change.path), "trash", action, change.trash))


def _refuse_read_only(path: Path, before: FileState) -> None:
    if not before.mode & 0o222:
        raise DiskError(str(path), "is read-only", "allow writing to it first")


# The last look


def remains(roots: list[Path], subject: Subject, *, inside: Callable[[Path], bool]) -> list[Left]:
    """Every file below these directories that still holds the subject, read raw. `inside`: whether it was to be cleaned at all."""
    loose = subject.everywhere()
    found: list[Left] = []
    every = dict.fromkeys(path for root in roots for path in files(root))
    above = {
        parent for root in roots for path in every if root in path.parents for parent in path.parents if root in parent.parents
    }
    found += [Left(str(path), "its name holds it") for path in sorted({*every, *above}) if loose.holds(path.name)]
    for path in every:
        try:
            if not _holds(path, loose):
                continue
            exact = _holds(path, subject)
        except OSError as error:
            found.append(Left(str(path), f"could not be read: {os.strerror(error.errno or 0).lower()}"))
            continue
        if not inside(path):
            found.append(Left(str(path), "belongs to another project; --all-projects cleans that too"))
        elif not exact:
            found.append(Left(str(path), "only as a part of longer words; --anywhere takes those too"))
        else:
            found.append(Left(str(path), "still holds it"))
    return found


def _holds(path: Path, subject: Subject) -> bool:
    """Whether the raw bytes hold it, escaped or not; a part at a time."""
    with open(path, "rb") as file:
        tail = b""
        while data := file.read(_WINDOW):
            if subject.holds((tail + data).decode("utf-8", "surrogateescape")):
                return True
            tail = (tail + data)[-_OVERLAP:]
    return False


def as_json(report: Report) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(report)
    return {"removed": built["done"], "counts": report.counts(), "skipped": built["skipped"], "left": built["left"]}
