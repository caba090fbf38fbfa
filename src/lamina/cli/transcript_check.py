"""Whether a file is a recorded conversation, and in plain words what it is where it is none.

Reads to the first message and never writes. A file with damaged lines is still a transcript; one without any message is not.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from ..core.errors import DiskError, InputError

REMEDY = "lamina sessions list shows what there is"
# Enough to tell text from anything else.
LOOKED_AT = 4_096


def file_named(session: str) -> Path | None:
    """The file that is meant, where it is a file's name and no session's."""
    return Path(session).expanduser().absolute() if os.sep in session or session.endswith(".jsonl") else None


def check(path: Path) -> None:
    """Refuse what is no transcript, with one sentence."""
    from ..core.records import Attachment, Message
    from ..disk.transcripts.jsonl import Health
    from ..disk.transcripts.store import read_transcript

    head, health, read = _head(path), Health(), 0
    if not head:
        raise InputError("session", f"{path} is empty: nothing was said in it", REMEDY)
    for record in read_transcript(path, health=health):
        if isinstance(record, Message | Attachment):
            return
        read += 1
    raise InputError("session", f"{path} is no transcript: {_why(head, read, health.skipped)}", REMEDY)


def _head(path: Path) -> bytes:
    """The first bytes; a pipe or a device is not waited for."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise InputError("session", f"{path} is a directory, no transcript", REMEDY)
        if not stat.S_ISREG(mode):
            raise InputError("session", f"{path} is no file with a transcript", REMEDY)
        return os.read(fd, LOOKED_AT)
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(fd)


def _unreadable(path: Path, error: OSError) -> DiskError | InputError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return InputError("session", f"there is no file {path}", REMEDY)
    if error.errno in (errno.EACCES, errno.EPERM):
        return DiskError(str(path), "you may not read it", "change its permissions or ask its owner")
    return DiskError(str(path), f"cannot be read ({os.strerror(error.errno or 0).lower()})")


def _why(head: bytes, read: int, skipped: int) -> str:
    if b"\0" in head:
        return "it is binary"
    if not read:
        return "none of its lines is a JSON object" if skipped else "it holds only blank lines"
    return f"{'its one record is no message' if read == 1 else f'none of its {read:,} records is a message'} of a conversation"
