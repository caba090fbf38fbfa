"""Runs programs within bounds, and makes sure that they end. Every other module starts its programs here.

Bounds: a time, an abort, the amount of output, the environment, standard input, and a process group of its own for each program (on
Unix: a session). Invariants: when the call is aborted, times out or prints too much, or when the caller fails, the whole group ends:
SIGTERM first if there is a grace period, then SIGKILL. The call returns soon after the program has ended, even if a background process
keeps its pipes open. Nothing waits longer than POLL without checking the abort.

A process that leaves the group on purpose (setsid) escapes. On Windows the group is ended with taskkill and without a warning, and
threads read the pipes, because they can't be polled there.

Programs that the model asks for see our environment without our API keys: their output goes to the model, and neither should get a key.
"""

from __future__ import annotations

import os
import queue
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TypeAlias

# The longest delay before an abort is noticed: too short to feel, and 20 wake-ups a second cost nothing.
POLL = 0.05
# The time a program gets to clean up between SIGTERM and SIGKILL.
GRACE = 2.0
# When the program has ended, its output is already in the pipe; later output comes from a background process.
LINGER = 0.2
# Something in the background that goes on printing is not read for longer than this.
LONGEST_LINGER = 2.0
_CHUNK = 1 << 16
# The first wait for the end of a program that has closed its pipes; each later one is twice as long.
_FIRST_PAUSE = 0.0005
_WINDOWS = not hasattr(os, "killpg")
_OWN_GROUP: dict[str, Any] = {
    "start_new_session": not _WINDOWS,
    "creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
}
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)

Why: TypeAlias = Literal["exit", "timeout", "abort", "full"]
Errors: TypeAlias = Literal["shown", "dropped", "joined"]
# Gets every piece of output and returns False to stop the program.
TakeOutput: TypeAlias = Callable[[bytes], bool]


class ChildProgram(NamedTuple):
    argv: Sequence[str] | str  # the system's shell runs a text
    errors: Errors = "joined"  # with the output, in the order they were written
    path: str | None = None  # the program's file, if the first argument does not name it


class ChildEnd(NamedTuple):
    code: int  # of the last program, as the system reports it; negative for a signal
    why: Why
    held: bool  # whether a background process still held a pipe


class BoundedOutput:
    """The beginning of a program's output. With `stop`, a program that prints more is stopped."""

    def __init__(self, most: int, *, stop: bool = False) -> None:
        self._most = most
        self._stop = stop
        self.data = bytearray()
        self.dropped = 0

    def take(self, part: bytes) -> bool:
        beginning = part[: self._most - len(self.data)]
        self.data += beginning
        self.dropped += len(part) - len(beginning)
        return not (self._stop and self.dropped)


def run_child(
    *programs: ChildProgram,
    cwd: Path | str,
    environ: Mapping[str, str],
    timeout: float,
    take: TakeOutput,
    take_errors: TakeOutput = lambda part: True,
    stdin: bytes = b"",
    abort: Callable[[], bool] = lambda: False,
    grace: float = GRACE,
    leave: bool = False,
    umask: int = -1,
    started: Callable[[int], None] = lambda process: None,
) -> ChildEnd:
    """Run a program, or several with pipes between them, to the end. Raises OSError if one can't start.

    `leave` leaves alone what the programs started in the background; otherwise it ends with them. `started` gets the id of each process.
    """
    running = list[subprocess.Popen[bytes]]()
    pipes = _ThreadPipes(take, take_errors) if _WINDOWS else _Pipes(take, take_errors)
    try:
        before: IO[bytes] | None = None  # the output of the last program, which the next one reads
        try:
            for number, program in enumerate(programs, 1):
                process = subprocess.Popen(
                    program.argv,
                    executable=program.path,
                    shell=isinstance(program.argv, str),
                    cwd=cwd,
                    env=dict(environ),
                    stdin=before or (subprocess.PIPE if stdin else subprocess.DEVNULL),
                    stdout=pipes.out if number == len(programs) else subprocess.PIPE,
                    stderr={"shown": pipes.errors, "dropped": subprocess.DEVNULL, "joined": subprocess.STDOUT}[program.errors],
                    umask=umask,
                    **_OWN_GROUP,
                )
                running.append(process)
                started(process.pid)
                if before is not None:
                    before.close()
                before = process.stdout
        finally:
            pipes.close_ends()
            if before is not None:
                before.close()
        if stdin:
            threading.Thread(target=_feed, args=(running[0].stdin, stdin), name="lamina-stdin", daemon=True).start()
        why, held = _follow(running, pipes, time.monotonic() + timeout, abort, None if leave else grace)
        if why != "exit":
            _end(running, pipes, grace)
        elif held and not leave:
            _signal(running, _KILL)
    except BaseException:
        # After an exception in `take` or Ctrl-C, no program must keep running unattended.
        _signal(running, _KILL)
        raise
    finally:
        pipes.close()
        codes = [process.wait() for process in running]
    return ChildEnd(codes[-1], why, held)


