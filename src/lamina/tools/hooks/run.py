"""Runs hooks: one JSON object in, bounded output out, within the timeout.

Commands of one event run in parallel, each in its own process group, which is ended as a whole. A hook that fails, hangs or floods is
reported and ignored; only an explicit block stops anything. An abort ends the commands that are still running.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ...core.settings import Hooks
from ...disk.child import BoundedOutput, ChildProgram, run_child
from .protocol import Event, HookCommand, HookOutcome, HookRun, fold_outcome, plan_hooks

# Output limit of a hook: a replaced page of a file as JSON fits several times. The rest is read and dropped, so that the hook never
# blocks on a full pipe.
MAX_OUTPUT = 512 << 10
# Time between asking a process group to end and killing it.
GRACE_SECONDS = 1.0
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
        data = {**self.about(), **self.agent, **payload}
        outcome = run_hooks(event, data, self.hooks(), cwd=self.cwd, environ=self.environ, matching=matching, abort=abort)
        # An abort stops the hooks too, which is no fault of theirs.
        return replace(outcome, faults=()) if abort is not None and abort.is_set() else outcome


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
    data = json.dumps({"hook_event_name": event, "cwd": str(cwd), **payload}, default=str).encode()
    stop = _HookStop(abort if abort is not None else threading.Event())
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(planned))) as pool:
        try:
            ran = tuple(pool.map(lambda command: _run(command, data, cwd, environ, stop), planned))
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
        self._interrupted = False

    def set(self) -> None:
        self._interrupted = True
        self._abort.set()

    def is_set(self) -> bool:
        return self._interrupted or self._abort.is_set()


def _run(planned: HookCommand, given: bytes, cwd: Path, environ: Mapping[str, str], stop: _HookStop) -> HookRun:
    if stop.is_set():
        return HookRun(planned, None, "", "")
    out, err = BoundedOutput(MAX_OUTPUT), BoundedOutput(MAX_OUTPUT)
    try:
        ended = run_child(
            ChildProgram(planned.command if planned.args is None else [planned.command, *planned.args], "shown"),
            cwd=cwd,
            environ=environ,
            timeout=planned.timeout,
            take=out.take,
            take_errors=err.take,
            stdin=given,
            abort=stop.is_set,
            grace=GRACE_SECONDS,
        )
    except (OSError, ValueError) as error:
        return HookRun(planned, 127, "", str(error))
    printed, complaint = (output.data.decode("utf-8", "replace") for output in (out, err))
    return HookRun(planned, ended.code if ended.why == "exit" else None, printed, complaint, out.dropped + err.dropped)
