"""Standard output that may go away: a pipe whose reader has seen enough, a terminal that was closed.

Owns the writes to standard output while a turn runs. Invariants: a write never raises, since it is made from inside the agent's
loop, where an exception would lose what a tool has just done; the first one that fails becomes a wish to stop, and nothing more is
written. Any thread may write; one text is never mixed with another.
"""

from __future__ import annotations

import errno
import os
import sys
import threading

from .signals import SIGHUP, SIGPIPE, StopRequest

# A file that takes no more.
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


class StdoutSink:
    def __init__(self, stop: StopRequest) -> None:
        self._stop = stop
        self.lock = threading.RLock()
        self.gone = False
        self.trouble = ""  # why nothing more could be written, where it is no reader's doing

    def write(self, text: str) -> None:
        with self.lock:
            if self.gone:
                return
            try:
                sys.stdout.write(text)
                sys.stdout.flush()
            except (OSError, ValueError) as error:  # ValueError: closed
                self._lose(error)

    def _lose(self, error: OSError | ValueError) -> None:
        self.gone = True
        number = getattr(error, "errno", None)
        if number in _FULL:
            self.trouble = os.strerror(number).lower()
        # What is still in the buffer goes nowhere; at its end the interpreter would otherwise complain that it can't.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ is not None else nowhere)
        os.close(nowhere)
        self._stop.request(SIGPIPE if self.trouble or isinstance(error, BrokenPipeError) else SIGHUP)
