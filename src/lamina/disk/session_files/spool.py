"""Spools: bounded files for a program's output, until it is decided whether to keep it.

Owns files named `b????????.txt`. Invariants: a spool is private (0600), never larger than its limit, and never replaces another
file. It is removed on close unless `keep` was called; a kept file belongs to the caller.

A crash at any line leaves at most one file, within the limit. Nothing is synced: a layer that needs to survive a power loss
writes the output again. Windows has no modes, so the file is as private as its directory.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ...core.errors import DiskError
from .. import crash_points as crash
from ..crash_points import point
from ..dirfd import CREATE_NEW, PRIVATE_FILE, Closable, Dir
from ..faults import AbsentIsFine, reporting

# Names are random; a try fails only if the name is taken.
_TRIES = 20


class Spool(Closable):
    """A bounded file for a program's output."""

    __slots__ = ("_fd", "_kept", "limit", "path", "size")

    def __init__(self, path: Path, fd: int, limit: int) -> None:
        self.path = path
        self.size = 0
        self.limit = limit
        self._fd = fd
        self._kept = False

    @classmethod
    def create(cls, directory: str | os.PathLike[str], *, limit: int) -> Spool:
        """Create an empty spool in `directory`, which is created (0700) if missing."""
        with Dir.open(directory, create=True) as where:
            for _ in range(_TRIES):
                name = f"b{os.urandom(4).hex()}.txt"
                with reporting(where.full(name)):
                    point("spool.create")
                    try:
                        fd = os.open(where.at(name), CREATE_NEW, PRIVATE_FILE, dir_fd=where.fd)
                    except FileExistsError:
                        continue
                return cls(Path(where.full(name)), fd, limit)
        raise DiskError(os.fspath(directory), "already contains every name that was tried", "empty it")

    def write(self, data: bytes) -> bool:
        """Append `data`. Returns False if only a part of it fit within the limit."""
        unwritten = memoryview(data)[: self.limit - self.size]
        fits = len(unwritten) == len(data)
        with reporting(self.path):
            while unwritten:
                written = crash.write("spool.write", self._fd, unwritten)
                if written <= 0:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                self.size += written
                unwritten = unwritten[written:]
        return fits

    def keep(self) -> Path:
        """Keep the file on close. The caller may then move or remove it."""
        self._kept = True
        return self.path

    def close(self) -> None:
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        os.close(fd)
        if not self._kept:
            with AbsentIsFine(), reporting(self.path):
                point("spool.unlink")
                os.unlink(self.path)
