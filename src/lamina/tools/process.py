"""One program, run with its output read as it comes, and surely ended.

Owns the process group. Invariants: the program and what it starts are in a group (on Unix: a session) of their own, and when the
call is stopped, times out or prints too much the whole group is asked to end and then killed; standard input is empty; errors and
output come through one pipe, in the order they were written; the call returns soon after the program itself has ended, also when
something it left in the background keeps the pipe open. Nothing waits longer than POLL without looking at the abort event.

A process that has left the group on purpose (setsid) is not found again. On Windows the group is ended with taskkill and nothing
is asked first; pipes are read by a thread there, because they can't be waited for.

A program sees all of our environment but our own keys: its output goes to the model, and a key belongs to neither.
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

# How long an abort can go unnoticed: below what a person feels, and 20 wake-ups a second cost nothing.
POLL = 0.05
# A program gets this long to clean up between being asked to end and being killed.
GRACE = 2.0
# What is still in the pipe when the program has ended is there at once; whoever writes later is in the background.
LINGER = 0.2
# Something in the background that goes on printing is not read for longer than this.
LONGEST_LINGER = 2.0
_CHUNK = 1 << 16
_WINDOWS = os.name == "nt"

Why = Literal["exit", "timeout", "abort", "full"]


class ProcessEnd(NamedTuple):
    code: int  # as the system gives it; negative for a signal
    why: Why
    held: bool  # whether something in the background still had the pipe


class _Pipe(Protocol):
    def next(self, seconds: float) -> bytes | None:
        """What came within so many seconds: empty for nothing yet, None at the end."""
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
    """Runs to the end; `take` gets every piece of output and returns False to have the program stopped. OSError if it can't start."""
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
        # An exception in `take` or Ctrl-C: the program must not go on without anybody watching.
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
    """Why the program is not followed any longer, and whether something in the background still has the pipe."""
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
    """The pipe is closed and the program may go on all the same: it redirected its output, or is about to end."""
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
    """Asks the group to end, keeps what it says meanwhile, and kills what is left of it."""
    if not _WINDOWS:
        deadline = time.monotonic() + GRACE
        signal_group(process, signal.SIGTERM)
        _drain(pipe, take, deadline, lambda: _exited(process))
        # Nobody may be writing any more while the program itself is still tidying up.
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
    """Looks without reaping where the system can: until then nobody else can get the group's number."""
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
    """A daemon thread reads; it ends with the pipe, or with the process if something in the background holds that."""

    def __init__(self, fd: int) -> None:
        # The thread reads on its own copy: closing a descriptor somebody is reading would hand its number to another file.
        self._fd = os.dup(fd)
        # Bounded: a program that prints faster than we take it waits for us, as with any pipe.
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


# What opens a provider for us. Other keys are the person's own business: their programs may need them.
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
    """The variables a command may see; `hand_over` names secrets that are allowed all the same."""
    return {name: value for name, value in environ.items() if name in hand_over or not is_secret(name)}


def is_secret(name: str) -> bool:
    upper = name.upper()
    return upper in SECRETS or (upper.startswith(_OWN_PREFIX) and upper.endswith(_OWN_ENDS))
