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

from ..disk.regular_file import FileStamp, stamp_of
from ..language.text import pack, unpack
from .session_index import SessionIndex

if TYPE_CHECKING:
    from ..history.followed_session import FollowedSession, KeptWindow
    from ..history.window_series import Series

# Increase the number when what is kept changes.
NOTE = "window-7"
# Smaller files are read in less than a tenth of a second.
LEAST_BYTES = 1 << 20


class KeptWindows:
    def __init__(self, index: SessionIndex) -> None:
        self._index = index

    def load(self, path: str) -> KeptWindow | None:
        """Return the window of the file as it is now, if it was kept."""
        from ..history.followed_session import KeptWindow

        key = _note_key(stamp_of(path))
        data = self._index.peek(lambda index: index.note(path, NOTE, key)) if key else None
        if data is not None:
            with suppress(zlib.error, msgspec.MsgspecError):
                return msgspec.msgpack.decode(zlib.decompress(data), type=KeptWindow, dec_hook=unpack)
        return None

    def keep(self, followed: FollowedSession, series: Series) -> None:
        """Keep the window that was read, in the background."""
        window, path = followed.keep(series), os.fspath(followed.path)
        if window is not None and (key := _note_key(window.stamp)):
            data = zlib.compress(msgspec.msgpack.encode(window, enc_hook=pack), 1)
            self._index.later(lambda index: index.keep_note(path, NOTE, key, data))


def _note_key(stamp: FileStamp | None) -> str | None:
    """Return the key of the note about a file that is large enough to be kept."""
    return "-".join(map(str, stamp)) if stamp is not None and stamp.size >= LEAST_BYTES else None
