"""Ctrl-C while modules are imported.

An exception raised inside Python's import machinery can leave its global lock held: every other thread that imports something then
waits forever, and so does the program. So while the main thread imports, the signal is sent again a little later.
"""

import signal
import time
from _thread import get_ident, start_new_thread
from types import FrameType

# Most modules are imported in less time, so the delay is not noticed.
AGAIN_AFTER = 0.02


def is_importing(frame: FrameType | None) -> bool:
    """Tell whether the interrupted code is part of an import."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def send_again(number: int) -> None:
    """Send the signal again, without blocking and without a lock: this runs in a signal handler, so in the main thread."""
    start_new_thread(_send, (number, get_ident()))


def _send(number: int, main: int) -> None:
    time.sleep(AGAIN_AFTER)
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, number)  # it also wakes the main thread up
    else:
        signal.raise_signal(number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if is_importing(frame):
        send_again(number)
    else:
        raise KeyboardInterrupt


def protect_imports() -> None:
    """Replace Python's own handler of Ctrl-C, but keep any other handler."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
