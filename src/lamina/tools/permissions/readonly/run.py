"""Execution of a plan: programs started by exec with pipes between them, without a shell; bounded in time, memory and
output.

Invariants: a program gets finished arguments, two environment variables, no input and a separate process group. When this
returns, no program is alive. `&&`, `||` and `;` follow exit codes as in bash; a pipeline's code is that of its last program.

A second safeguard on Linux: a program may not write to any file, nor use more than a gigabyte of memory. The limits are set
right after the start, so they prove nothing; the plan is the proof.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import IO, Literal, TypeAlias

import msgspec

from ....disk.process_group import signal_group
from .plan import Pipeline, PlannedProgram, ReadOnlyPlan

TIMEOUT = 10.0
MAX_OUTPUT = 1 << 20
# The longest delay before an abort is noticed while the programs are silent.
ABORT_CHECK = 0.05
MAX_MEMORY = 1 << 30
_CHUNK = 1 << 16
_DIRECTORIES = ("/usr/bin", "/bin")
_ENVIRONMENT = {"PATH": ":".join(_DIRECTORIES), "LC_ALL": "C.UTF-8"}
# The exit codes of bash for a missing program, one that can't be started, and one ended by a signal.
_NOT_FOUND = 127
_NOT_STARTED = 126
_BY_SIGNAL = 128

RunEnd: TypeAlias = Literal["by itself", "time is up", "too much output", "aborted"]


class ReadOnlyResult(msgspec.Struct, frozen=True):
    """The programs' output, cut at the limit, and how the run ended."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    ended: RunEnd = "by itself"


class _RunStopped(Exception):
    """Ends the run before its programs do."""

    def __init__(self, ended: RunEnd) -> None:
        self.ended: RunEnd = ended


class _PlanRun:
    """Output and limits of one run."""

    def __init__(self, plan: ReadOnlyPlan, timeout: float, max_output: int, abort: threading.Event | None) -> None:
        self.plan = plan
        self.deadline = time.monotonic() + timeout
        self.room = max_output
        self.abort = abort
        self.stdout = bytearray()
        self.stderr = bytearray()

    def run(self) -> ReadOnlyResult:
        code = 0
        try:
            for pipeline in self.plan.pipelines:
                if pipeline.when == "always" or (pipeline.when == "after success") == (code == 0):
                    code = self.pipeline(pipeline)
        except _RunStopped as stopped:
            return ReadOnlyResult(_BY_SIGNAL + signal.SIGKILL, bytes(self.stdout), bytes(self.stderr), stopped.ended)
        return ReadOnlyResult(code, bytes(self.stdout), bytes(self.stderr))

    def pipeline(self, pipeline: Pipeline) -> int:
        if (missing := next((stage.argv[0] for stage in pipeline.stages if _program(stage) is None), None)) is not None:
            self.stderr += f"{missing}: command not found\n".encode()
            return _NOT_FOUND
        read_out, write_out = os.pipe()
        read_err, write_err = os.pipe()
        started = list[subprocess.Popen[bytes]]()
        try:
            try:
                self.start(pipeline, started, write_out, write_err)
            except OSError as error:  # the working directory is gone, or the system can start no more programs
                self.stderr += f"{pipeline.stages[len(started)].argv[0]}: {error.strerror}\n".encode()
                return _NOT_STARTED
            finally:
                os.close(write_out)
                os.close(write_err)
            self.gather({read_out: self.stdout, read_err: self.stderr})
            return self.code(started)
        finally:
            os.close(read_out)
            os.close(read_err)
            _end(started)

    def start(self, pipeline: Pipeline, started: list[subprocess.Popen[bytes]], out: int, err: int) -> None:
        before: IO[bytes] | None = None  # the input of the next program
        try:
            for number, stage in enumerate(pipeline.stages, 1):
                to = out if number == len(pipeline.stages) else subprocess.PIPE
                started.append(_start(stage, self.plan.cwd, before, to, err))
                if before is not None:
                    before.close()
                before = started[-1].stdout
        finally:
            if before is not None:
                before.close()

    def gather(self, streams: dict[int, bytearray]) -> None:
        """Read until every writer has closed its end."""
        with selectors.DefaultSelector() as selector:
            for fd in streams:
                selector.register(fd, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(self.patience()):
                    chunk = os.read(key.fd, _CHUNK)
                    if not chunk:
                        selector.unregister(key.fd)
                    streams[key.fd] += chunk[: self.room]
                    if len(chunk) > self.room:
                        raise _RunStopped("too much output")
                    self.room -= len(chunk)

    def patience(self) -> float:
        """Return how long to wait for output. Raises when the time is up."""
        if self.abort is not None and self.abort.is_set():
            raise _RunStopped("aborted")
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise _RunStopped("time is up")
        return min(left, ABORT_CHECK) if self.abort is not None else left

    def code(self, started: list[subprocess.Popen[bytes]]) -> int:
        """Return the exit code as bash reports it. The programs have closed their output and are about to end."""
        try:
            *_, code = [process.wait(max(0.0, self.deadline - time.monotonic())) for process in started]
        except subprocess.TimeoutExpired:
            raise _RunStopped("time is up") from None
        return code if code >= 0 else _BY_SIGNAL - code


def run_readonly(
    plan: ReadOnlyPlan, *, timeout: float = TIMEOUT, max_output: int = MAX_OUTPUT, abort: threading.Event | None = None
) -> ReadOnlyResult:
    """Run a plan. A failing program is a result, never an exception."""
    return _PlanRun(plan, timeout, max_output, abort).run()


def _program(stage: PlannedProgram) -> str | None:
    """Find the program in the system directories; the working directory and the user's PATH have no influence."""
    paths = (f"{directory}/{stage.argv[0]}" for directory in _DIRECTORIES)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def _start(stage: PlannedProgram, cwd: str, stdin: IO[bytes] | None, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        stage.argv,
        executable=_program(stage),
        cwd=cwd,
        env=_ENVIRONMENT,
        stdin=subprocess.DEVNULL if stdin is None else stdin,
        stdout=stdout,
        stderr={"shown": stderr, "dropped": subprocess.DEVNULL, "joined": subprocess.STDOUT}[stage.errors],
        process_group=0,
    )
    _confine(process.pid)
    return process


def _confine(pid: int) -> None:
    import resource  # missing on Windows, where no plan is ever made

    if not hasattr(resource, "prlimit"):
        return
    for kind, limit in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, MAX_MEMORY)):
        with suppress(OSError):  # the process has already ended
            resource.prlimit(pid, kind, (limit, limit))


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    """End all remaining programs with their groups, and wait for them."""
    for process in started:
        if process.poll() is None:
            signal_group(process)
            process.kill()
    for process in started:
        process.wait()
