"""Ending a program together with all that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress


def signal_group(process: subprocess.Popen[bytes], number: int = getattr(signal, "SIGKILL", signal.SIGTERM)) -> None:
    """Signal the group that the program leads; where there are no groups (Windows) the program alone is ended."""
    if not hasattr(os, "killpg"):
        process.kill()
        return
    # The group may be gone already; on macOS a group of zombies says EPERM.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
