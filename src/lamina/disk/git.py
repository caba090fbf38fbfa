"""Runs git with a time limit and without trusting any repository's configuration.

Owns the process. Invariants: git reads only the configuration of the repository it is given, runs no hooks and prompts for
nothing. At the timeout it is killed with all its child processes. The git program is never one from a working tree. A missing
git, an error and a timeout all return None; none of them raises.

Git writes to the repository in `git_dir` and keeps its files consistent across a crash.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from .child import BoundedOutput, ChildProgram, run_child
from .crash_points import point

MOST_OUTPUT = 1 << 20
_PASSED_ON = ("HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP")
_QUIET = ("-c", f"core.hooksPath={os.devnull}", "-c", "gc.autoDetach=false", "-c", "core.fsmonitor=false")


def git_program(environ: Mapping[str, str], *, outside: Path | None = None) -> str | None:
    """Return the git program on the user's PATH, never one inside the working tree `outside`."""

    def is_outside(path: str) -> bool:
        return os.path.isabs(path) and (outside is None or not Path(os.path.realpath(path)).is_relative_to(outside))

    directories = filter(is_outside, environ.get("PATH", os.defpath).split(os.pathsep))
    program = shutil.which("git", path=os.pathsep.join(directories) or os.pathsep)
    return program if program is not None and is_outside(program) else None


def git_environ(environ: Mapping[str, str], git_dir: Path) -> dict[str, str]:
    """Return git's environment: a few variables of ours, plus switches that disable other configuration."""
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
    """Run git and return its output, or None if it failed, timed out or could not be started."""
    output = BoundedOutput(MOST_OUTPUT)
    try:
        point("git.run")
        end = run_child(
            ChildProgram([program, "--no-pager", *_QUIET, *arguments], "dropped"),
            cwd=git_dir if git_dir.is_dir() else git_dir.parent,
            environ={**git_environ(environ, git_dir), **(more or {})},
            timeout=seconds,
            take=output.take,
            stdin=stdin,
            grace=0,
            umask=0o077,
        )
    except (OSError, ValueError):
        return None
    return bytes(output.data) if end.why == "exit" and end.code == 0 else None
