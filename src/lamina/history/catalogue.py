"""The index of all sessions and memories: one SQLite file in the home's cache, with the figures and the texts of each file.

Owns that file. Invariants: it says nothing that the indexed files do not say, so it can be removed at any time. An appended file
costs its appended bytes, a file that was rewritten or is gone loses its old entries first. A line counts once it is complete.
Files are indexed in transactions of bounded size, so a crash costs at most one of them, and two processes share the work.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from ..core.errors import DiskError
from ..disk.database import DAMAGE, open_database, remove_database
from ..disk.regular_file import FileStamp, open_regular
from ..disk.transcripts.jsonl import MAX_LINE, Health, decode_object, whole_objects
from ..language.terms import unstemmed
from . import claude_code, codex, pi
from .memories import scan_memory
from .places import Origin, SourceFile, note_unread
from .rollout_lines import find_bases
from .scan import Scan, ScannedTurn

Kind: TypeAlias = Literal["session", "memory"]
# Called between files with how many are done, of how many. It may raise to stop the work.
Tell: TypeAlias = Callable[[int, int], None]

FILE_NAME = "sessions.sqlite"
# Increase this when the tables, the scan or the prices change: the file is made anew.
VERSION = 12
# Bytes of sessions per transaction: about a second of work, in which another process waits. The first ones are small, so that a view of
# a home that is read for the first time has something to show.
BATCH_BYTES = 64 << 20
FIRST_BYTES = 4 << 20
PAUSE_BYTES = 1 << 16
PAUSE_TEXTS = 50
PAUSE_CHARS = 1 << 15
PAUSE_ROWS = 500
# So few rows are read one by one.
FEW = 100
# The bytes before the offset show whether a file was appended to or written anew.
TAIL_BYTES = 256
# Paths need not be text, and times and inodes may not fit into SQLite's integers. The day is a column of the word index, because
# questions name days.
SCHEMA = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path BLOB UNIQUE NOT NULL, kind TEXT NOT NULL, origin TEXT NOT NULL, size INTEGER NOT NULL,
    mtime_ns TEXT NOT NULL, inode TEXT NOT NULL, offset INTEGER NOT NULL, tail BLOB NOT NULL, state BLOB NOT NULL,
    figures BLOB NOT NULL
);
CREATE TABLE texts (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL, speaker TEXT NOT NULL,
    time TEXT NOT NULL, text TEXT NOT NULL, head TEXT NOT NULL
);
CREATE UNIQUE INDEX places ON texts (file, place);
CREATE TABLE notes (
    path BLOB NOT NULL, name TEXT NOT NULL, stamp TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (path, name)
);
CREATE VIRTUAL TABLE words USING fts5(text, head, day, content='', tokenize='porter unicode61')
"""
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


T = TypeVar("T")


def index_path(home: Path) -> Path:
    return home / "cache" / FILE_NAME


class IndexedFile(NamedTuple):
    """A row of the index."""

    id: int
    path: str
    kind: Kind
    origin: Origin
    stamp: FileStamp
    offset: int
    tail: bytes
    state: bytes
    figures: bytes

    @property
    def scan(self) -> Scan:
        return msgspec.json.decode(self.state, type=Scan)


