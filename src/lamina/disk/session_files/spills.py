"""Tool results stored as files: `tool-results/<tool_use_id>.txt` next to a session's transcript, `.json` for JSON.

Owns the files of that directory, except the spools that programs print into (`spool`), which it can take over. Invariants: a file
is private (0600), complete before it gets its name, and never changed or replaced afterwards; if a name is taken, the next result
gets a number. Results are written in pieces, so memory stays bounded however large they are.

A crash at any line leaves no file or the whole file, and at most one temporary file, which the next sweep removes. A deleted
directory is created again. Windows has no modes, so the files are as private as their directory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path

import msgspec

from ...core.errors import DiskError
from ..crash_points import point
from ..dirfd import READ, Dir, descend, open_parent, open_plain, reading
from ..faults import reporting
from ..paths.file_names import bad_name
from ..temp_files import Durability, staged_at, sweep_at

DIRECTORY = "tool-results"
ENDINGS = (".txt", ".json")

# No program gives one id to more results than this on purpose.
_MOST_OF_ONE_NAME = 1_000
# Longer ids are hashed, because the name must leave room for a number and an extension, and the path for its directories.
_LONGEST_ID = 100
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)
# Names of spools.
_SPOOL = re.compile(r"b[0-9a-f]{8}", re.ASCII)
# Long enough to be unique within a session, short enough to read.
_HASHED = 32


# A short name for a result's file, which a marker in the conversation repeats in every request.
SHORT = "result:"


def short_name(path: str) -> str:
    return SHORT + os.path.basename(path)


def named_by(short: str) -> str | None:
    """Return the file name in a short name, or None if it is not a valid one."""
    name = short.removeprefix(SHORT)
    return name if name != short and _PLAIN.fullmatch(name) and bad_name(name) is None else None


class ExistingResult(msgspec.Struct, frozen=True):
    """A result that was stored before."""

    path: str
    size: int


class WrittenResult(msgspec.Struct, frozen=True):
    path: Path
    size: int  # bytes
    sha256: str


def stem_of(tool_use_id: str) -> str:
    """Return the id if it is a valid file name on every system, else a hash of it."""
    plain = len(tool_use_id) <= _LONGEST_ID and _PLAIN.fullmatch(tool_use_id) and not _SPOOL.fullmatch(tool_use_id)
    if plain and bad_name(tool_use_id) is None:
        return tool_use_id
    return "id-" + sha256(tool_use_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASHED]


class Spills:
    """The open directory of a session's results. It is listed once for any number of writes."""

    def __init__(self, where: Dir) -> None:
        self._where = where
        self._sizes: dict[str, int | None] | None = None

    def there(self, tool_use_id: str) -> Iterator[ExistingResult]:
        """Yield the files of earlier results with this name, text first."""
        stem, names = stem_of(tool_use_id), self._known()
        for name in (stem + ending for ending in ENDINGS):
            if (size := names.get(name)) is not None:
                yield ExistingResult(self._where.full(name), size)

    def _known(self) -> dict[str, int | None]:
        """Return the names with the sizes of files. They are listed once, since only the lock's owner creates names here."""
        if self._sizes is None:
            self._sizes = {
                entry.name: entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else None
                for entry in self._where.entries()
            }
        return self._sizes

    def write(
        self,
        tool_use_id: str,
        parts: Iterable[bytes | memoryview],
        *,
        suffix: str = ".txt",
        durability: Durability = "process",
    ) -> WrittenResult:
        """Write the parts as one file. If it raises DiskError, nothing is left behind."""
        where = self._where
        name = _free(where, stem_of(tool_use_id), suffix, self._sizes)
        digest = sha256()

        def hashed() -> Iterator[bytes | memoryview]:
            for part in parts:
                digest.update(part)
                yield part

        with staged_at(where, name, hashed(), durability=durability, points="spill") as temp:
            size = os.fstat(temp.fd).st_size
            temp.publish()
        if self._sizes is not None:
            self._sizes[name] = size
        return WrittenResult(Path(where.full(name)), size, digest.hexdigest())


@contextmanager
def open_spills(session: str | os.PathLike[str]) -> Iterator[Spills]:
    """Open the directory of a session's results for writing."""
    with _results(session, create=True) as where:
        yield Spills(where)


def take_over(session: str | os.PathLike[str], tool_use_id: str, file: str | os.PathLike[str]) -> WrittenResult:
    """Rename a spool in the session's directory to a result's name, without copying it."""
    directory, old = os.path.split(os.path.abspath(file))
    with _results(session) as where:
        if directory != where.path or not _SPOOL.fullmatch(os.path.splitext(old)[0]):
            raise DiskError(os.fspath(file), f"is not an output file in {where.path}", "pass its text instead")
        name = _free(where, stem_of(tool_use_id), ".txt")
        with reading(where, old) as fd, open(fd, "rb", closefd=False) as spool:
            digest, size = file_digest(spool, "sha256").hexdigest(), os.fstat(fd).st_size
        with reporting(where.full(old)):
            point("spill.rename")
            os.rename(where.at(old), where.at(name), src_dir_fd=where.fd, dst_dir_fd=where.fd)
        return WrittenResult(Path(where.full(name)), size, digest)


def open_result(path: str | os.PathLike[str]) -> int:
    """Open a stored result; the caller closes the descriptor. Raises DiskError if it does not exist."""
    with open_parent(path) as (where, name), reporting(where.full(name)):
        return open_plain(where, name, READ)


def sweep_results(session: str | os.PathLike[str]) -> int:
    """Remove the temporary files of dead writers and return their number."""
    if not os.path.isdir(os.path.join(session, DIRECTORY)):
        return 0
    with _results(session) as where:
        return sweep_at(where)


def _results(session: str | os.PathLike[str], *, create: bool = False) -> Dir:
    """Open the directory of results. A link in its place is refused, because it could lead private data elsewhere."""
    return descend(Dir.open(session, create=create), [DIRECTORY], create=create)


def _free(where: Dir, stem: str, suffix: str, known: Container[str] | None = None) -> str:
    """Return a free file name. Only the owner of the session's lock creates names here, so it stays free.

    A stem is used once for both extensions, so `a.json` and `a-2.txt` are two results. `known` holds the taken names, if known.
    """
    for number in range(1, _MOST_OF_ONE_NAME + 1):
        numbered = stem if number == 1 else f"{stem}-{number}"
        names = (numbered + ending for ending in ENDINGS)
        if not any(name in known if known is not None else where.stat(name) is not None for name in names):
            return numbered + suffix
    raise DiskError(where.full(stem), f"already has {_MOST_OF_ONE_NAME:,} results", "give each call a unique id")
