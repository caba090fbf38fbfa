"""Read state: which files, and which parts of them, the model has read. Edit and Write rely on it, and compaction restores
it.

It maps resolved paths to ReadRange. Invariant: an entry records what a Read, Write or Edit of this conversation showed the
model, never just what is on the disk. Files are compared by content: two changes within one tick of the file system's clock
look alike, and a file that was only touched has not changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import msgspec

from ..core.blocks import DIGEST_BYTES

# Only the newest files are remembered; a model that has read more can read the oldest again.
MAX_FILES = 1_000
# Hashing runs at about 1 GB a second, so it is not noticeable up to this size.
MAX_DIGESTED = 64 << 20


class ReadRange(msgspec.Struct, frozen=True):
    """The part of a file the model has read. `digest` covers the whole file and is empty if the file is too large to hash."""

    digest: bytes
    offset: int = 0  # the first line shown, from 1; 0 means from the start
    limit: int | None = None
    media_type: str = ""  # of an image; empty for text


class ReadFile(msgspec.Struct, frozen=True):
    path: str
    seen: ReadRange


def _key(path: str | os.PathLike[str]) -> str:
    """Return the resolved path, so that every name of a file gives the same key. If a link changes during the lookup, use
    the name."""
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.abspath(path)


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


class ReadState:
    """The files read in a conversation. Threads that run the calls of one answer can share it."""

    __slots__ = ("_files", "_lock")

    def __init__(self, files: Mapping[str, ReadRange] | None = None) -> None:
        self._files = dict(files or {})
        self._lock = Lock()

    def clone(self) -> ReadState:
        """Return a copy for a fork: it inherits the entries and tracks its own reads from there on."""
        with self._lock:
            return ReadState(self._files)

    def note(self, path: str | os.PathLike[str], seen: ReadRange) -> None:
        with self._lock:
            # Remove and insert again: the map stays in reading order, so the first entry is the oldest.
            self._files.pop(key := _key(path), None)
            self._files[key] = seen
            if len(self._files) > MAX_FILES:
                del self._files[next(iter(self._files))]

    def get(self, path: str | os.PathLike[str]) -> ReadRange | None:
        with self._lock:
            return self._files.get(_key(path))

    def recent(self, count: int) -> list[ReadFile]:
        """Return the files read last, newest first."""
        with self._lock:
            newest = list(reversed(self._files.items()))[:count]
        return [ReadFile(path, known_range) for path, known_range in newest]

    def problem(self, path: str | os.PathLike[str], content: bytes) -> str | None:
        """Return a sentence on why a file with the content `found` may not be overwritten, or None if it may."""
        known_range = self.get(path)
        if known_range is None:
            return f"{Path(path)} exists but has not been read in this conversation. Read it first, then try again."
        if known_range.digest != digest(content):
            return f"{Path(path)} was changed by the user or another program since it was read. Read it again, then try again."
        return None
