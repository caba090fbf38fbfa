"""claude-mem's database, `~/.claude-mem/claude-mem.db`: observations that it made of the sessions of all projects.

An import takes the observations of one project: decisions, discoveries and what was saved by hand. It leaves out and counts records of
changes to the code, which the repository's history has, and accounts of single sessions. The database is opened for reading only.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ...core.errors import InputError
from ...disk.database import DAMAGE, open_foreign
from ...disk.faults import AbsentIsFine, reporting
from ...disk.regular_file import open_regular
from ...language.wording import counted
from ...memory.store.topic import short_digest
from .basic_memory import DATABASE
from .portable_topic import Imported, PortableTopic, document, format_date, kind_of, make_description, make_name, parse_date
from .project_choice import ProjectChoice

FILE = "claude-mem.db"
# Types of observations that say what was changed.
CHANGES = ("bugfix", "feature", "refactor", "change")
# One more than an import accepts, so that it is refused and not cut.
MOST_ROWS = 10_001
# Far more than claude-mem writes into a field, and no more than a memory may have.
MOST_CHARS = 256 << 10
# What other sources may have; read into memory at once.
MOST_TEXT = 64 << 20
_TEXTS = ("type", "title", "subtitle", "narrative", "text", "facts", "concepts", "files_read", "files_modified")
_SQLITE = b"SQLite format 3\0"


class ClaudeMemRows(NamedTuple):
    """The observations of one project that are memories, and the numbers of those that are not."""

    observations: tuple[dict[str, Any], ...]
    changes: int = 0
    summaries: int = 0


def database_at(real: Path) -> Path | None:
    """Return the database if the path is one of claude-mem, or the directory of one."""
    path = real / FILE if real.is_dir() else real
    with AbsentIsFine(), reporting(path), open_regular(path) as file:
        return path if file.read(len(_SQLITE)) == _SQLITE and path.name != DATABASE else None
    return None


def read_rows(path: Path, choice: ProjectChoice) -> ClaudeMemRows:
    """Read the observations of the chosen project; InputError if the database is not claude-mem's."""
    name = os.fspath(path)
    try:
        with reporting(name), closing(open_foreign(path)) as database:
            columns = {row[1] for row in database.execute("PRAGMA table_info(observations)")}
            if not {"project", "type", "title"} <= columns:
                raise InputError(name, "is a database of another program", "pass the file that contains the memories")
            names = [row[0] for row in database.execute("SELECT DISTINCT project FROM observations WHERE project <> ''")]
            project = choice.among([name for name in names if isinstance(name, str)], name)
            return _rows(database, columns, project)
    except DAMAGE as error:
        raise InputError(name, f"cannot be read as a database ({error})", "close claude-mem and try again") from None


def _rows(database: sqlite3.Connection, columns: set[str], project: str) -> ClaudeMemRows:
    marks = ", ".join("?" * len(CHANGES))
    texts = [f"substr({column}, 1, {MOST_CHARS})" if column in columns else "NULL" for column in _TEXTS]
    date = "created_at_epoch" if "created_at_epoch" in columns else "NULL"
    found = database.execute(
        f"SELECT id, {date}, {', '.join(texts)} FROM observations WHERE project = ? AND type NOT IN ({marks}) ORDER BY id LIMIT ?",
        (project, *CHANGES, MOST_ROWS),
    )
    rows, size = list[dict[str, Any]](), 0
    for row in found:
        rows.append(dict(zip(("id", "date", *_TEXTS), row, strict=True)))
        size += sum(len(value) for value in row if isinstance(value, str))
        if size > MOST_TEXT:
            raise InputError(project, f"has more than {MOST_TEXT >> 20} MB of observations", "remove some in claude-mem")
    changes = _count(database, f"observations WHERE project = ? AND type IN ({marks})", project, *CHANGES)
    has_summaries = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'session_summaries'").fetchone() is not None
    summaries = _count(database, "session_summaries WHERE project = ?", project) if has_summaries else 0
    return ClaudeMemRows(tuple(rows), changes, summaries)


def _count(database: sqlite3.Connection, of: str, *given: str) -> int:
    return int(database.execute(f"SELECT count(*) FROM {of}", given).fetchone()[0])


def read_claude_mem(rows: ClaudeMemRows) -> Imported:
    """Return the observations as memories."""
    topics = tuple(_topic(row) for row in rows.observations)
    changes = [f"skipped {counted(rows.changes, 'record')} of changes to the code ({', '.join(CHANGES)})"] if rows.changes else []
    summaries = [f"skipped {counted(rows.summaries, 'account')} of single sessions"] if rows.summaries else []
    return Imported(topics, (*changes, *summaries))


def _topic(row: Mapping[str, Any]) -> PortableTopic:
    texts = {name: value.strip() for name in ("title", "subtitle", "narrative", "text") if isinstance(value := row[name], str)}
    facts = "\n".join(f"- {fact}" for fact in _items(row["facts"]))
    told = "\n\n".join(filter(None, (texts.get("narrative") or texts.get("text", ""), facts)))
    body = told or texts.get("subtitle") or texts.get("title", "")
    files = list(dict.fromkeys((*_items(row["files_read"]), *_items(row["files_modified"]))))
    own = {"id": row["id"], "type": row["type"], "concepts": list(_items(row["concepts"])), "files": files}
    date = row["date"] / 1_000 if isinstance(row["date"], int) and row["date"] > 0 else None
    return PortableTopic(
        name=texts.get("title") or make_name(body) or f"claude-mem {short_digest(body)}",
        description=texts.get("subtitle") or make_description(body),
        type=kind_of(row["type"]),
        body=body,
        modified=parse_date(format_date(date)),
        fields={"claude-mem": {key: value for key, value in own.items() if value}},
    )


def _items(text: object) -> Iterator[str]:
    """Yield the texts of a JSON list, and nothing for any other value."""
    found = document(text, "", strict=False) if isinstance(text, str) else None
    yield from (item.strip() for item in found if isinstance(item, str) and item.strip()) if isinstance(found, list) else ()
