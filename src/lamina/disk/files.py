"""Two of the three ways to write: replace a whole file, and update one that other processes may update too (the third is
`append`).

Owns temporary files and guards. Invariants: a reader sees the old content or the new one, never a part and never an absent file.
If several processes update one file, no change is lost. Files have mode 0600.

A crash at any line leaves the old content or the new one, and at most a temporary file, which `sweep_temps` removes at the next
start. With durability "full", acknowledged content survives a power loss too; with "process", it survives the end of the process.
An error before the rename leaves the old content. An error after it (the directory could not be synced) leaves the new content
and is reported, because it may not survive a power loss.

On Windows, a directory cannot be synced, and a file that another program is reading is replaced once it is closed, within a
second.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ..core.errors import DiskError
from ..language.text import Text
from .crash_points import point
from .dirfd import READ, Dir, open_parent, open_plain
from .faults import AbsentIsFine, reporting
from .locks.lock_file import guard_at
from .temp_files import Durability, is_temp, staged_at

# The lock of a dream. Its guard and its record have this name plus a suffix; see `dream_lock`.
DREAM_LOCK = ".consolidate-lock"
# Files that we rewrite as a whole are small; a larger one is not ours.
MAX_UPDATE = 64 << 20
_READ_CHUNK = 1 << 20


def replace(path: str | os.PathLike[str], data: bytes, *, durability: Durability = "full") -> None:
    """Write `data` to `path`, whole or not at all. Missing directories are created with mode 0700."""
    with open_parent(path, create=True) as (where, name):
        replace_at(where, name, data, durability=durability)


def replace_at(where: Dir, name: str, data: bytes, *, durability: Durability = "full", shared: bool = False) -> None:
    with staged_at(where, name, data, durability=durability, shared=shared) as temp:
        temp.publish()


def update(path: str | os.PathLike[str], fn: Callable[[bytes | None], bytes | None], *, durability: Durability = "full") -> bool:
    """Replace the content of `path` by `fn(content)` under a lock. Returns True if something was written.

    `fn` gets None for a missing file and returns None for "no change". It runs inside the lock, so it must not call a model, wait
    for the user, or update the same file again. Raises LockHeld if other processes keep the lock busy, and LockUnsupported on
    file systems without locks.
    """
    with open_parent(path, create=True) as (where, name), guard_at(where, guard_name(name)):
        old = read_at(where, name, MAX_UPDATE + 1)
        if old is not None and len(old) > MAX_UPDATE:
            raise DiskError(
                where.full(name), Text("is larger than {limit} MiB", limit=MAX_UPDATE >> 20), "move it away, it is not Lamina's"
            )
        new = fn(old)
        if new is None or new == old:
            return False
        replace_at(where, name, new, durability=durability)
        return True


def guard_name(name: str) -> str:
    """Return the name of the lock file that guards `name`. It is never removed; see `locks.lock_file`."""
    return f".{name}.lock"


def read(path: str | os.PathLike[str], max_bytes: int) -> bytes | None:
    """Return the first `max_bytes` of a plain file, or None if it does not exist."""
    with AbsentIsFine(), open_parent(path) as (where, name):
        return read_at(where, name, max_bytes)
    return None


def read_at(where: Dir, name: str, max_bytes: int, *, shared: bool = False) -> bytes | None:
    # `reading` would be slower, and a scan reads ten thousand files.
    with reporting(where.full(name)):
        try:
            fd = open_plain(where, name, READ, shared=shared)
        except FileNotFoundError:
            return None
        try:
            return read_head(fd, max_bytes)
        finally:
            os.close(fd)


def read_head(fd: int, max_bytes: int) -> bytes:
    parts = list[bytes]()
    while max_bytes > 0 and (part := os.read(fd, min(max_bytes, _READ_CHUNK))):
        parts.append(part)
        max_bytes -= len(part)
    return b"".join(parts)


def remove(path: str | os.PathLike[str], *, durability: Durability = "full") -> bool:
    """Unlink `path`; returns False if it did not exist. Never use this for a lock file."""
    with AbsentIsFine(), open_parent(path) as (where, name):
        return remove_at(where, name, durability=durability)
    return False


def remove_at(where: Dir, name: str, *, durability: Durability = "full") -> bool:
    with reporting(where.full(name)):
        try:
            point("remove.unlink")
            os.unlink(where.at(name), dir_fd=where.fd)
        except FileNotFoundError:
            return False
        if durability == "full":
            where.sync()
        return True


def is_bookkeeping(name: str) -> bool:
    """Return whether this is a temporary file, a guard or the lock of a dream. Listings, scans and the history skip these."""
    return is_temp(name) or (name.startswith(".") and name.endswith(".lock")) or name.startswith(DREAM_LOCK)
