"""The consolidation lock under a herd, SIGKILL and a failing disk: one holder, and a crash never counts as a dream."""

from __future__ import annotations

import errno
import os
import signal
import time
from pathlib import Path

import pytest

from lamina.core.errors import DiskError
from lamina.disk.files import DREAM_LOCK as LOCK
from lamina.disk.locks.dream_lock import GUARD, INFO, DreamLock, HeldDreamLock
from lamina.disk.trees.rootdir import RootDir

from ..processes import needs_fork, run_child, together
from .harness import Act, Fail, Fault, Kill, Prepare, Run, Say, every

pytestmark = [pytest.mark.exhaustive, needs_fork, pytest.mark.spec("D2", "Z5")]

# Only for a process that died: the others would wait for it for ever.
PATIENCE = 120
BEFORE = 1_700_000_000_000_000_123
# Between them the two errors meet every call; bench/dream_lock.py tries each of them at each.
FAULTS = pytest.mark.parametrize(
    ("fault", "start", "step"),
    [(Kill(), 1, 1), (Fail(errno.ENOSPC), 1, 2), (Fail(errno.EIO), 2, 2), (Fail(errno.EIO, forever=True), 1, 5)],
    ids=["kill", "full", "broken", "stays broken"],
)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process loses nothing that it has written: only a power loss does. The crash points stay."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def lock_of(directory: Path) -> DreamLock:
    return DreamLock(RootDir.open(directory))


def won(lock: DreamLock) -> HeldDreamLock:
    hold = lock.acquire(lock.last_ns())
    assert isinstance(hold, HeldDreamLock), hold
    return hold


def never(directory: Path) -> None:
    assert directory.is_dir()


def dreamt(directory: Path) -> None:
    (directory / LOCK).touch()
    os.utime(directory / LOCK, ns=(BEFORE, BEFORE))


def crashed(directory: Path) -> None:
    """The last dream was at BEFORE, and a later one died."""
    dreamt(directory)
    with RootDir.open(directory) as root:
        won(DreamLock(root))._held.release()


def finish(directory: Path, say: Say) -> None:
    hold = won(lock_of(directory))
    say(str(hold.acquired_ns))
    assert hold.commit()
    say("committed")


def give_up(directory: Path, say: Say) -> None:
    with won(lock_of(directory)) as hold, hold.fence():
        say("held")


def recover(directory: Path, say: Say) -> None:
    assert lock_of(directory).recover()
    say("recovered")


def last_after(run: Run) -> int | None:
    """Checks what holds after any fault: nobody holds the lock, the next dream begins, and its end puts the same time back."""
    with RootDir.open(run.directory) as root:
        root.sweep()
        lock = DreamLock(root)
        lock.recover()
        last = lock.last_ns()
        hold = won(lock)
        with hold.fence():
            pass
        assert hold.rollback()
        assert lock.last_ns() == last, run
    assert set(os.listdir(run.directory)) <= {LOCK, GUARD, INFO}, run
    return last


@FAULTS
@pytest.mark.usefixtures("crash_points")
def test_a_dream_that_was_not_finished_never_was(tmp_path: Path, fault: Fault, start: int, step: int) -> None:
    """Puts the lock back for a dead holder, takes it, writes, gives up."""
    runs = [(run, last_after(run)) for run in every(tmp_path, crashed, give_up, fault, start=start, step=step)]
    assert [run for run, last in runs if last != BEFORE] == []
    assert len(runs) * step > 40


@pytest.mark.parametrize(("prepare", "act", "before"), [(never, give_up, None), (crashed, recover, BEFORE)])
@pytest.mark.usefixtures("crash_points")
def test_a_killed_first_dream_and_a_killed_recovery_leave_the_time_before(
    tmp_path: Path, prepare: Prepare, act: Act, before: int | None
) -> None:
    for run in every(tmp_path, prepare, act, Kill()):
        assert last_after(run) == before, run


@FAULTS
@pytest.mark.usefixtures("crash_points")
def test_a_dream_counts_from_the_rename_that_finishes_it(tmp_path: Path, fault: Fault, start: int, step: int) -> None:
    seen = set()
    for run in every(tmp_path, dreamt, finish, fault, start=start, step=step):
        last = last_after(run)
        began = [int(text) for text in run.said if text.isdigit()]
        assert last in [BEFORE, *began], run
        assert "committed" not in run.said or last in began, run
        seen.add(last == BEFORE)
    assert seen == {True, False}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.usefixtures("crash_points")
def test_a_process_that_lives_on_after_an_error_can_dream_again(tmp_path: Path, code: int) -> None:
    def twice(directory: Path, say: Say) -> None:
        lock = lock_of(directory)
        try:
            with won(lock):
                pass
        except DiskError:
            lock.recover()
        assert lock.last_ns() == BEFORE
        won(lock).commit()
        say("done")

    for run in every(tmp_path, dreamt, twice, Fail(code), step=3):
        assert run.said == ("done",) or run.ended == "raised", run
        last_after(run)


def test_of_a_herd_on_a_lock_of_a_dead_holder_exactly_one_wins(tmp_path: Path) -> None:
    """Each winner keeps it until all have tried: they meet by files, so nothing is timed."""
    size, rounds = 6, 12
    for turn in range(rounds):
        (tmp_path / f"memory{turn}").mkdir()
        (crashed if turn % 2 else dreamt)(tmp_path / f"memory{turn}")

    def act(number: int) -> None:
        for turn in range(rounds):
            lock = lock_of(tmp_path / f"memory{turn}")
            hold = lock.acquire(lock.last_ns())
            (tmp_path / f"{turn}-{number}-{'won' if isinstance(hold, HeldDreamLock) else 'lost'}").touch()
            deadline = time.monotonic() + PATIENCE
            while len(list(tmp_path.glob(f"{turn}-*"))) < size:
                assert time.monotonic() < deadline, "a process is missing"
                os.sched_yield()
            if isinstance(hold, HeldDreamLock):
                hold.commit()

    together(size, act)
    assert [len(list(tmp_path.glob(f"{turn}-*-won"))) for turn in range(rounds)] == [1] * rounds


def test_a_holder_killed_at_any_moment_leaves_the_time_before(tmp_path: Path) -> None:
    dreamt(tmp_path)
    ready, tell = os.pipe()

    def dream() -> None:
        lock = lock_of(tmp_path)
        while True:
            with won(lock):
                os.write(tell, b"x")

    for kills in range(1, 6):
        pid = run_child(dream)
        # Somewhere in its n-th dream or behind it.
        os.read(ready, kills)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with RootDir.open(tmp_path) as root:
            DreamLock(root).recover()
            assert DreamLock(root).last_ns() == BEFORE
    os.close(ready)
    os.close(tell)
