"""Windows over time of large sessions, kept in the index of sessions, so that only the first reading of a file costs its bytes.

Invariants: a kept window is one of a version of its file (size and inode here, size and time in the index), goes with the file's entry in
the index, and is never needed: what is missing or cannot be decoded is read again. A read-only page keeps none.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from .session_index import SessionIndex

if TYPE_CHECKING:
    from ..history.followed_session import FollowedSession, KeptWindow
    from ..history.window_series import Series

# Increase the number when what is kept changes.
NOTE = "window-5"
# Smaller files are read in less than a tenth of a second.
LEAST_BYTES = 1 << 20


class KeptWindows:
    def __init__(self, index: SessionIndex) -> None:
        self._index = index

    def load(self, path: str) -> KeptWindow | None:
        """Return the window of the file as it is now, if it was kept."""
        from ..history.followed_session import KeptWindow

        stamp = _stamp(path)
        held = self._index.peek(lambda index: index.note(path, NOTE, stamp)) if stamp else None
        if held is not None:
            with suppress(zlib.error, msgspec.MsgspecError):
                return msgspec.msgpack.decode(zlib.decompress(held), type=KeptWindow)
        return None

    def keep(self, followed: FollowedSession, series: Series) -> None:
        """Keep the window that was read, in the background."""
        window, path = followed.keep(series), os.fspath(followed.path)
        stamp = _stamp(path)
        # A file that has grown meanwhile is read again anyway.
        if window is not None and stamp and stamp.startswith(f"{window.size}-"):
            made = zlib.compress(msgspec.msgpack.encode(window), 1)
            self._index.later(lambda index: index.keep_note(path, NOTE, stamp, made))


def _stamp(path: str) -> str | None:
    """Return the version of a file that is large enough to be kept."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return f"{found.st_size}-{found.st_mtime_ns}-{found.st_ino}" if found.st_size >= LEAST_BYTES else None