class Catalogue:
    def __init__(self, home: Path | None) -> None:
        """`home` is Lamina's; without one the index lives in memory."""
        self.database = open_database(index_path(home) if home is not None else None, SCHEMA, VERSION)
        # Called before each file, after PAUSE_BYTES, PAUSE_TEXTS, PAUSE_CHARS and PAUSE_ROWS: a process with other work does it there.
        self.pause: Callable[[], None] = lambda: None

    @property
    def on_disk(self) -> bool:
        return bool(self.database.execute("PRAGMA database_list").fetchone()[2])

    def close(self) -> None:
        self.database.close()

    def rows(self, kind: Kind) -> list[IndexedFile]:
        return [*self._paused(_row(found) for found in self.database.execute("SELECT * FROM files WHERE kind = ?", (kind,)))]

    def _paused(self, items: Iterable[T]) -> Iterator[T]:
        for at, item in enumerate(items):
            if at % PAUSE_ROWS == 0:
                self.pause()
            yield item

    def _paused_texts(self, items: Iterable[T], text_of: Callable[[T], str]) -> Iterator[T]:
        chars = 0
        for at, item in enumerate(items, 1):
            yield item
            chars += len(text_of(item))
            if at % PAUSE_TEXTS == 0 or chars > PAUSE_CHARS:
                self.pause()
                chars = 0

    def follow(
        self, kind: Kind, files: Iterable[SourceFile], tell: Tell = lambda done, of: None, unread: list[str] | None = None
    ) -> list[IndexedFile]:
        """Bring the index up to date with these files, the newest first, and return their rows.

        `files` are all files of their kind: what else the index holds of that kind is gone. Files that cannot be read go to `unread`.
        """
        wanted, trouble = list(files), [] if unread is None else unread
        known = {row.path: row for row in self.rows(kind)}
        names = {file.path for file in wanted}
        gone = [row for path, row in known.items() if path not in names]
        stamps = {row.path: row.stamp for row in known.values()}
        new = (file for file in self._paused(wanted) if file.stamp != stamps.get(file.path))
        due = sorted(new, key=lambda file: -file.stamp.mtime_ns)
        if gone:
            with _Transaction(self.database):
                for row in gone:
                    self._remove(row.id)
        if due:
            tell(0, len(due))
        for start, batch in _batches(due):
            with _Transaction(self.database):
                for at, file in enumerate(batch, start + 1):
                    self.pause()
                    self._index(kind, file, trouble)
                    tell(at, len(due))
        if len(due) > FEW:
            return [row for row in self.rows(kind) if row.path in names]
        now: dict[str, IndexedFile | None] = {**known, **{file.path: self._row_of(file.path) for file in due}}
        return [one for path in names if (one := now[path]) is not None]

    def _row_of(self, path: str) -> IndexedFile | None:
        found = self.database.execute("SELECT * FROM files WHERE path = ?", (os.fsencode(path),)).fetchone()
        return _row(found) if found is not None else None

    def _index(self, kind: Kind, file: SourceFile, unread: list[str]) -> None:
        row = self._row_of(file.path)
        try:
            with open_regular(file.path, follow=False) as opened:
                if row is not None and (kind == "memory" or not _appended(opened, row, file)):
                    self._remove(row.id)
                    row = None
                self._add(kind, file, row, opened)
        except OSError as error:
            if row is not None:
                self._remove(row.id)  # unreadable or gone: nothing of it is shown
            if not isinstance(error, FileNotFoundError):
                note_unread(unread, file.path, error)

    def _add(self, kind: Kind, file: SourceFile, row: IndexedFile | None, opened: BinaryIO) -> None:
        scan = row.scan if row is not None else new_scan(file.origin, file.path, parent=file.parent, pause=self.pause)
        start = row.offset if row is not None else 0
        turns: list[ScannedTurn] = []
        end = (
            scan_memory(file, opened, scan, turns)
            if kind == "memory"
            else _scan(file.origin, opened, start, scan, turns, self.pause)
        )
        opened.seek(max(0, end - TAIL_BYTES))
        tail = blake2b(opened.read(min(end, TAIL_BYTES)), digest_size=16).digest()
        # As the listing had it: what was appended since then is found at the next look.
        stamp = (file.stamp.size, str(file.stamp.mtime_ns), str(file.stamp.inode))
        state, figures = msgspec.json.encode(scan), msgspec.json.encode(scan.figures())
        values = (os.fsencode(file.path), kind, file.origin, *stamp, end, tail, state, figures)
        if row is None:
            row_id = self.database.execute(f"INSERT INTO files VALUES (NULL{', ?' * 10})", values).lastrowid or 0
        else:
            row_id = row.id
            self.database.execute("DELETE FROM files WHERE id = ?", (row_id,))
            self.database.execute(f"INSERT INTO files VALUES (?{', ?' * 10})", (row_id, *values))
        self._add_texts(row_id, turns)

    def _add_texts(self, file: int, turns: list[ScannedTurn]) -> None:
        last = self.database.execute("SELECT max(place) FROM texts WHERE file = ?", (file,)).fetchone()[0]
        for place, turn in enumerate(self._paused_texts(turns, lambda turn: turn.text), (last or 0) + 1):
            given = (file, place, turn.number, turn.speaker, turn.time, turn.text, turn.before)
            text = self.database.execute("INSERT INTO texts VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)", given).lastrowid
            words = indexed_words(turn.text, turn.before, turn.time)
            self.database.execute("INSERT INTO words (rowid, text, head, day) VALUES (?, ?, ?, ?)", (text, *words))

    def note(self, path: str, name: str, stamp: str) -> bytes | None:
        """Return what was noted about this version of a file; None if nothing was."""
        asked = (os.fsencode(path), name, stamp)
        found = self.database.execute("SELECT data FROM notes WHERE path = ? AND name = ? AND stamp = ?", asked).fetchone()
        return found[0] if found is not None else None

    def keep_note(self, path: str, name: str, stamp: str, data: bytes) -> None:
        """Note what was found out about a version of a file. The note goes with the file's entry."""
        self.database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?)", (os.fsencode(path), name, stamp, data))

    def drop(self, paths: Collection[str]) -> None:
        """Remove sessions that were removed from disk, and their subagents, which lie in a directory of the session's name."""
        with _Transaction(self.database):
            for row in self.rows("session"):
                if row.path in paths or f"{Path(row.path).parent.parent}.jsonl" in paths:
                    self._remove(row.id)

    def _remove(self, file: int) -> None:
        held = self.database.execute("SELECT id, text, head, time FROM texts WHERE file = ?", (file,)).fetchall()
        for number, text, head, time in self._paused_texts(held, lambda row: row[1]):
            # The index keeps no copy of its words, so removing them takes the same words again.
            words = indexed_words(text, head, time)
            self.database.execute(
                "INSERT INTO words (words, rowid, text, head, day) VALUES ('delete', ?, ?, ?, ?)", (number, *words)
            )
        self.database.execute("DELETE FROM notes WHERE path = (SELECT path FROM files WHERE id = ?)", (file,))
        self.database.execute("DELETE FROM texts WHERE file = ?", (file,))
        self.database.execute("DELETE FROM files WHERE id = ?", (file,))


