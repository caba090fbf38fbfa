"""What the model has read of which file: the ground on which Edit and Write stand (X8), and what compaction brings back (C4).

Owns the map from real path to ReadRange. Invariant: an entry says what a Read, Write or Edit of this conversation put in front of the
model, never what merely lies on the disk. Files are compared by their content: two changes within one tick of the
file system's clock look alike, and a file that was only touched has not changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import msgspec

from ..core.blocks import DIGEST_BYTES

# The newest files that are remembered; a model that has read more can read the oldest again.
MAX_FILES = 1_000
# Hashing goes at about 1 GB a second: up to this size it is not felt.
MAX_DIGESTED = 64 << 20


class ReadRange(msgspec.Struct, frozen=True):
    """What the model has read of one file. `digest` is of the whole file, empty when it is too large to hash."""

    digest: bytes
    offset: int = 0  # the first line shown, from 1; 0: from the start
    limit: int | None = None
    media_type: str = ""  # of an image; empty for text


class ReadFile(msgspec.Struct, frozen=True):
    path: str
    seen: ReadRange


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

    __slots__ = ("_files", "_lock")

    def __init__(self, files: Mapping[str, ReadRange] | None = None) -> None:
        self._files = dict(files or {})
        self._lock = Lock()

    def clone(self) -> ReadState:
        """For a fork: it inherits what was read and keeps its own account from there on."""
        with self._lock:
            return ReadState(self._files)

    def note(self, path: str | os.PathLike[str], seen: ReadRange) -> None:
        with self._lock:
            # Taken out and put in again: the map stays in the order of reading, so the first entry is the oldest.
            self._files.pop(key := _key(path), None)
            self._files[key] = seen
            if len(self._files) > MAX_FILES:
                del self._files[next(iter(self._files))]

    def get(self, path: str | os.PathLike[str]) -> ReadRange | None:
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
            return f"{Path(path)} changed since it was read, by the person or another program: Read it again, then try again."
        return None
