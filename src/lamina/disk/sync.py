"""Making bytes durable.

Owns the one call that waits for the disk. Invariant: an error is final; the kernel may have marked the pages clean already, so a
second fsync on the same descriptor could claim what is not true. The caller closes the descriptor and reports the failure.
"""

from __future__ import annotations

import errno
import os

from .crash_points import point
from .locks import kernel_lock

# What F_FULLFSYNC answers on a file system that does not know it; fsync is the best there is then.
_NOT_KNOWN = {errno.EINVAL, errno.ENOTTY, getattr(errno, "ENOTSUP", errno.EINVAL)}


def sync_fd(fd: int, name: str) -> None:
    """Waits until the file or directory is on stable storage; `name` is the crash point."""
    # On macOS fsync stops at the drive's cache, F_FULLFSYNC does not.
    full = getattr(kernel_lock.fcntl, "F_FULLFSYNC", None)
    if kernel_lock.fcntl is not None and full is not None:
        try:
            point(name)
            kernel_lock.fcntl.fcntl(fd, full)
            return
        except OSError as error:
            if error.errno not in _NOT_KNOWN:
                raise
    point(name)
    os.fsync(fd)
