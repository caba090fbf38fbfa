"""The processes of team members: started, identified and ended.

Each runs `lamina` in a separate session of the system, so a closed terminal ends none of them. Invariant: a signal goes only to a
process that still is the recorded one: it holds its mailbox's lock, which the kernel takes from a dead process, and it started when the
record says. On Linux a descriptor of the process is opened before this is checked, so its id cannot be reused in between.

On Windows a member cannot be asked to end; it is ended at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec.structs import replace

from ..disk.child import BoundedOutput, ChildProgram, run_child, start_detached
from ..disk.home.mailbox import MailboxAddress
from ..disk.home.team_files import MemberState, open_output, see_member, write_member
from ..disk.locks.dream_lock_owner import process_lives, start_ticks

# A member that is asked to end stops its turn and closes its session, which takes a second or two, on a busy machine ten.
STOP_SECONDS = 20.0
# After SIGKILL only the kernel's own work is left.
KILL_SECONDS = 10.0
# How long a process may take to open its session. A cold start on a busy machine takes seconds.
START_SECONDS = 60.0
GLANCE = 0.05
_PS_SECONDS = 10.0
# The lines of more processes than any system has.
_MOST_LISTED = 32 << 20
_MAILBOX = "LAMINA_MAILBOX"

Ending: TypeAlias = Literal["stopped", "killed", "was not running", "in use", "still running"]


def process_state(pid: int, before: MemberState) -> MemberState:
    """Return the first state of a member's new process, which goes on with the transcript of the last one."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return MemberState(pid=pid, start=start_ticks(pid) or 0, status="starting", since=now, transcript=before.transcript)


def start_member(home: Path, member: MailboxAddress, cwd: str) -> subprocess.Popen[bytes]:
    """Start the member's process. It runs until it is stopped, whatever happens to this one."""
    argv = [sys.executable, "-P", "-m", "lamina", "team", "run", member.team, member.name]
    environ = {name: value for name, value in os.environ.items() if name != _MAILBOX} | {"LAMINA_HOME": str(home.absolute())}
    output = open_output(home, member)
    try:
        process = start_detached(argv, cwd=cwd, environ=environ, errors=output)
    finally:
        os.close(output)
    # Written here too, so that a process that was just started can be found and ended.
    write_member(home, member, process_state(process.pid, see_member(home, member).state), first=True)
    return process


def wait_for_start(home: Path, member: MailboxAddress, process: subprocess.Popen[bytes]) -> MemberState | None:
    """Wait until the process has opened its session. None: it has ended."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        seen = see_member(home, member)
        if seen.state.pid == process.pid and seen.state.status in ("working", "waiting"):
            return seen.state
        if process.poll() is not None:
            return None
        time.sleep(GLANCE)
    return see_member(home, member).state


def stop_member(home: Path, member: MailboxAddress, *, seconds: float = STOP_SECONDS) -> Ending:
    """End the member's process: ask first, and kill it with its child processes after `seconds`."""
    seen = see_member(home, member)
    if not seen.running:
        return "in use" if seen.owner else "was not running"
    if not _send(home, member, signal.SIGTERM):
        return "was not running"
    if _is_gone(seen.state, seconds):
        return "stopped"
    children = list(_descendants(seen.state.pid))
    if _send(home, member, getattr(signal, "SIGKILL", signal.SIGTERM)):
        for child, start in children:
            with suppress(OSError):
                if process_lives(child, start):
                    os.kill(child, getattr(signal, "SIGKILL", signal.SIGTERM))
    if not _is_gone(seen.state, KILL_SECONDS):
        return "still running"
    write_member(home, member, replace(seen.state, status="stopped", doing="", why="it did not end when asked, and was killed"))
    return "killed"


def _is_gone(state: MemberState, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while process_lives(state.pid, state.start or None):
        if time.monotonic() > until:
            return False
        _reap(state.pid)
        time.sleep(GLANCE)
    return True


def _reap(pid: int) -> None:
    """Collect the process if it is our own child: until then it keeps its id."""
    with suppress(OSError):
        if hasattr(os, "WNOHANG"):
            os.waitpid(pid, os.WNOHANG)


def _send(home: Path, member: MailboxAddress, number: int) -> bool:
    """Send a signal to the member's process. False if that process is gone."""
    pid = see_member(home, member).state.pid
    with _held(pid) as descriptor:
        seen = see_member(home, member)  # again, now that the id cannot be reused
        if not seen.running or seen.state.pid != pid or process_lives(pid, seen.state.start or None) is False:
            return False
        with suppress(ProcessLookupError):
            if descriptor is not None:
                signal.pidfd_send_signal(descriptor, number)
            else:
                os.kill(pid, number)
            return True
    return False


@contextmanager
def _held(pid: int) -> Iterator[int | None]:
    """A descriptor of the process where the system has them; else None."""
    descriptor = None
    with suppress(OSError):
        descriptor = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _descendants(pid: int) -> Iterator[tuple[int, int | None]]:
    """Yield the ids and starts of the process's children and of theirs. Commands run in separate sessions, so a group misses them."""
    parents = _parents()
    found = {pid}
    for _ in range(len(parents)):
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return
        found |= more
        yield from ((child, start_ticks(child)) for child in more)


def _parents() -> dict[int, int]:
    """Return the parent of each process, as `ps` lists them; empty if that fails."""
    output = BoundedOutput(_MOST_LISTED)
    try:
        run_child(
            ChildProgram(["ps", "-A", "-o", "pid=,ppid="], "dropped"),
            cwd="/",
            environ=os.environ,
            timeout=_PS_SECONDS,
            take=output.take,
            grace=0,
        )
    except OSError:
        return {}
    rows = [line.split() for line in output.data.decode("ascii", "replace").splitlines()]
    return {int(row[0]): int(row[1]) for row in rows if len(row) == 2 and row[0].isdigit() and row[1].isdigit()}
