"""Run one program, read its output as it comes, and make sure that it ends.

Invariants: the program and its children are in a separate process group (on Unix: a session). When the call is aborted,
times out or prints too much, the whole group gets SIGTERM and then SIGKILL. Standard input is empty. Errors and output come
through one pipe, in the order they were written. The call returns soon after the program has ended, even if a background
process keeps the pipe open. Nothing waits longer than POLL without checking the abort event.

A process that leaves the group on purpose (setsid) escapes. On Windows the group is ended with taskkill and without a
warning, and a thread reads the pipes, because they can't be polled there.

A program sees our environment without our API keys: its output goes to the model, and neither should get a key.
"""

from __future__ import annotations

import os
import queue
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from ..disk.process_group import signal_group

# The longest delay before an abort is noticed: too short to feel, and 20 wake-ups a second cost nothing.
POLL = 0.05
# The time a program gets to clean up between SIGTERM and SIGKILL.
GRACE = 2.0
# When the program has ended, its output is already in the pipe; later output comes from a background process.
LINGER = 0.2
# Something in the background that goes on printing is not read for longer than this.
LONGEST_LINGER = 2.0
_CHUNK = 1 << 16
_WINDOWS = os.name == "nt"

Why = Literal["exit", "timeout", "abort", "full"]


class ProcessEnd(NamedTuple):
    code: int  # as the system reports it; negative for a signal
    why: Why
    held: bool  # whether a background process still held the pipe


class _Pipe(Protocol):
    def next(self, seconds: float) -> bytes | None:
        """Return the output that arrives within `seconds`: empty if there is none yet, None at the end."""
        ...

    def close(self) -> None: ...


def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    timeout: float,
    abort: threading.Event,
    take: Callable[[bytes], bool],
) -> ProcessEnd:
    """Run a program to its end. `take` gets every piece of output and returns False to stop the program. Raises OSError if
    it can't start."""
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=not _WINDOWS,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )
    assert process.stdout is not None
    pipe: _Pipe = _ThreadPipe(process.stdout.fileno()) if _WINDOWS else _SelectPipe(process.stdout.fileno())
    try:
        why, held = _follow(process, pipe, time.monotonic() + timeout, abort, take)
        if why != "exit":
            _end(process, pipe, take)
    except BaseException:
        # After an exception in `take` or Ctrl-C, the program must not keep running unattended.
        _kill(process)
        process.wait()
        raise
    finally:
        pipe.close()
        process.stdout.close()
    return ProcessEnd(process.wait(), why, held)


def _follow(
    process: subprocess.Popen[bytes], pipe: _Pipe, deadline: float, abort: threading.Event, take: Callable[[bytes], bool]
) -> tuple[Why, bool]:
    """Return why we stop reading the program's output, and whether a background process still holds the pipe."""
    gone: float | None = None  # when the program was first seen to have ended
    while True:
        now = time.monotonic()
        if abort.is_set():
            return "abort", False
        if now >= deadline and gone is None:
            return "timeout", False
        part = pipe.next(min(POLL, max(0.0, (deadline if gone is None else gone + LINGER) - now)))
        if part is None:
            break
        if part and not take(part):
            return "full", False
        if gone is None:
            gone = time.monotonic() if process.poll() is not None else None
        # The pipe was looked at since: on a busy machine LINGER may pass before what the program printed last is read.
        elif now >= gone + (LONGEST_LINGER if part else LINGER):
            return "exit", True
    return _wait(process, deadline, abort), False


