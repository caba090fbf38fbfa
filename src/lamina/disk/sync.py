"""Making bytes durable.

Owns the one call that waits for the disk. Invariant: an error is final; the kernel may have marked the pages clean already, so a
second fsync on the same descriptor could claim what is not true. The caller closes the descriptor and reports the failure.
"""

from __future__ import annotations

import errno
import os

from . import oslock
from .crash_points import point

# What F_FULLFSYNC answers on a file system that does not know it; fsync is the best there is then.
_NOT_KNOWN = {errno.EINVAL, errno.ENOTTY, getattr(errno, "ENOTSUP", errno.EINVAL)}


def sync_fd(fd: int, name: str) -> None:
    """Waits until the file or directory is on stable storage; `name` is the crash point."""
    if not _synced_by_the_drive(fd, name):
        point(name)
        os.fsync(fd)


def _synced_by_the_drive(fd: int, name: str) -> bool:
    """On macOS fsync stops at the drive's cache, F_FULLFSYNC does not."""
    full = getattr(oslock.fcntl, "F_FULLFSYNC", None)
    if oslock.fcntl is None or full is None:
        return False
    try:
        point(name)
        oslock.fcntl.fcntl(fd, full)
    except OSError as error:
        if error.errno not in _NOT_KNOWN:
            raise
        return False
    return True