def with_catalogue(home: Path | None, work: Callable[[Catalogue], T]) -> T:
    """Return what `work` makes of the index. An index that fails, or was removed meanwhile, is made anew, and then held in memory.

    SQLite names a journal after its database: that of a removed one may be applied to the one that another process makes in its place.
    """
    for where in (home, home):
        catalogue = Catalogue(where)
        try:
            before = _inode_of(where)
            made = work(catalogue)
            if not catalogue.on_disk or before == _inode_of(where) != 0:
                return made
        except DAMAGE as error:
            waited = getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            if where is not None and not waited:
                with suppress(DiskError):
                    remove_database(index_path(where))
        finally:
            catalogue.close()
    catalogue = Catalogue(None)
    try:
        return work(catalogue)
    finally:
        catalogue.close()


def _inode_of(home: Path | None) -> int:
    """Return what tells the file of the index from one that took its place; 0 without a file."""
    try:
        return os.stat(index_path(home)).st_ino if home is not None else 0
    except OSError:
        return 0


class _Transaction:
    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._database.execute("COMMIT")
        elif self._database.in_transaction:  # some errors end the transaction themselves
            self._database.execute("ROLLBACK")


def _row(found: tuple[Any, ...]) -> IndexedFile:
    number, path, kind, origin, size, mtime_ns, inode, *rest = found
    return IndexedFile(number, os.fsdecode(path), kind, origin, FileStamp(int(inode), size, int(mtime_ns)), *rest)


def _batches(files: list[SourceFile]) -> Iterator[tuple[int, list[SourceFile]]]:
    """Yield the files in groups of bounded size, with the number of files before each group."""
    start, group, size, most = 0, list[SourceFile](), 0, FIRST_BYTES
    for file in files:
        group.append(file)
        size += file.stamp.size
        if size >= most:
            yield start, group
            start, group, size, most = start + len(group), [], 0, min(2 * most, BATCH_BYTES)
    if group:
        yield start, group


