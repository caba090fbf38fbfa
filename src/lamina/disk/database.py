"""Opens SQLite files: our own, which only cache what other files say, so that losing one loses nothing; other programs' for reading.

Owns our file's mode (0600), its version and its replacement. A file that is damaged, of another version or not a database is
removed and made anew; where nothing can be written, the database lives in memory. A crash at any line leaves the last committed
transaction. Two processes may use a file at once: writers wait for each other.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from ..core.decoding import UNDECODABLE
from ..core.errors import DiskError
from .dirfd import OPEN_OR_CREATE, open_parent, open_plain
from .faults import reporting
from .files import remove

# Seconds that a writer waits for another process: the longest transaction copies one long session.
WAIT = 30.0
# Files that SQLite puts next to a database.
SIDE_FILES = ("-journal", "-wal", "-shm")
# What reading a damaged file can raise: SQLite may fail, quote bytes that are no text, or return values of another type.
DAMAGE = (sqlite3.Error, *UNDECODABLE, ValueError, TypeError)


def open_database(path: Path | None, schema: str, version: int) -> sqlite3.Connection:
    """Open the database at `path` with the tables of `schema`; in memory without a path, or if the file cannot be written."""
    if path is not None:
        for _ in range(2):
            try:
                # SQLite creates files with the umask's mode, and its side files get the mode of the database.
                with open_parent(path, create=True) as (where, name), reporting(path):
                    fd = open_plain(where, name, OPEN_OR_CREATE)
                    new = not os.fstat(fd).st_size
                    os.close(fd)
                    if new:  # the journal of a database that was removed must not be applied to this one
                        for end in SIDE_FILES:
                            remove(Path(f"{path}{end}"))
                database = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
                return _prepared(database, schema, version)
            except (*DAMAGE, DiskError):
                with suppress(DiskError):
                    remove_database(path)
    return _prepared(sqlite3.connect(":memory:", isolation_level=None), schema, version)


def open_foreign(path: Path) -> sqlite3.Connection:
    """Open another program's database for reading. Without a write-ahead log no program is writing, and no file appears next to it."""
    options = "mode=ro" if os.path.exists(f"{path}-wal") else "mode=ro&immutable=1"
    database = sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True, timeout=WAIT, isolation_level=None)
    database.execute("PRAGMA query_only=ON")
    return database


def remove_database(path: Path) -> bool:
    """Remove a database and the files next to it; return whether there was one."""
    removed = [remove(Path(f"{path}{end}")) for end in ("", *SIDE_FILES)]
    return any(removed)


def is_database(path: Path) -> bool:
    """Whether a file is such a database or belongs to one."""
    name = path.name
    return any(name.endswith(f".sqlite{end}") for end in ("", *SIDE_FILES))


def _prepared(database: sqlite3.Connection, schema: str, version: int) -> sqlite3.Connection:
    try:
        # Removed texts are overwritten. A power loss may cost the file, which is made again. The journal file stays, empty: making and
        # removing it takes a fifth of a small transaction.
        database.executescript(
            "PRAGMA secure_delete=ON; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-16000;"
            "PRAGMA journal_mode=TRUNCATE;"
        )
        file_version = database.execute("PRAGMA user_version").fetchone()[0]
        if file_version == version:
            return database
        if file_version:
            raise sqlite3.DatabaseError(f"version {file_version}, not {version}")
        database.execute("BEGIN IMMEDIATE")
        with closing(database.cursor()) as cursor:
            for statement in filter(str.strip, schema.split(";")):
                cursor.execute(statement)
        database.execute(f"PRAGMA user_version={version}")
        database.execute("COMMIT")
        return database
    except BaseException:
        database.close()
        raise