def start_detached(
    argv: Sequence[str],
    *,
    cwd: str | None = None,
    environ: Mapping[str, str] | None = None,
    errors: int = subprocess.DEVNULL,
    stdin: bytes = b"",
) -> subprocess.Popen[bytes]:
    """Start a program that outlives this process. Its output is dropped."""
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env=environ,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        **_OWN_GROUP,
    )
    if process.stdin is not None:
        _feed(process.stdin, stdin)
    return process


def _feed(pipe: IO[bytes], data: bytes) -> None:
    """Write a program's input. A program that does not read it is not at fault."""
    with suppress(OSError), pipe:
        pipe.write(data)


def _follow(
    running: Sequence[subprocess.Popen[bytes]], pipes: _Pipes, deadline: float, abort: Callable[[], bool], grace: float | None
) -> tuple[Why, bool]:
    """Return why we stop reading the programs' output, and whether a background process still holds a pipe. With a `grace` it is asked
    to end when the programs have ended, and has that long."""
    gone: float | None = None  # when the programs were first seen to have ended
    linger, pause = grace or LINGER, _FIRST_PAUSE
    while pipes.open or gone is None:
        now = time.monotonic()
        if abort():
            return "abort", False
        if now >= deadline and gone is None:
            return "timeout", False
        if not pipes.open:  # the programs redirected their output, or are about to end
            pause = min(2 * pause, POLL)
        came = pipes.read(min(POLL if pipes.open else pause, max(0.0, (deadline if gone is None else gone + linger) - now)))
        if pipes.full:
            return "full", False
        if gone is None:
            if all(map(_exited, running)):
                gone = time.monotonic()
                if grace is not None and not _WINDOWS:
                    _signal(running, signal.SIGTERM if grace else _KILL)
        # The pipes were looked at since: on a busy machine LINGER may pass before what the program printed last is read.
        elif pipes.open and now >= gone + (max(linger, LONGEST_LINGER) if came else linger):
            return "exit", True
    return "exit", False


def _end(running: Sequence[subprocess.Popen[bytes]], pipes: _Pipes, grace: float) -> None:
    """Ask the groups to end, keep their output meanwhile, and kill the rest."""
    if grace and not _WINDOWS:
        _signal(running, signal.SIGTERM)
        _drain(pipes, grace, lambda: all(map(_exited, running)))
    _signal(running, _KILL)
    _drain(pipes, LINGER, lambda: not pipes.open)


def _drain(pipes: _Pipes, seconds: float, enough: Callable[[], bool]) -> None:
    """Read at least once, so that nothing is lost where the machine was too busy to do it before the deadline."""
    deadline = time.monotonic() + seconds
    goes_on = True
    while goes_on:
        remaining = deadline - time.monotonic()
        pipes.read(min(POLL, max(0.0, remaining)))
        goes_on = remaining > 0 and not enough()


