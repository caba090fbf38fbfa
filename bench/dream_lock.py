"""The lock of a dream under a herd and under kill -9, beside the protocol that is usual for such locks.

    python bench/dream_lock.py [--rounds N] [--seconds S] [--directory DIR] [--json]

Herd: 8 and 16 processes meet at a barrier and all try to take a lock that a dead process left, N rounds. Exactly one may win each; who
wins keeps it until all have tried. Shown: winners that overlapped another one, and rounds without exactly one winner.

Kill: 8 processes take and roll back the lock for S seconds while one after the other is killed with SIGKILL and started again. A winner
takes a kernel lock on a witness file; one that finds it taken overlaps another holder. Shown: kills, dreams begun, overlaps, and whether
the crashes count as a dream afterwards (the time of the last dream is not the one from before the run).

Faults (Lamina's only, see dream_faults.py): SIGKILL, ENOSPC or EIO before each call that changes the disk. Shown: tries and violations.

The usual protocol, as many tools have it: look at the file; a living process id, younger than an hour, means held; else write the own
process id, read it again, and hold the lock if it is still there. Rolling back sets the mtime that was there before.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import mmap
import multiprocessing
import os
import random
import shutil
import signal
import struct
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from dream_faults import faults

from lamina.disk.locks.dream_lock import DreamLock, HeldDreamLock
from lamina.disk.trees.rootdir import RootDir

NAME = ".consolidate-lock"
# Larger than any process id Linux gives.
NOBODY = 4_194_999
DAYS_AGO_NS = 2 * 86_400 * 1_000_000_000
HOUR = 3_600.0
HERDS = (8, 16)
KILLERS_HERD = 8
# A round has three barriers; one that is not passed by then means that a process died.
PATIENCE = 60.0


class Contender(Protocol):
    """`take` is True for a win; `put_back` ends a won dream as if it had not been."""

    def take(self) -> bool: ...
    def put_back(self) -> None: ...


class Ours:
    def __init__(self, directory: Path) -> None:
        self.lock = DreamLock(RootDir.open(directory))
        self.hold: HeldDreamLock | None = None

    def take(self) -> bool:
        got = self.lock.acquire(self.lock.last_ns())
        self.hold = got if isinstance(got, HeldDreamLock) else None
        return self.hold is not None

    def put_back(self) -> None:
        if self.hold is not None:
            self.hold.rollback()


class Usual:
    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        self.prior = 0

    def take(self) -> bool:
        try:
            self.prior = self.path.stat().st_mtime_ns
            body = self.path.read_text()
        except FileNotFoundError:
            self.prior, body = 0, ""
        if body.strip() and _lives(int(body)) and time.time() - self.prior / 1e9 < HOUR:
            return False
        self.path.write_text(str(os.getpid()))
        return self.path.read_text() == str(os.getpid())

    def put_back(self) -> None:
        self.path.write_text("")
        os.utime(self.path, ns=(self.prior, self.prior))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


Kind = Callable[[Path], Contender]
KINDS: dict[str, Kind] = {"usual": Usual, "lamina": Ours}


def abandoned(directory: Path) -> int:
    """Leaves the lock as a process does that died two days ago; its time."""
    path, then = directory / NAME, time.time_ns() - DAYS_AGO_NS
    path.write_text(str(NOBODY))
    os.utime(path, ns=(then, then))
    return path.stat().st_mtime_ns


class Counters:
    """Numbers that the processes share; each is written by one process only."""

    def __init__(self, count: int) -> None:
        self.memory = mmap.mmap(-1, 8 * count)

    def __getitem__(self, place: int) -> int:
        return int(struct.unpack_from("q", self.memory, 8 * place)[0])

    def __setitem__(self, place: int, value: int) -> None:
        struct.pack_into("q", self.memory, 8 * place, value)


def herd(kind: Kind, directory: Path, size: int, rounds: int) -> dict[str, int]:
    won = Counters(size)
    barrier = multiprocessing.get_context("fork").Barrier(size + 1)
    pids = [_forked(partial(_one_of_a_herd, kind(directory), won, place, barrier, rounds)) for place in range(size)]
    overlaps = odd = 0
    try:
        for _ in range(rounds):
            abandoned(directory)
            barrier.wait(PATIENCE)
            barrier.wait(PATIENCE)
            winners = sum(won[place] for place in range(size))
            overlaps += max(0, winners - 1)
            odd += winners != 1
            barrier.wait(PATIENCE)
    finally:
        _end(pids, kill=False)
    return {"rounds": rounds, "overlaps": overlaps, "not exactly one winner": odd}


def _one_of_a_herd(contender: Contender, won: Counters, place: int, barrier: Any, rounds: int) -> None:
    for _ in range(rounds):
        barrier.wait(PATIENCE)
        won[place] = contender.take()
        barrier.wait(PATIENCE)
        if won[place]:
            contender.put_back()
        barrier.wait(PATIENCE)


def killed(kind: Kind, directory: Path, size: int, seconds: float) -> dict[str, int | str]:
    before = abandoned(directory)
    (directory / "witness").touch()
    # Two numbers for each process: dreams begun, overlaps seen.
    counts = Counters(2 * size)

    def start(place: int) -> int:
        return _forked(lambda: _until_killed(kind(directory), directory, counts, 2 * place))

    pids = [start(place) for place in range(size)]
    kills, chance = 0, random.Random(1)
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            time.sleep(chance.random() * 0.01)
            place = chance.randrange(size)
            _end([pids[place]], kill=True)
            kills += 1
            pids[place] = start(place)
    finally:
        _end(pids, kill=True)
    return {
        "kills": kills,
        "dreams": sum(counts[2 * place] for place in range(size)),
        "overlaps": sum(counts[2 * place + 1] for place in range(size)),
        "crashes count": "no" if _last(directory) == before else "yes",
    }


def _until_killed(contender: Contender, directory: Path, counts: Counters, place: int) -> None:
    # Opened first: a dying process closes its lowest descriptor first, so the witness is free before the lock is.
    witness = os.open(directory / "witness", os.O_RDWR)
    while True:
        if not contender.take():
            continue
        counts[place] += 1
        try:
            fcntl.flock(witness, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            counts[place + 1] += 1
        time.sleep(0.000_5)
        fcntl.flock(witness, fcntl.LOCK_UN)
        contender.put_back()


def _last(directory: Path) -> int | None:
    with RootDir.open(directory) as root:
        lock = DreamLock(root)
        lock.recover()
        return lock.last_ns()


def _forked(act: Callable[[], None]) -> int:
    if pid := os.fork():
        return pid
    code = 1
    try:
        act()
        code = 0
    finally:
        os._exit(code)


def _end(pids: list[int], *, kill: bool) -> None:
    for pid in pids:
        if kill:
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        if not kill and status:
            raise SystemExit(f"process {pid} failed")


def table(rows: dict[str, dict[str, Any]]) -> str:
    lines = []
    for name, columns in rows.items():
        lines.append(name)
        lines += [
            f"  {kind:8}" + "".join(f"{key}: {value}   " for key, value in found.items()) for kind, found in columns.items()
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--directory", type=Path, help="where the files are made (default: the system's temporary directory)")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="dream-lock-", dir=given.directory))
    rows: dict[str, dict[str, Any]] = {}
    try:
        for size in HERDS:
            rows[f"herd of {size}"] = {
                name: herd(kind, _fresh(base / f"herd-{size}-{name}"), size, given.rounds) for name, kind in KINDS.items()
            }
        rows[f"kill -9, {KILLERS_HERD} processes, {given.seconds:g} s"] = {
            name: killed(kind, _fresh(base / f"kill-{name}"), KILLERS_HERD, given.seconds) for name, kind in KINDS.items()
        }
        rows["a fault at each changing call"] = {"lamina": faults(_fresh(base / "faults"))}
    finally:
        shutil.rmtree(base)
    print(json.dumps(rows) if given.json else table(rows))


def _fresh(directory: Path) -> Path:
    directory.mkdir()
    return directory


if __name__ == "__main__":
    main()
