"""Two of the three ways to write: replace a file as a whole, and update one that others may be updating too (append is `append`).

Owns temporary files and guards. Invariants: a reader sees the old content or the new one, never a part and never nothing; of any
number of processes that update one file, none loses another's change; files are 0600.

A crash at any line leaves the old content or the new one under the name, and at most a temporary file beside it, which
`sweep_temps` removes at the next start. With durability "full" what was acknowledged survives a power loss too; with "process" it
survives the end of the process. An error before the rename leaves the old content; an error after it (the directory could not be
synced) leaves the new content and is reported, because it may not survive a power loss.

On Windows a directory cannot be synced, and a file that somebody is reading is replaced as soon as they let go, within a second.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ..core.errors import DiskError
from .append import Appender
from .crash_points import point
from .dirfd import READ, Dir, open_plain
from .faults import AbsentIsFine, reporting
from .lock import GUARD_TIMEOUT, guard_at
from .temp_files import Durability, Temp, is_temp, staged, staged_at, sweep_temps

__all__ = [
    "Appender",
    "Durability",
    "Temp",
    "is_bookkeeping",
    "is_temp",
    "read",
    "remove",
    "replace",
    "staged",
    "sweep_temps",
    "update",
]

# The lock of a dream; its guard and its record have longer names. See `consolidation`.
DREAM_LOCK = ".consolidate-lock"
# What is rewritten as a whole is small by nature; a file beyond this is not one of ours.
MAX_UPDATE = 64 << 20
_READ_CHUNK = 1 << 20


def replace(path: str | os.PathLike[str], data: bytes, *, durability: Durability = "full") -> None:
    """Puts `data` at `path`, whole or not at all. Missing directories are made with mode 0700."""
    directory, name = os.path.split(os.path.abspath(path))
    with Dir.open(directory, create=True) as where:
        replace_at(where, name, data, durability=durability)


def replace_at(where: Dir, name: str, data: bytes, *, durability: Durability = "full", shared: bool = False) -> None:
    with staged_at(where, name, data, durability=durability, shared=shared) as temp:
        temp.publish()


def update(
    path: str | os.PathLike[str],
    fn: Callable[[bytes | None], bytes | None],
    *,
    timeout: float = GUARD_TIMEOUT,
    durability: Durability = "full",
) -> bool:
    """Replaces what is at `path` by `fn` of it, with nobody else in between; True when something was written.

    `fn` gets None for a missing file and returns None for "no change". It runs inside the lock: it must not call a model, wait
    for a person, or update the same file again. LockHeld after `timeout` seconds, LockUnsupported where there are no locks.
    """
    directory, name = os.path.split(os.path.abspath(path))
    with Dir.open(directory, create=True) as where:
        return update_at(where, name, fn, timeout=timeout, durability=durability)


def update_at(
    where: Dir,
    name: str,
    fn: Callable[[bytes | None], bytes | None],
    *,
    timeout: float = GUARD_TIMEOUT,
    durability: Durability = "full",
    shared: bool = False,
) -> bool:
    with guard_at(where, guard_name(name), timeout=timeout):
        old = read_at(where, name, MAX_UPDATE + 1, shared=shared)
        if old is not None and len(old) > MAX_UPDATE:
            raise DiskError(where.full(name), f"is larger than {MAX_UPDATE >> 20} MiB", "move it away, it is not one of ours")
        new = fn(old)
        if new is None or new == old:
            return False
        replace_at(where, name, new, durability=durability, shared=shared)
        return True


def guard_name(name: str) -> str:
    """The lock file that guards `name`, beside it. It stays for good: see `lock`."""
    return f".{name}.lock"


def read(path: str | os.PathLike[str], max_bytes: int) -> bytes | None:
    """The first `max_bytes` of a plain file; None when there is none."""
    directory, name = os.path.split(os.path.abspath(path))
    with AbsentIsFine(), Dir.open(directory) as where:
        return read_at(where, name, max_bytes)
    return None


def read_at(where: Dir, name: str, max_bytes: int, *, shared: bool = False) -> bytes | None:
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
    """Unlinks `path`; False when there was nothing. Never for a lock file."""
    directory, name = os.path.split(os.path.abspath(path))
    with AbsentIsFine(), Dir.open(directory) as where:
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
    """A temporary file, a guard or the lock of a dream: listings, scans and the memory's repository leave these out."""
    return is_temp(name) or (name.startswith(".") and name.endswith(".lock")) or name.startswith(DREAM_LOCK)
