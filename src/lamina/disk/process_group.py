"""Ends a program together with its child processes."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress


def signal_group(process: subprocess.Popen[bytes], number: int = getattr(signal, "SIGKILL", signal.SIGTERM)) -> None:
    """Signal the program's process group. On Windows, which has no groups, only the program is killed."""
    if not hasattr(os, "killpg"):
        process.kill()
        return
    # The group may have ended already; on macOS, signalling a group of zombies fails with EPERM.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