def _appended(opened: BinaryIO, row: IndexedFile, file: SourceFile) -> bool:
    """Whether the indexed part of the file is still what was indexed."""
    if file.stamp.inode != row.stamp.inode or opened.seek(0, os.SEEK_END) < row.offset:
        return False
    opened.seek(max(0, row.offset - TAIL_BYTES))
    return blake2b(opened.read(min(row.offset, TAIL_BYTES)), digest_size=16).digest() == row.tail


def new_scan(
    origin: Origin,
    path: str,
    *,
    parent: str = "",
    elsewhere: Collection[str] = (),
    pause: Callable[[], None] = lambda: None,
) -> Scan:
    """Return the state before the first line of a file. A fork of Codex goes on with the turns and the window of its base."""
    before = Scan()
    for part in find_bases(path).parts if origin == "codex" else ():
        with suppress(OSError), open_regular(part.path, follow=False) as opened:
            _scan(origin, opened, 0, before, [], pause, end=part.size)
    return Scan(
        parent=parent,
        elsewhere=set(elsewhere),
        number=before.number,
        last=before.last,
        model=before.model,
        window=before.window,
        trail=before.trail,
        held=before.held,
    )


def scan_whole(origin: Origin, path: str, *, parent: str = "", elsewhere: Collection[str] = ()) -> Scan:
    """Scan a whole file, without the answers with these digests, which are in another one. Raises OSError if the file is gone."""
    scan = new_scan(origin, path, parent=parent, elsewhere=elsewhere)
    with open_regular(path, follow=False) as opened:
        _scan(origin, opened, 0, scan, [], lambda: None)
    return scan


def scan_added(origin: Origin, path: str, older: Iterable[str]) -> Scan:
    """Scan what a file adds to these older ones. Raises OSError if one of them is gone."""
    return scan_whole(origin, path, elsewhere=set[str]().union(*(scan_whole(origin, file).answers for file in older)))


def _scan(
    origin: Origin,
    opened: BinaryIO,
    start: int,
    scan: Scan,
    turns: list[ScannedTurn],
    pause: Callable[[], None],
    end: int = sys.maxsize,
) -> int:
    """Scan the complete lines from `start` on, up to the one at `end`, and return where they end."""
    opened.seek(start)
    at, due = start, start + PAUSE_BYTES
    while at < end and (line := opened.readline(MAX_LINE + 1)):
        if len(line) > MAX_LINE and not line.endswith(b"\n"):
            scan.skipped += 1
            while not line.endswith(b"\n") and (piece := opened.readline(MAX_LINE)):
                at, line = at + len(line), piece
        elif not line.endswith(b"\n") and decode_object(line) is None:
            break  # being written, or cut off
        elif line.strip():
            scan_any(origin, line, scan, turns)
        at += len(line)
        if at > due:
            pause()
            due = at + PAUSE_BYTES
    return at


def scan_any(origin: Origin, line: bytes, scan: Scan, turns: list[ScannedTurn]) -> None:
    """Scan one line of a file in the format of `origin`."""
    if origin in ("lamina", "claude-code"):
        claude_code.scan_line(scan, turns, line)
        return
    rows = list(whole_objects(0, line, Health()))
    scan.skipped += not rows
    for row in rows:
        (codex if origin == "codex" else pi).scan_row(scan, turns, row)


def indexed_words(text: str, head: str, time: str) -> tuple[str, str, str]:
    """Return what the columns of the word index hold: texts in scripts without spaces as pairs of characters."""
    return _spaced(text), _spaced(head), day_words(time)


def _spaced(text: str) -> str:
    return text if text.isascii() else " ".join(unstemmed(text))


def day_words(time: str) -> str:
    """Return the day as words: `8 May 2023`."""
    year, month, day = time[:4], time[5:7], time[8:10]
    if not (year.isdigit() and month.isdigit() and day.isdigit() and 1 <= int(month) <= 12):
        return ""
    return f"{int(day)} {MONTHS[int(month) - 1]} {year}"
