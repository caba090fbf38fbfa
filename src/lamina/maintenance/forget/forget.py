"""Remove a subject from everything that is stored, and report what was removed, what failed and what is left (B11).

Owns the order. Files with mere copies come first: transcripts, spilled results, notes, the chat history. Memories come next,
and their journals last, because lines of removed memories are searched everywhere and must stay known until all else is done.
Nothing is recorded about the removal, so nothing can bring the subject back.

A crash at any point leaves each file old or new, and a second run continues; `job` keeps what that run has to know. An open
session is left alone and reported, and so is anything that cannot be written. At the end every file is read again to check.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...core.errors import DiskError
from ...disk.database import is_database
from ...disk.dirfd import refuse_protected
from ...disk.files import remove, update
from ...disk.locks.dream_lock import DreamLock
from ...disk.locks.lock_file import LifeLock
from ...disk.regular_file import open_regular, stamp_of
from ...disk.transcripts.store import lock_path
from ...disk.trees.rewrite import raw_lines, remove_tree, rewrite
from ...disk.trees.rootdir import RootDir
from ...history.memories import SourceMemory
from ...history.places import NAMES
from ...history.sessions import SourceSession
from ...language.text import CLAUSES, Text, joined, system_reason
from ...layers.l6_dream.record import dream_home, is_open, read_records, request_kill
from ...layers.l6_dream.undo import recover
from ...memory.store.directory import DirectoryStore
from ...memory.store.history import hold_guard
from ...memory.store.index import INDEX
from ...memory.store.modes import GatedStore
from ..kept_files import FORGET, KeptFiles, MemoryRoot, SessionFiles, regular_files, session_kind, unlisted_directories, windows
from .memories import ForgetChange, MemoryChanges, changes, copied_lines_of
from .subject import Subject
from .transcripts import SpillDigest, redact_file, redact_transcript, spill_digests

# Files other than transcripts are read into memory as a whole; larger ones are reported.
MOST_BYTES = 256 << 20
# Long files are searched in overlapping parts; the overlap is longer than any subject.
_WINDOW = 8 << 20
_OVERLAP = 8 << 10
# The input history of the chat.
HISTORY = "history"
# Copies that are rebuilt from the cleaned files, so they are removed as a whole.
REBUILT = frozenset({"git history", "caches"})


class ForgottenFile(msgspec.Struct, frozen=True):
    path: str
    kind: str
    action: Literal["removed", "rewritten"]
    places: int


class LeftFile(msgspec.Struct, frozen=True):
    """A file that could not be cleaned or still contains the subject, and why. If not `in_scope`, cleaning it was not requested."""

    path: str
    why: str
    in_scope: bool = True
    readable: bool = True


class ForgetReport(msgspec.Struct):
    """`skipped` could not be cleaned now; `left` still contains it at the end. `unfinished` if another run has something to do.

    A plan names its `scope`, and counts what contains the subject `outside` of it, by kind: sessions and memories.
    """

    done: list[ForgottenFile] = []
    skipped: list[LeftFile] = []
    left: list[LeftFile] = []
    unfinished: bool = False
    scope: str = ""
    outside: dict[str, int] = {}

    def is_complete(self) -> bool:
        return not self.unfinished and not self.skipped and not any(one.in_scope for one in self.left)

    def counts(self) -> dict[str, int]:
        """Return the number of places by kind of file."""
        found: dict[str, int] = {}
        for item in self.done:
            found[item.kind] = found.get(item.kind, 0) + (item.places or item.action == "removed")
        return {kind: count for kind, count in found.items() if count}


def forget(
    kept: KeptFiles, subject: Subject, *, do: bool, rebuilt: Iterable[str] = (), pause: Callable[[], None] = lambda: None
) -> ForgetReport:
    """Remove the subject and report what was done; without `do`, only report what would be done.

    `rebuilt` are copies that an earlier run had to remove. `pause` is called before each session and each memory directory: a process
    with other work does it there.
    """
    removal = _Removal(subject.with_also(copied_lines_of(kept.roots, subject, pause)), do)
    for session in kept.sessions:
        pause()
        removal.clean_session(session)
    for path in kept.others:
        removal.clean_other(path)
    for root in kept.roots:
        pause()
        removal.clean_memory(root)
    for copy in map(Path, rebuilt):
        removal.remove_copy(copy)
    return removal.report


def why_not(error: OSError | DiskError) -> str:
    """Return the reason of an error without the path, which is printed before it."""
    if isinstance(error, OSError):
        return system_reason(error)
    return joined([part for part in (error.problem, error.remedy) if part], CLAUSES)


class _Removal:
    def __init__(self, subject: Subject, do: bool) -> None:
        self.subject = subject
        self.do = do
        self.report = ForgetReport()
        self.tried = set[Path]()  # git repositories and caches

    @contextmanager
    def _reported(self, path: Path) -> Iterator[None]:
        """Report an error with one file and go on with the others."""
        try:
            yield
        except (DiskError, OSError) as error:
            at = Path(error.path) if isinstance(error, DiskError) else path
            self._skip(at if at.is_absolute() else path, why_not(error))

    def _skip(self, path: Path, why: str) -> None:
        self.report.skipped.append(LeftFile(str(path), why))

    def _note(self, path: Path, kind: str, action: Literal["removed", "rewritten"], places: int) -> None:
        self.report.done.append(ForgottenFile(str(path), kind, action, places))

    def _apply(self, change: ForgetChange, *, shared: bool = False) -> None:
        if change.kind in REBUILT:
            self.remove_copy(change.path)
            return
        with self._reported(change.path):
            if self.do and change.new is not None:
                rewrite(change.path, [change.new], before=change.before, shared=shared)
            elif self.do:
                if os.path.lexists(change.path):
                    refuse_protected(os.lstat(change.path), change.path)
                remove(change.path)
            action: Literal["removed", "rewritten"] = "removed" if change.new is None else "rewritten"
            self._note(change.path, change.kind, action, change.places - change.trash)
            if change.trash:
                self._note(change.path, "trash", action, change.trash)

    def remove_copy(self, path: Path) -> None:
        """Remove git's repository or a cache, once."""
        if path in self.tried or not os.path.lexists(path):
            return
        self.tried.add(path)
        with self._reported(path):
            if self.do:
                remove_tree(path)
            self._note(path, "git history" if path.name == "git" else "caches", "removed", 0)

    # Sessions

    def clean_session(self, session: SessionFiles) -> None:
        with self._reported(session.transcript):
            holder = session.holder()
            if not _holds_any(session, self.subject):
                return
            if holder is not None:
                self._skip(session.transcript, Text("the session is open ({holder}); close it and try again", holder=holder))
                return
            if not self.do:
                self._clean_files(session)
                return
            lock = LifeLock.acquire(lock_path(session.transcript))
            if lock is None:
                self._skip(session.transcript, "the session was opened just now; close it and try again")
                return
            with closing(lock):
                self._clean_files(session)

    def _clean_files(self, session: SessionFiles) -> None:
        changed, spills = list[ForgetChange](), dict[str, SpillDigest]()
        logs = [session.transcript] if session.transcript.is_file() else []
        for path in regular_files(session.directory):
            if path.suffix == ".jsonl":
                logs.append(path)
                continue
            with self._reported(path):
                changed += self._changes(path, session_kind(session, path), spills)
        before = len(self.report.skipped)
        for path in logs:
            with self._reported(path):
                self._clean_log(path, "transcripts", spills)
        # A transcript names the digests of its files, so they change only together with it.
        if len(self.report.skipped) == before:
            for one in changed:
                self._apply(one)

    def _changes(self, path: Path, kind: str, spills: dict[str, SpillDigest]) -> Iterator[ForgetChange]:
        """Yield the change to a file that is not a transcript, and record its new digest in `spills`."""
        data, before = _data(path), stamp_of(path, follow=False)
        new = redact_file(path, data, self.subject)
        if new is not None and before is not None:
            spills |= spill_digests(data, new.value)
            yield ForgetChange(path, kind, new.places, before, new.value)

    def _clean_log(self, path: Path, kind: str, spills: dict[str, SpillDigest]) -> None:
        before = stamp_of(path, follow=False)
        places, touched = 0, False
        for line in redact_transcript(raw_lines(path), self.subject, spills):
            places += line.places
            touched = touched or line.changed
        if not touched or before is None:
            return
        if self.do:
            lines = redact_transcript(raw_lines(path), self.subject, spills)
            rewrite(path, (line.data for line in lines), before=before)
        self._note(path, kind, "rewritten", places)

    # The home's own files

    def clean_other(self, path: Path) -> None:
        with self._reported(path):
            if is_database(path):
                # An index of words holds a text in pieces that no search would find. It is made again from what is left.
                if self.do:
                    remove(path)
                return
            if not _holds(path, self.subject):
                return
            if path.name == HISTORY:
                self._clean_typed(path)
            elif path.suffix == ".jsonl":
                self._clean_log(path, "other files", {})
            else:
                for change in self._changes(path, "other files", {}):
                    self._apply(change)

    def _clean_typed(self, path: Path) -> None:
        """Remove lines from the input history, under the lock that open chats take before they append."""

        def kept(data: bytes | None) -> bytes:
            lines = (data or b"").splitlines(keepends=True)
            return b"".join(line for line in lines if not self.subject.holds(line.decode("utf-8", "surrogateescape")))

        data = _data(path)
        if self.do:
            update(path, kept)
        self._note(path, "chat history", "rewritten", len(data.splitlines()) - len(kept(data).splitlines()))

    # Memories

    def clean_memory(self, root: MemoryRoot) -> None:
        with self._reported(root.path):
            found = changes(root, self.subject)
            if not self.do or not found.files:
                self._clean_root(root, found)
                return
            with RootDir.open(root.path, create=False, shared=root.shared) as opened:
                self._stop_dreams(opened)
                with hold_guard(opened):
                    self._clean_root(root, changes(root, self.subject))

    def _stop_dreams(self, opened: RootDir) -> None:
        """Recover an interrupted dream before its backups are removed, and ask a running dream to stop."""
        recover(GatedStore(DirectoryStore(opened), "auto"), DreamLock(opened), now=time.time())
        for record in read_records(opened):
            if is_open(record):
                request_kill(opened, record.id)
                why = "a dream is running on this memory and was asked to stop; try again in a moment"
                self._skip(opened.path / dream_home(record.id), why)

    def _clean_root(self, root: MemoryRoot, found: MemoryChanges) -> None:
        for path, error in found.unread.items():
            if _may_hold(path, self.subject):
                self._skip(path, why_not(error))
        git = root.path / ".history" / "git"
        # The git copy that earlier versions kept contains every version: remove it first.
        if git.is_dir() and any(change.kind not in ("caches", "inbox") for change in found.files):
            self.remove_copy(git)
        for change in found.files:
            self._apply(change, shared=root.shared)


