"""What the model has read of which file: the ground on which Edit and Write stand (X8), and what compaction brings back (C4).

Owns the map from real path to Seen. Invariant: an entry says what a Read, Write or Edit of this conversation put in front of the
model, never what merely lies on the disk. Files are compared by their content where they were read whole enough to know it: two
changes within one tick of the file system's clock look alike, and a file that was only touched has not changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import msgspec

from ..core.blocks import DIGEST_BYTES
from ..core.errors import DiskError
from ..disk.user_files import open_regular

# The newest files that are remembered; a model that has read more can read the oldest again.
MAX_FILES = 1_000
# Hashing goes at about 1 GB a second: up to this size it is not felt, beyond it size and time decide.
MAX_DIGESTED = 64 << 20
_CHUNK = 1 << 20


class Seen(msgspec.Struct, frozen=True):
    """What the model has read of one file. `digest` is of the whole file, empty when it is too large to hash."""

    mtime_ns: int
    size: int
    digest: bytes
    whole: bool
    order: int
    offset: int = 0  # the first line shown, from 1; 0: from the start
    limit: int | None = None
    media_type: str = ""  # of an image; empty for text


class ReadFile(msgspec.Struct, frozen=True):
    path: str
    seen: Seen


def _key(path: str | os.PathLike[str]) -> str:
    """The file itself, however it is named. While somebody swaps what leads to it, its name has to do."""
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.abspath(path)


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


class ReadState:
    """Safe to share between the threads that run the calls of one answer."""

    __slots__ = ("_files", "_lock", "_order")

    def __init__(self, files: Mapping[str, Seen] | None = None) -> None:
        self._files = dict(files or {})
        self._order = max((seen.order for seen in self._files.values()), default=0)
        self._lock = Lock()

    def clone(self) -> ReadState:
        """For a fork: it inherits what was read and keeps its own account from there on."""
        with self._lock:
            return ReadState(self._files)

    def note(
        self,
        path: str | os.PathLike[str],
        *,
        mtime_ns: int,
        size: int,
        digest: bytes,
        whole: bool,
        offset: int = 0,
        limit: int | None = None,
        media_type: str = "",
    ) -> None:
        with self._lock:
            self._order += 1
            # Taken out and put in again: the map stays in the order of reading, so the first entry is the oldest.
            self._files.pop(key := _key(path), None)
            self._files[key] = Seen(mtime_ns, size, digest, whole, self._order, offset, limit, media_type)
            if len(self._files) > MAX_FILES:
                del self._files[next(iter(self._files))]

    def get(self, path: str | os.PathLike[str]) -> Seen | None:
        with self._lock:
            return self._files.get(_key(path))

    def recent(self, count: int) -> list[ReadFile]:
        """The files read last, newest first."""
        with self._lock:
            newest = list(reversed(self._files.items()))[:count]
        return [ReadFile(path, seen) for path, seen in newest]

    def problem(self, path: str | os.PathLike[str], found: bytes) -> str | None:
        """Why a file with the content `found` may not be overwritten, as a sentence; None when it may."""
        seen = self.get(path)
        if seen is None:
            return f"{Path(path)} exists and has not been read in this conversation: Read it first, then try again."
        if seen.digest != digest(found):
            return changed(path)
        return None

    def check_unchanged(self, path: str | os.PathLike[str]) -> str | None:
        """As `problem`, for what is at `path` now."""
        seen = self.get(path)
        if seen is None:
            return f"{Path(path)} has not been read in this conversation: Read it first."
        try:
            fd = open_regular(path)
            if fd is None:
                return f"{Path(path)} was removed since it was read: make sure of what is there before going on."
            try:
                return None if _same(fd, seen) else changed(path)
            finally:
                os.close(fd)
        except (DiskError, OSError) as error:
            return f"{Path(path)} can't be compared with what was read ({error})."


def changed(path: str | os.PathLike[str]) -> str:
    return f"{Path(path)} changed since it was read, by the person or another program: Read it again, then try again."


def _same(fd: int, seen: Seen) -> bool:
    found = os.fstat(fd)
    if found.st_size != seen.size:
        return False
    if not seen.digest:
        return found.st_mtime_ns == seen.mtime_ns
    hashed = blake2b(digest_size=DIGEST_BYTES)
    while part := os.read(fd, _CHUNK):
        hashed.update(part)
    return hashed.digest() == seen.digest
