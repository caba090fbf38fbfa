"""Runs hooks: one JSON object in, bounded output out, within the timeout.

Commands of one event run in parallel, each in its own process group, which is ended as a whole. A hook that fails, hangs or floods is
reported and ignored; only an explicit block stops anything. An abort ends the commands that are still running.
"""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec.structs import replace

from ...core.settings import Hooks
from ...disk.process_group import signal_group
from .answers import HookOutcome, HookRun, fold_outcome
from .events import Event, HookCommand, plan_hooks

# Output limit of a hook: a replaced page of a file as JSON fits several times. The rest is read and dropped, so that the hook never
# blocks on a full pipe.
MAX_OUTPUT = 512 << 10
# Time between asking a process group to end and killing it.
GRACE_SECONDS = 1.0
# How long an abort can go unnoticed.
GLANCE = 0.05
AT_ONCE = 8


class HookRunner(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to run the hooks of one conversation, in any thread."""

    hooks: Callable[[], Hooks]  # as they are configured now
    about: Callable[[], Mapping[str, Any]]  # what every event of the conversation carries: its session, its mode
    cwd: Path
    environ: Mapping[str, str]
    notify: Callable[[HookOutcome], None]  # tells the user what hooks said and which failed
    agent: Mapping[str, Any] = {}  # id and type of the agent whose events these are

    def for_agent(self, agent_id: str, agent_type: str) -> HookRunner:
        return replace(self, agent={"agent_id": agent_id, "agent_type": agent_type})

    def configured(self, event: Event) -> bool:
        return bool(self.hooks().get(event))

    def run(
        self, event: Event, payload: Mapping[str, Any], *, matching: str | None = None, abort: threading.Event | None = None
    ) -> HookOutcome:
        """Run the event's hooks. Telling the user is left to the caller."""
        if not self.configured(event):
            return HookOutcome()
        given = {**self.about(), **self.agent, **payload}
        said = run_hooks(event, given, self.hooks(), cwd=self.cwd, environ=self.environ, matching=matching, abort=abort)
        # An abort stops the hooks too, which is no fault of theirs.
        return replace(said, faults=()) if abort is not None and abort.is_set() else said


def run_hooks(
    event: Event,
    payload: Mapping[str, Any],
    hooks: Hooks,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    matching: str | None = None,
    abort: threading.Event | None = None,
) -> HookOutcome:
    planned, faults = plan_hooks(event, hooks, matching=matching)
    if not planned:
        return HookOutcome(faults=faults)
    # ASCII, so that a file name that is not UTF-8 can be told too.
    given = json.dumps({"hook_event_name": event, "cwd": str(cwd), **payload}, default=str).encode()
    stop = _HookStop(abort if abort is not None else threading.Event())
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(planned))) as pool:
        try:
            ran = tuple(pool.map(lambda one: _run(one, given, cwd, environ, stop), planned))
        except KeyboardInterrupt:
            # Ctrl-C reaches only this thread, because the commands run in their own sessions.
            stop.set()
            raise
    return fold_outcome(event, ran, faults)


class _HookStop:
    """Set by an abort of the turn, or by Ctrl-C during this event. The next turn clears its abort, but a command whose thread was
    still starting, and which no caller waits for, must end too."""

    def __init__(self, abort: threading.Event) -> None:
        self._abort = abort
        self._here = False

    def set(self) -> None:
        self._here = True
        self._abort.set()

    def is_set(self) -> bool:
        return self._here or self._abort.is_set()


def _run(planned: HookCommand, given: bytes, cwd: Path, environ: Mapping[str, str], stop: _HookStop) -> HookRun:
    if stop.is_set():
        return HookRun(planned, None, "", "")
    try:
        process = subprocess.Popen(
            planned.command if planned.args is None else [planned.command, *planned.args],
            shell=planned.args is None,
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return HookRun(planned, 127, "", str(error))
    out, err = _BoundedOutput(), _BoundedOutput()
    readers = [_start_thread(_read, process.stdout, out), _start_thread(_read, process.stderr, err)]
    _start_thread(_feed, process.stdin, given)
    code = _wait(process, time.monotonic() + planned.timeout, stop)
    # Children that outlive the command would keep the pipes open.
    _end(process)
    for reader in readers:
        reader.join(GRACE_SECONDS)
    if code is None:
        signal_group(process)  # children that ignored the first signal
    return HookRun(planned, code, out.text, err.text, out.dropped + err.dropped)


def _wait(process: subprocess.Popen[bytes], deadline: float, stop: _HookStop) -> int | None:
    """Return the exit code, or None if the command had to be stopped."""
    while not stop.is_set() and (left := deadline - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(min(left, GLANCE))
    return None


def _start_thread(target: Callable[..., None], *args: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread


def _feed(pipe: IO[bytes], given: bytes) -> None:
    """Write the input. A command that does not read it is not at fault."""
    with suppress(BrokenPipeError, OSError), pipe:
        pipe.write(given)


class _BoundedOutput:
    def __init__(self) -> None:
        self._kept = bytearray()
        self.dropped = 0

    def take(self, piece: bytes) -> None:
        kept = piece[: MAX_OUTPUT - len(self._kept)]
        self._kept.extend(kept)
        self.dropped += len(piece) - len(kept)

    @property
    def text(self) -> str:
        return bytes(self._kept).decode("utf-8", "replace")


def _read(pipe: BufferedReader, into: _BoundedOutput) -> None:
    with pipe:
        while piece := pipe.read1(1 << 16):
            into.take(piece)


def _end(process: subprocess.Popen[bytes]) -> None:
    signal_group(process, signal.SIGTERM)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        signal_group(process)
        process.wait()