def _data(path: Path) -> bytes:
    with open_regular(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise DiskError(str(path), Text("is larger than {limit} MiB", limit=MOST_BYTES >> 20), "check it by hand")
    return data


def _holds_any(session: SessionFiles, subject: Subject) -> bool:
    own = [session.transcript] if session.transcript.is_file() else []
    return any(_holds(path, subject) for path in (*own, *regular_files(session.directory)))


def _holds(path: Path, subject: Subject) -> bool:
    """Return whether the raw bytes contain the subject, escaped or not, reading a part at a time."""
    return any(subject.holds(data.decode("utf-8", "surrogateescape")) for data in windows(path, _WINDOW, _OVERLAP))


def _may_hold(path: Path, subject: Subject) -> bool:
    try:
        return _holds(path, subject)
    except OSError:
        return True


# The final check


def remains(roots: list[Path], subject: Subject, *, inside: Callable[[Path], bool], skip: Path | None = None) -> list[LeftFile]:
    """Return every file below `roots` that still contains the subject. `inside` tells whether it was to be cleaned."""
    loose = subject.everywhere()
    every = dict.fromkeys(path for root in roots for path in regular_files(root) if path != skip)
    above = {
        parent for root in roots for path in every if root in path.parents for parent in path.parents if root in parent.parents
    }
    found = [LeftFile(str(path), "its name contains it") for path in sorted({*every, *above}) if loose.holds(path.name)]
    hidden = dict(unlisted for root in roots for unlisted in unlisted_directories(root))
    found += [
        LeftFile(str(path), Text("could not be listed: {error}", error=why_not(error)), readable=False)
        for path, error in hidden.items()
    ]
    return found + [left for path in every if (left := _left(path, subject, loose, inside)) is not None]


def _left(path: Path, subject: Subject, loose: Subject, inside: Callable[[Path], bool]) -> LeftFile | None:
    try:
        if not _holds(path, loose):
            return None
        if not inside(path):
            return LeftFile(str(path), "belongs to another project; use --all-projects to clean it too", in_scope=False)
        if not _holds(path, subject):
            return LeftFile(str(path), "contains it only inside longer words; use --anywhere to remove those", in_scope=False)
    except OSError as error:
        return LeftFile(
            str(path), Text("could not be read: {error}", error=why_not(error)), in_scope=inside(path), readable=not inside(path)
        )
    if path.parent.name == FORGET:
        return LeftFile(str(path), "another forget is unfinished; run `lamina forget --resume`")
    return LeftFile(str(path), "still contains it")


def held_by_others(found: Iterable[SourceSession | SourceMemory], home: Path, subject: Subject) -> list[LeftFile]:
    """Return the sessions and memories of other agents that contain the subject. Lamina does not change them."""
    theirs = {Path(one.path): one.origin for one in found if home not in Path(one.path).parents}
    every = {path: origin for file, origin in theirs.items() for path in (file, *_beside(file))}
    left: list[LeftFile] = []
    for path, origin in every.items():
        with suppress(FileNotFoundError):
            try:
                if _holds(path, subject):
                    why = Text(
                        "was written by {names}, and Lamina does not change it; searches still find it there", names=NAMES[origin]
                    )
                    left.append(LeftFile(str(path), why, in_scope=False))
            except PermissionError as error:
                left.append(LeftFile(str(path), Text("could not be read: {error}", error=why_not(error)), in_scope=False))
    return left


def _beside(file: Path) -> list[Path]:
    """Return the files that belong to a session or memory of another agent: stored results, and the index of the memories."""
    return [file.with_name(INDEX)] if file.suffix == ".md" else list(regular_files(file.with_suffix("")))


def unread_file(sentence: str) -> LeftFile:
    """Return what a search for sessions could not read. It may contain the subject, and no run can change that."""
    values = sentence.values if isinstance(sentence, Text) else {}
    path, why = values.get("path", sentence), values.get("reason", "")
    return LeftFile(path, Text("could not be read, and may contain it: {why}", why=why), in_scope=False)


def as_json(report: ForgetReport) -> dict[str, Any]:
    def places(found: list[LeftFile]) -> list[dict[str, str]]:
        return [{"path": one.path, "why": one.why} for one in found]

    done: list[dict[str, Any]] = msgspec.to_builtins(report.done)
    return {
        "removed": done,
        "counts": report.counts(),
        "skipped": places(report.skipped),
        "left": places(report.left),
        "unfinished": report.unfinished,
        "scope": report.scope or None,
        "outside": report.outside,
    }
