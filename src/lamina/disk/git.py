"""Runs git with a time limit and without trusting any repository's configuration.

Owns the process. Invariants: git reads only the configuration of the repository it is given, runs no hooks and prompts for
nothing. At the timeout it is killed with all its child processes. The git program is never one from a working tree. A missing
git, an error and a timeout all return None; none of them raises.

Git writes to the repository in `git_dir` and keeps its files consistent across a crash.
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
    """Return the git program on the user's PATH, unless it is inside the working tree `outside`."""
    directories = [directory for directory in environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(directory)]
    found = shutil.which("git", path=os.pathsep.join(directories)) if directories else None
    if found is not None and outside is not None and Path(os.path.realpath(found)).is_relative_to(outside):
        return None
    return found


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
