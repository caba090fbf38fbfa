"""Execution of a plan: programs started by exec with pipes between them, without a shell; bounded in time, memory and
output.

Invariants: a program gets finished arguments, two environment variables, no input and a separate process group. When this
returns, no program is alive. `&&`, `||` and `;` follow exit codes as in bash; a pipeline's code is that of its last program.

A second safeguard on Linux: a program may not write to any file, nor use more than a gigabyte of memory. The limits are set
right after the start, so they prove nothing; the plan is the proof.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Literal, TypeAlias

import msgspec

from ....disk.child import ChildProgram, Why, run_child
from .plan import PlannedProgram, ReadOnlyPlan

TIMEOUT = 10.0
MAX_OUTPUT = 1 << 20
MAX_MEMORY = 1 << 30
_DIRECTORIES = ("/usr/bin", "/bin")
_ENVIRONMENT = {"PATH": ":".join(_DIRECTORIES), "LC_ALL": "C.UTF-8"}
# The exit codes of bash for a missing program, one that can't be started, and one ended by a signal.
_NOT_FOUND = 127
_NOT_STARTED = 126
_BY_SIGNAL = 128

RunEnd: TypeAlias = Literal["by itself", "time is up", "too much output", "aborted"]
_ENDS: dict[Why, RunEnd] = {"exit": "by itself", "timeout": "time is up", "full": "too much output", "abort": "aborted"}


class ReadOnlyResult(msgspec.Struct, frozen=True):
    """The programs' output, cut at the limit, and how the run ended."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    ended: RunEnd = "by itself"


def run_readonly(
    plan: ReadOnlyPlan, *, timeout: float = TIMEOUT, max_output: int = MAX_OUTPUT, abort: threading.Event | None = None
) -> ReadOnlyResult:
    """Run a plan. A failing program is a result, never an exception."""
    deadline = time.monotonic() + timeout
    output, errors = bytearray(), bytearray()

    def take(stream: bytearray, part: bytes) -> bool:
        room = max_output - len(output) - len(errors)
        stream.extend(part[:room])
        return len(part) <= room

    code = 0
    for pipeline in plan.pipelines:
        if pipeline.when != "always" and (pipeline.when == "after success") != (code == 0):
            continue
        programs = [ChildProgram(stage.argv, stage.errors, _program(stage)) for stage in pipeline.stages]
        if (missing := next((program.argv[0] for program in programs if program.path is None), None)) is not None:
            errors += f"{missing}: command not found\n".encode()
            code = _NOT_FOUND
            continue
        try:
            end = run_child(
                *programs,
                cwd=plan.cwd,
                environ=_ENVIRONMENT,
                timeout=deadline - time.monotonic(),
                take=partial(take, output),
                take_errors=partial(take, errors),
                abort=abort.is_set if abort is not None else lambda: False,
                grace=0,
                started=_confine,
            )
        except OSError as error:  # the working directory is gone, or the system can start no more programs
            errors += f"{programs[0].argv[0]}: {error.strerror}\n".encode()
            code = _NOT_STARTED
            continue
        if end.why != "exit":
            return ReadOnlyResult(_BY_SIGNAL + signal.SIGKILL, bytes(output), bytes(errors), _ENDS[end.why])
        code = end.code if end.code >= 0 else _BY_SIGNAL - end.code
    return ReadOnlyResult(code, bytes(output), bytes(errors))


def _program(stage: PlannedProgram) -> str | None:
    """Find the program in the system directories; the working directory and the user's PATH have no influence."""
    paths = (f"{directory}/{stage.argv[0]}" for directory in _DIRECTORIES)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def _confine(process: int) -> None:
    import resource  # missing on Windows, where no plan is ever made

    if not hasattr(resource, "prlimit"):
        return
    for kind, limit in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, MAX_MEMORY)):
        with suppress(OSError):  # the process has already ended
            resource.prlimit(process, kind, (limit, limit))
