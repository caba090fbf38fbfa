"""The owner of the consolidation lock, judged from the lock's files: values and rules, no writing.

Owns the record a holder leaves beside the lock, and the two questions asked of it: does its holder live, and how long has it held?
Invariant: doubt is never read as death. Only the kernel (a free lock on this machine's boot), another boot of the same machine,
or an hour gone by makes a holder one that may be replaced.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import NamedTuple

import msgspec

_SECOND = 1_000_000_000
# A dream takes minutes; one that has not come back after an hour hangs, or its machine is asleep or gone.
HELD_NS = 3_600 * _SECOND
# A clock may be a little wrong, and summer time is one hour; a time further ahead than that says nothing.
AHEAD_NS = 3_600 * _SECOND
# The largest process id any system gives (Windows: 32 bits).
_MOST_PID = (1 << 32) - 1
# The longest name a host may have.
_MOST_HOST = 255
_ZOMBIE_OR_DEAD = frozenset("ZXx")

# Either file is a line or two.
_PROC_BYTES = 4_096


class DreamLockHolder(NamedTuple):
    """For the user: who has the lock, since when (seconds since 1970), and whether it still runs."""

    pid: int
    since: float
    alive: bool


class HolderRecord(msgspec.Struct, frozen=True):
    """The record a holder leaves. It counts only beside a lock with the same process id and time."""

    pid: int
    mtime_ns: int
    prior_ns: int | None
    nonce: str
    host: str
    boot: str
    start: int | None
    boottime_ns: int


class ThisMachine(NamedTuple):
    """This machine and moment, as far as a holder is judged by them. `boot` is empty where the system has no such name."""

    host: str
    boot: str
    now_ns: int
    boottime_ns: int


class DreamLockState(NamedTuple):
    """What the lock's files say: no `mtime_ns` is no lock file, no `pid` is nobody, no `info` a holder that left no record.

    `locked` is the kernel's answer about the record: True while its holder lives, None where nobody was asked or it can't say.
    """

    mtime_ns: int | None = None
    pid: int | None = None
    info: HolderRecord | None = None
    locked: bool | None = None


def known_time(mtime_ns: int | None, now_ns: int) -> int | None:
    """The time of the last dream; None for never, and for a time so far ahead that some clock must have been wrong."""
    return None if mtime_ns is None or mtime_ns > now_ns + AHEAD_NS else mtime_ns


def is_held(state: DreamLockState, here: ThisMachine) -> bool:
    return state.pid is not None and is_young(state, here) and is_alive(state, here) is not False


def is_alive(state: DreamLockState, here: ThisMachine) -> bool | None:
    """None: it ran on another machine, which nobody here can ask."""
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
    """By the clock that nobody sets where both are of one boot, else by the wall clock; a time far ahead is not young."""
    if state.info is not None and same_boot(state.info, here) and here.boottime_ns >= state.info.boottime_ns:
        return here.boottime_ns - state.info.boottime_ns < HELD_NS
    since = known_time(state.mtime_ns, here.now_ns)
    return since is not None and here.now_ns - since < HELD_NS


def pid_in(body: bytes) -> int | None:
    """The process id that is all of a lock's body; anything else names nobody."""
    text = body.strip()
    pid = int(text) if text.isdigit() and len(text) <= len(str(_MOST_PID)) else 0
    return pid if 0 < pid <= _MOST_PID else None


# This machine


def this_machine(now_ns: int, boottime_ns: int) -> ThisMachine:
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return ThisMachine(host.encode("utf-8", "replace").decode()[:_MOST_HOST], boot_id(), now_ns, boottime_ns)


def boottime() -> int:
    """Nanoseconds since the machine started, sleep included. macOS counts sleep in CLOCK_MONOTONIC."""
    clock = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
    return time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)


def boot_id() -> str:
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read(_PROC_BYTES).strip()
    return ""


def process_lives(pid: int, start: int | None = None) -> bool | None:
    """Whether a process has this id (and began at tick `start`, if given); None where that can't be asked without harm."""
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
    """State and start of a process, from the 3rd and 22nd field. The 2nd, its name, may hold anything, even brackets."""
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read(_PROC_BYTES).rpartition(b")")[2].split()
        return fields[0].decode("ascii"), int(fields[19])
    return "", None