def _exited(process: subprocess.Popen[bytes]) -> bool:
    """Check without reaping if the system can: until then no other process can get the group's id."""
    if hasattr(os, "waitid"):
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return process.poll() is not None


def _signal(running: Iterable[subprocess.Popen[bytes]], number: int) -> None:
    """Signal the programs with their child processes. On Windows, which has no signals, they are killed."""
    for process in running:
        if _WINDOWS:
            line = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
            with suppress(OSError):
                subprocess.run(line, check=False, capture_output=True, stdin=subprocess.DEVNULL)
            process.kill()
        else:
            # The group may have ended already; on macOS, signalling a group of zombies fails with EPERM.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)


class _Pipes:
    """The two pipes that the programs write to: `out` and `errors`. What arrives is passed on until a function has enough."""

    def __init__(self, take: TakeOutput, take_errors: TakeOutput) -> None:
        self.full = False
        (out, self.out), (errors, self.errors) = os.pipe(), os.pipe()
        self._takers = {out: take, errors: take_errors}
        self._unread = set(self._takers)
        self._selector = selectors.DefaultSelector()
        for pipe in self._takers:
            self._selector.register(pipe, selectors.EVENT_READ)

    @property
    def open(self) -> bool:
        return bool(self._unread)

    def read(self, seconds: float) -> bool:
        """Pass on what arrives within `seconds`, and return whether something did."""
        came = False
        for pipe, part in self._parts(seconds):
            if part:
                came = True
                self.full = self.full or not self._takers[pipe](part)
            else:
                self._unread.remove(pipe)
        return came

    def _parts(self, seconds: float) -> Iterable[tuple[int, bytes]]:
        """Yield pieces of output; an empty one is the end of its pipe."""
        for key, _ in self._selector.select(seconds):
            part = os.read(key.fd, _CHUNK)
            if not part:
                self._selector.unregister(key.fd)
            yield key.fd, part

    def close_ends(self) -> None:
        """Close the ends that the programs write to, once they have them."""
        os.close(self.out)
        os.close(self.errors)

    def close(self) -> None:
        self._selector.close()
        for pipe in self._takers:
            os.close(pipe)


class _ThreadPipes(_Pipes):
    """Daemon threads read the pipes. They end with the pipes, or with our process if a background process holds one."""

    def __init__(self, take: TakeOutput, take_errors: TakeOutput) -> None:
        super().__init__(take, take_errors)
        # Bounded: a program that prints faster than we read waits for us, as with any pipe.
        self._queue: queue.Queue[tuple[int, bytes]] = queue.Queue(maxsize=16)
        self._closed = threading.Event()
        for pipe in self._takers:
            # A thread reads from its own copy: closing a descriptor during a read could hand its number to another file.
            threading.Thread(target=self._copy, args=(pipe, os.dup(pipe)), name="lamina-pipe", daemon=True).start()

    def _copy(self, pipe: int, copy: int) -> None:
        part = b" "
        try:
            while part and not self._closed.is_set():
                part = os.read(copy, _CHUNK)
                self._put((pipe, part))
        finally:
            os.close(copy)

    def _put(self, piece: tuple[int, bytes]) -> None:
        waiting = True
        while waiting and not self._closed.is_set():
            with suppress(queue.Full):
                self._queue.put(piece, timeout=POLL)
                waiting = False

    def _parts(self, seconds: float) -> Iterable[tuple[int, bytes]]:
        with suppress(queue.Empty):
            yield self._queue.get(timeout=seconds)

    def close(self) -> None:
        self._closed.set()
        super().close()


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

    def is_secret(name: str) -> bool:
        return name in SECRETS or (name.startswith(_OWN_PREFIX) and name.endswith(_OWN_ENDS))

    return {name: value for name, value in environ.items() if name in hand_over or not is_secret(name.upper())}