def _wait(process: subprocess.Popen[bytes], deadline: float, abort: threading.Event) -> Why:
    """Wait for a program that has closed its pipe: it redirected its output, or is about to end."""
    while True:
        try:
            process.wait(min(POLL, max(0.0, deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            if abort.is_set():
                return "abort"
            if time.monotonic() >= deadline:
                return "timeout"
        else:
            return "exit"


def _end(process: subprocess.Popen[bytes], pipe: _Pipe, take: Callable[[bytes], bool]) -> None:
    """Ask the group to end, keep its output meanwhile, and kill the rest."""
    if not _WINDOWS:
        deadline = time.monotonic() + GRACE
        signal_group(process, signal.SIGTERM)
        _drain(pipe, take, deadline, lambda: _exited(process))
        # The pipe may be silent while the program is still cleaning up.
        while not _exited(process) and (rest := deadline - time.monotonic()) > 0:
            time.sleep(min(POLL, rest))
    _kill(process)
    _drain(pipe, take, time.monotonic() + LINGER, lambda: False)


def _drain(pipe: _Pipe, take: Callable[[bytes], bool], deadline: float, enough: Callable[[], bool]) -> None:
    """Reads at least once, so that nothing is lost where the machine was too busy to do it before the deadline."""
    wanted = goes_on = True
    while goes_on:
        rest = deadline - time.monotonic()
        part = pipe.next(min(POLL, max(0.0, rest)))
        if part is None:
            return
        if part:
            wanted = wanted and take(part)
        goes_on = rest > 0 and not enough()


def _exited(process: subprocess.Popen[bytes]) -> bool:
    """Check without reaping if the system can: until then no other process can get the group's id."""
    if hasattr(os, "waitid"):
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return process.poll() is not None


def _kill(process: subprocess.Popen[bytes]) -> None:
    if _WINDOWS:
        with suppress(OSError):
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(process.pid)], check=False, capture_output=True, stdin=subprocess.DEVNULL
            )
        process.kill()
    else:
        signal_group(process)


class _SelectPipe:
    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._selector = selectors.DefaultSelector()
        self._selector.register(fd, selectors.EVENT_READ)

    def next(self, seconds: float) -> bytes | None:
        if not self._selector.select(seconds):
            return b""
        try:
            return os.read(self._fd, _CHUNK) or None
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self._selector.close()


class _ThreadPipe:
    """A daemon thread reads the pipe. It ends with the pipe, or with our process if a background process holds the pipe."""

    def __init__(self, fd: int) -> None:
        # The thread reads from its own copy: closing a descriptor during a read could hand its number to another file.
        self._fd = os.dup(fd)
        # Bounded: a program that prints faster than we read waits for us, as with any pipe.
        self._parts: queue.Queue[bytes] = queue.Queue(maxsize=16)
        self._closed = threading.Event()
        threading.Thread(target=self._read, name="lamina-pipe", daemon=True).start()

    def _read(self) -> None:
        try:
            while part := os.read(self._fd, _CHUNK):
                self._put(part)
                if self._closed.is_set():
                    return
        finally:
            os.close(self._fd)
            self._put(b"")

    def _put(self, part: bytes) -> None:
        taken = False
        while not taken and not self._closed.is_set():
            with suppress(queue.Full):
                self._parts.put(part, timeout=POLL)
                taken = True

    def next(self, seconds: float) -> bytes | None:
        try:
            return self._parts.get(timeout=seconds) or None
        except queue.Empty:
            return b""

    def close(self) -> None:
        self._closed.set()


# Credentials for our providers. Other keys stay visible: the user's programs may need them.
SECRETS = frozenset(
    {
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_CUSTOM_HEADERS",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "OPENAI_ADMIN_KEY",
        "OPENAI_API_KEY",
    }
)
_OWN_PREFIX = "LAMINA_"
_OWN_ENDS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")


def child_environ(environ: Mapping[str, str], hand_over: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the variables a command may see. `hand_over` names secrets that are allowed anyway."""
    return {name: value for name, value in environ.items() if name in hand_over or not is_secret(name)}


def is_secret(name: str) -> bool:
    upper = name.upper()
    return upper in SECRETS or (upper.startswith(_OWN_PREFIX) and upper.endswith(_OWN_ENDS))
