"""Determines the owner of the consolidation lock from the lock's files. Writes nothing.

Owns the format of the owner's record, and the two questions about it: is its owner alive, and how long has it held the lock?
Invariant: in doubt, an owner counts as alive. It may be replaced only if the kernel says so (a free lock in the same boot), after
a reboot of the same machine, or after an hour.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import NamedTuple

import msgspec

_SECOND = 1_000_000_000
# A dream takes minutes. After an hour it hangs, or its machine is asleep or gone.
HELD_NS = 3_600 * _SECOND
# A clock may be slightly wrong, and summer time is one hour. A time further ahead is meaningless.
AHEAD_NS = 3_600 * _SECOND
# The largest process id of any system (Windows: 32 bits).
_MOST_PID = (1 << 32) - 1
# The maximum length of a host name.
_MOST_HOST = 255
_ZOMBIE_OR_DEAD = frozenset("ZXx")

# Maximum size read of a file in /proc; each has a line or two.
_PROC_BYTES = 4_096


class DreamLockHolder(NamedTuple):
    """The owner of the lock, for display: process id, start (seconds since 1970), and whether it still runs."""

    pid: int
    since: float
    alive: bool


class HolderRecord(msgspec.Struct, frozen=True):
    """The owner's record. It counts only together with a lock of the same process id and time."""

    pid: int
    mtime_ns: int
    prior_ns: int | None
    nonce: str
    host: str
    boot: str
    start: int | None
    boottime_ns: int


class ThisMachine(NamedTuple):
    """This machine and the current time, for judging an owner. `boot` is empty on systems without a boot id."""

    host: str
    boot: str
    now_ns: int
    boottime_ns: int


class DreamLockState(NamedTuple):
    """The content of the lock's files. Without `mtime_ns` there is no lock file, without `pid` no owner, without `info` no
    record.

    `locked` is the kernel's answer about the record: True while its owner is alive, None if it was not asked or cannot tell.
    """

    mtime_ns: int | None = None
    pid: int | None = None
    info: HolderRecord | None = None
    locked: bool | None = None


def known_time(mtime_ns: int | None, now_ns: int) -> int | None:
    """Return the time of the last dream; None for never, or for a time so far ahead that a clock must have been wrong."""
    return None if mtime_ns is None or mtime_ns > now_ns + AHEAD_NS else mtime_ns


def is_held(state: DreamLockState, here: ThisMachine) -> bool:
    return state.pid is not None and is_young(state, here) and is_alive(state, here) is not False


def is_alive(state: DreamLockState, here: ThisMachine) -> bool | None:
    """Return whether the owner is alive; None if it ran on another machine and cannot be checked."""
    if state.info is None:
        return None if state.pid is None else process_lives(state.pid)
    if state.locked:
        return True
    if (same := same_boot(state.info, here)) is False:
        # No process survives a restart of its machine.
        return False if state.info.host == here.host else None
    if same is None and state.info.host != here.host:
        return None
    return False if state.locked is False else process_lives(state.info.pid, state.info.start)


def same_boot(info: HolderRecord, here: ThisMachine) -> bool | None:
    return info.boot == here.boot if info.boot and here.boot else None


def is_young(state: DreamLockState, here: ThisMachine) -> bool:
    """Return whether the lock is younger than an hour.

    Within one boot, the monotonic clock decides; otherwise the wall clock. A time far in the future does not count as young.
    """
    if state.info is not None and same_boot(state.info, here) and here.boottime_ns >= state.info.boottime_ns:
        return here.boottime_ns - state.info.boottime_ns < HELD_NS
    since = known_time(state.mtime_ns, here.now_ns)
    return since is not None and here.now_ns - since < HELD_NS


def pid_in(body: bytes) -> int | None:
    """Return the process id if it is the whole content of the lock; otherwise the lock has no owner."""
    text = body.strip()
    pid = int(text) if text.isdigit() and len(text) <= len(str(_MOST_PID)) else 0
    return pid if 0 < pid <= _MOST_PID else None


# This machine


def this_machine(now_ns: int, boottime_ns: int) -> ThisMachine:
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return ThisMachine(host.encode("utf-8", "replace").decode()[:_MOST_HOST], boot_id(), now_ns, boottime_ns)


def boottime() -> int:
    """Return the nanoseconds since the machine started, including sleep. On macOS, CLOCK_MONOTONIC includes sleep."""
    clock = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
    return time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)


def boot_id() -> str:
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read(_PROC_BYTES).strip()
    return ""


def process_lives(pid: int, start: int | None = None) -> bool | None:
    """Return whether a process has this id (and started at tick `start`, if given); None if there is no safe way to check."""
    if os.name != "posix":
        # Signal 0 is Ctrl-C on Windows.
        return None
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    state, began = _proc_stat(pid)
    return state not in _ZOMBIE_OR_DEAD and (start is None or began is None or began == start)


def start_ticks(pid: int) -> int | None:
    return _proc_stat(pid)[1]


def _proc_stat(pid: int) -> tuple[str, int | None]:
    """Return the state and start of a process: fields 3 and 22. Field 2, its name, may contain anything, even brackets."""
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read(_PROC_BYTES).rpartition(b")")[2].split()
        return fields[0].decode("ascii"), int(fields[19])
    return "", None
