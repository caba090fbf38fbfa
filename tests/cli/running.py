"""Run the command line as a user does: in a separate process, with a terminal if needed."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

LAMINA = (sys.executable, "-c", "from lamina.cli.main import main; main()")
# Far more than any of these takes on a busy machine.
PATIENCE = 120


def lamina(*arguments: str | bytes, cwd: Path | None = None, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[str]:
    """Runs `lamina` with these arguments; `env` is added to the environment of the test."""
    done = subprocess.run(
        [*LAMINA, *arguments], cwd=cwd, input=stdin, capture_output=True, env={**os.environ, **env}, timeout=PATIENCE, check=False
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def here(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same within this process, for long tables: no interpreter starts."""
    from lamina.cli.main import main

    before, out, err = os.getcwd(), StringIO(), StringIO()
    os.chdir(cwd or before)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(list(arguments))
    except SystemExit as stop:
        return subprocess.CompletedProcess(arguments, int(stop.code or 0), out.getvalue(), err.getvalue())
    finally:
        os.chdir(before)
    raise AssertionError("main() always exits")


def on_a_terminal(*arguments: str, cwd: Path | None = None, **env: str) -> tuple[bytes, int]:
    """What `lamina` writes to a terminal, both streams together, and its exit code."""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*LAMINA, *arguments],
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", **env},
    )
    os.close(theirs)
    written = b""
    while piece := _read(ours):
        written += piece
    os.close(ours)
    return written, process.wait(PATIENCE)


def _read(terminal: int) -> bytes:
    """Linux reports the end of a terminal as an error."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


def misused(done: Any) -> bool:
    """Exit code 2, one line on stderr, nothing on stdout."""
    return done.returncode == 2 and one_line(done.stderr) and done.stdout == ""


def failed(done: Any) -> bool:
    """Exit code 1, one line on stderr, nothing on stdout."""
    return done.returncode == 1 and one_line(done.stderr) and done.stdout == ""


def one_line(stderr: str) -> bool:
    return stderr.startswith("lamina: ") and stderr.count("\n") == 1 and stderr.endswith("\n")
