"""The search index of a large memory directory: a SQLite file next to the journal, which only caches what the topic files say.

It finds memories by name and by word without reading the files. A small directory has none, because reading it all takes less
time. The index counts as current while the times of its directories are the recorded ones and the last comparison with all
files is recent. Our own saves update it, so only changes by other programs cost a comparison. A program that changes a file in
place leaves its directory's time alone: that change is found by the next comparison, which takes a hundredth of the time.

Invariants: an index that is missing, damaged or of another version is made anew, and nothing is lost. Two processes may use
it at once: each compares it with the files inside a transaction. A crash leaves the last committed state.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from ...core.errors import DiskError
from ...disk.database import open_database, remove_database
from ...disk.trees.rootdir import RootDir
from ...language.terms import normal, searchable
from .topic import fold_name, name_key
from .topic_files import INDEX_FILE, TopicHeader

# A comparison with all files may take one part in this many of the time.
SHARE_OF_TIME = 100
# A writer compares this many times less often: it needs names and files, and only a name changed in place escapes it.
LESS_FOR_NAMES = 100
# Postings read for a question: the rarest words' first. Commoner words then only order what was found.
MOST_POSTINGS = 20_000
# File systems count the times of directories in ticks of up to 10 ms. UNKNOWN is the time of no directory.
TICK_NS = 20_000_000
UNKNOWN = -1
# Texts read at once while the index is made.
BATCH = 500
_VERSION = 3
_SCHEMA = """
CREATE TABLE topics (id INTEGER PRIMARY KEY, file TEXT UNIQUE, key TEXT, folded TEXT, header BLOB, about INTEGER, body INTEGER);
CREATE INDEX topics_key ON topics (key);
CREATE INDEX topics_folded ON topics (folded);
CREATE VIRTUAL TABLE words USING fts5(name, about, body, tokenize='ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row);
CREATE TABLE state (
    id INTEGER PRIMARY KEY, topics INTEGER, about INTEGER, body INTEGER, changes INTEGER, directories BLOB, compared REAL, seconds REAL
);
INSERT INTO state VALUES (1, 0, 0, 0, abs(random() / 4096), NULL, 0, 0)
"""
# A name, a description and a body.
Fields = tuple[str, str, str]


class Candidate(NamedTuple):
    """A memory with words of a question: its terms by field, and the lengths of description and body in characters."""

    header: TopicHeader
    terms: Fields
    about: int
    body: int


class Candidates(NamedTuple):
    """Candidates for a question. `having` counts the memories with each term; the lengths are averages over all memories."""

    found: list[Candidate]
    having: Mapping[str, int]
    total: int
    about: float
    body: float


class IndexState(NamedTuple):
    """The state of an index. `changes` grows by one with every memory entered or removed, from a random number on, so two
    indexes are never in the same state. `last` is the highest id, which a removal makes free again."""

    changes: int
    last: int | None


Bodies = Callable[[Sequence[TopicHeader]], Mapping[str, str]]


class SearchIndex:
    """Open it with `SearchIndex.open`. Not thread-safe. Every method may raise one of DAMAGE for a damaged file."""

    __slots__ = ("_database", "_grown", "_path", "inode")

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self._path = path
        self._database = database
        self.inode = path.stat().st_ino
        self._grown = (0, 0, 0, 0)  # by how much the change under way changes the totals: topics, lengths of their parts, changes

    @classmethod
    def open(cls, root: RootDir) -> SearchIndex | None:
        """Open the index of a directory, or make an empty one; None if it cannot be stored there."""
        path = Path(root.path) / INDEX_FILE
        if root.shared:  # the index of a team's directory would belong to one of its users
            return None
        try:
            database = open_database(path, _SCHEMA, _VERSION)
        except sqlite3.Error:  # without FTS5
            return None
        try:
            return cls(path, database)
        except OSError:  # the database is in memory, since the directory cannot be written
            database.close()
            return None

    def close(self) -> None:
        self._database.close()

    def remove(self) -> None:
        """Remove the file, so that the next search makes it anew."""
        self._database.close()
        with suppress(DiskError):
            remove_database(self._path)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the index in one transaction."""
        self._grown = (0, 0, 0, 0)
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._database.in_transaction:  # some errors end the transaction themselves
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    # Freshness

    def is_current(self, now: float, *, for_names: bool = False) -> bool:
        directories, compared, seconds = self._database.execute("SELECT directories, compared, seconds FROM state").fetchone()
        if directories is None or not 0 <= now - compared < SHARE_OF_TIME * seconds * (LESS_FOR_NAMES if for_names else 1):
            return False
        times = msgspec.msgpack.decode(directories, type=dict[str, int])
        return times == self._times(times)

    def _times(self, directories: Iterable[str]) -> dict[str, int]:
        times: dict[str, int] = {}
        for name in directories:
            with suppress(OSError):
                times[name] = os.stat(self._path.parent.parent / name, follow_symlinks=False).st_mtime_ns
        return times

    def compare(self, headers: Callable[[], list[TopicHeader]], bodies: Bodies, now: float) -> list[TopicHeader]:
        """Bring the index up to date with all files, and return their headers."""
        began = time.perf_counter()
        with self._changing():
            rows = {
                file: (number, header) for number, file, header in self._database.execute("SELECT id, file, header FROM topics")
            }
            # Before the files are listed: one that comes later changes the time. What changed just now may change again within the same
            # tick of the file system, and a new directory had no time before: both are compared once more.
            settled = time.time_ns() - TICK_NS
            times = self._times({"", *map(os.path.dirname, rows)})
            topics = headers()
            directories = ("", *(os.path.dirname(header.file) for header in topics))
            times = {name: mtime if (mtime := times.get(name, UNKNOWN)) < settled else UNKNOWN for name in directories}
            seconds = time.perf_counter() - began
            current = {header.file: msgspec.msgpack.encode(header) for header in topics if is_text(header.file)}
            changed = [
                header
                for header in topics
                if header.file in current and rows.get(header.file, (0, b""))[1] != current[header.file]
            ]
            gone = [number for file, (number, header) in rows.items() if current.get(file) != header]
            self._drop(gone)
            for start in range(0, len(changed), BATCH):
                part = changed[start : start + BATCH]
                self._add(part, bodies(part))
            self._note(times)
            self._database.execute("UPDATE state SET compared = ?, seconds = ?", (now, seconds))
        return topics

    def update(self, files: Collection[str], headers: Sequence[TopicHeader], bodies: Mapping[str, str]) -> None:
        """Enter our own change of these files to an index that was current before it. `headers` and `bodies` are those that exist
        now."""
        with self._changing():
            places = ",".join("?" * len(files))
            self._drop([row[0] for row in self._database.execute(f"SELECT id FROM topics WHERE file IN ({places})", [*files])])
            self._add(headers, bodies)
            [(directories,)] = self._database.execute("SELECT directories FROM state")
            names = {*msgspec.msgpack.decode(directories, type=dict[str, int]), *map(os.path.dirname, files)}
            self._note(self._times(names))

    def _note(self, times: Mapping[str, int]) -> None:
        """Write the times of the directories, and what was dropped and added."""
        self._database.execute(
            "UPDATE state SET directories = ?, topics = topics + ?, about = about + ?, body = body + ?, changes = changes + ?",
            (msgspec.msgpack.encode(times), *self._grown),
        )

    def _grow(self, topics: int, about: int, body: int) -> None:
        """Count topics that were added, or dropped if the numbers are negative, until they are noted."""
        was = self._grown
        self._grown = (was[0] + topics, was[1] + about, was[2] + body, was[3] + abs(topics))

    def _drop(self, numbers: Sequence[int]) -> None:
        rows = [(number,) for number in numbers]
        for number in rows:
            about, body = self._database.execute("SELECT about, body FROM topics WHERE id = ?", number).fetchone()
            self._grow(-1, -about, -body)
        self._database.executemany("DELETE FROM words WHERE rowid = ?", rows)
        self._database.executemany("DELETE FROM topics WHERE id = ?", rows)

    def _add(self, headers: Iterable[TopicHeader], bodies: Mapping[str, str]) -> None:
        for header in headers:
            fields = (header.name, header.description, bodies.get(header.file, ""))
            about, body = (len(normal(field)) + 1 for field in fields[1:])
            row = (header.file, name_key(header.name), fold_name(header.file), msgspec.msgpack.encode(header), about, body)
            number = self._database.execute("INSERT INTO topics VALUES (NULL, ?, ?, ?, ?, ?, ?)", row).lastrowid
            terms = (" ".join(searchable(field)) for field in fields)
            self._database.execute("INSERT INTO words (rowid, name, about, body) VALUES (?, ?, ?, ?)", (number, *terms))
            self._grow(1, about, body)

    # Reading

    def total(self) -> int:
        return int(self._database.execute("SELECT topics FROM state").fetchone()[0])

    def state(self) -> IndexState:
        return IndexState(*self._database.execute("SELECT changes, (SELECT max(id) FROM topics) FROM state").fetchone())

    def headers(self, first: int = 0) -> list[TopicHeader]:
        """Return the memories in the order they were entered, from the one with this id on."""
        decode = msgspec.msgpack.Decoder(TopicHeader).decode
        rows = self._database.execute("SELECT header FROM topics WHERE id >= ? ORDER BY id", (first,))
        return [decode(data) for (data,) in rows]

    def file_named(self, key: str) -> str | None:
        """Return the first file of the memories whose name has this key."""
        file = self._database.execute("SELECT min(file) FROM topics WHERE key = ?", (key,)).fetchone()[0]
        return None if file is None else str(file)

    def has_file(self, file: str) -> bool:
        """Tell whether there is a file with this name in any spelling."""
        return self._database.execute("SELECT 1 FROM topics WHERE folded = ?", (fold_name(file),)).fetchone() is not None

    def candidates(self, wanted: Sequence[str], most: int, weights: tuple[float, float, float]) -> Candidates:
        """Return the memories with the rarest of the wanted terms, the most promising first."""
        having = {term: self._having(term) for term in wanted}
        [(total, about, body)] = self._database.execute("SELECT topics, about, body FROM state")
        # The rarest term, and further ones while their memories stay within the limit.
        rarest, postings = list[str](), 0
        for count, term in sorted((count, term) for term, count in having.items() if count):
            postings += count
            if rarest and postings > MOST_POSTINGS:
                break
            rarest.append(term)
        return Candidates(self._matching(rarest, most, weights), having, total, about / max(1, total), body / max(1, total))

    def _having(self, term: str) -> int:
        row = self._database.execute("SELECT doc FROM vocabulary WHERE term = ?", (term,)).fetchone()
        return 0 if row is None else int(row[0])

    def _matching(self, terms: Sequence[str], most: int, weights: tuple[float, float, float]) -> list[Candidate]:
        if not terms or most <= 0:
            return []
        match, rank = " OR ".join(f'"{term}"' for term in terms), "bm25({}, {}, {})".format(*weights)
        rows = self._database.execute(
            "SELECT rowid, name, about, body FROM words WHERE words MATCH ? AND rank MATCH ? ORDER BY rank LIMIT ?",
            (match, rank, most),
        ).fetchall()
        places = ",".join("?" * len(rows))
        topics = {
            number: columns
            for number, *columns in self._database.execute(
                f"SELECT id, header, about, body FROM topics WHERE id IN ({places})", [row[0] for row in rows]
            )
        }
        decode = msgspec.msgpack.Decoder(TopicHeader).decode
        return [Candidate(decode(topics[row[0]][0]), row[1:], *topics[row[0]][1:]) for row in rows if row[0] in topics]


def is_text(file: str) -> bool:
    try:
        file.encode()
    except UnicodeEncodeError:
        return False
    return True
