"""Running git, bounded and without trusting any repository's configuration (B4, B12).

Owns the process. Invariants: git sees no configuration but that of the repository it is led to, runs no hook, asks nobody, and
is ended with all it started when its time is over; it is never a program that lies in a working tree. No git, an error or too
little time is an answer (None), not a failure.

What git writes goes into the repository that `git_dir` names; it keeps its own files whole across a crash.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .crash_points import point
from .process_group import signal_group

MOST_OUTPUT = 1 << 20
_PASSED_ON = ("HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP")
_QUIET = ("-c", f"core.hooksPath={os.devnull}", "-c", "gc.autoDetach=false", "-c", "core.fsmonitor=false")


def git_program(environ: Mapping[str, str], *, outside: Path | None = None) -> str | None:
    """The git on the person's path; never one that lies in the working tree `outside`."""
    directories = [directory for directory in environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(directory)]
    found = shutil.which("git", path=os.pathsep.join(directories)) if directories else None
    if found is not None and outside is not None and Path(os.path.realpath(found)).is_relative_to(outside):
        return None
    return found


def git_environ(environ: Mapping[str, str], git_dir: Path) -> dict[str, str]:
    """All that git gets of our environment, and the switches that keep other configuration away from it."""
    return {
        **{name: environ[name] for name in _PASSED_ON if name in environ},
        "LC_ALL": "C",
        "GIT_DIR": str(git_dir),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def run_git(
    program: str,
    arguments: Sequence[str],
    *,
    git_dir: Path,
    environ: Mapping[str, str],
    seconds: float,
    stdin: bytes = b"",
    more: Mapping[str, str] | None = None,
) -> bytes | None:
    """What it printed; None where it failed, took too long or could not be started."""
    try:
        point("git.run")
        process = subprocess.Popen(
            [program, "--no-pager", *_QUIET, *arguments],
            cwd=git_dir if git_dir.is_dir() else git_dir.parent,
            env={**git_environ(environ, git_dir), **(more or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            umask=0o077,
        )
    except (OSError, ValueError):
        return None
    try:
        printed, _ = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        signal_group(process)
        process.communicate()
        return None
    except BaseException:
        signal_group(process)
        process.communicate()
        raise
    return printed[:MOST_OUTPUT] if process.returncode == 0 else None
