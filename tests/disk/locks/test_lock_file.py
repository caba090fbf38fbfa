"""Locks: one holder at a time, freed by death, never inherited, never fooled by a swapped file."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from lamina.core.errors import LockHeld, PathRefused
from lamina.disk import crash_points as crash
from lamina.disk.locks.lock_file import LifeLock, guard, holder, live_holder
from lamina.language.text import render

from ..processes import needs_fork, run_child, together


def taken(path: Path) -> LifeLock:
    lock = LifeLock.acquire(path)
    assert lock is not None
    return lock


def test_two_life_locks_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    first = taken(tmp_path / "l")
    assert LifeLock.acquire(tmp_path / "l") is None
    first.close()
    assert not first.held
    with taken(tmp_path / "l") as second:
        assert second.held


def test_the_holder_is_named_for_a_message(tmp_path: Path) -> None:
    assert live_holder(tmp_path / "no" / "l") is None
    assert live_holder(tmp_path / "l") is None
    assert os.listdir(tmp_path) == []
    with taken(tmp_path / "l"):
        assert live_holder(tmp_path / "l") == holder(tmp_path / "l") == f"process {os.getpid()} on {os.uname().nodename}"
    assert live_holder(tmp_path / "l") is None


def test_the_holder_is_named_in_chinese(tmp_path: Path) -> None:
    (tmp_path / "l").write_bytes(b"process 7 on desk\n")
    assert render(holder(tmp_path / "l"), "zh") == "desk 上的进程 7"


@pytest.mark.parametrize("body", [b"", b"process 7 on \x1b[2J", b"\x1b[2J evil", b"\xff\xfe"])
def test_a_lock_file_without_a_readable_name_still_gives_a_sentence(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "l").write_bytes(body)
    assert holder(tmp_path / "l").isprintable()


@needs_fork
def test_a_child_does_not_hold_its_parents_lock_and_cannot_free_it(tmp_path: Path) -> None:
    lock = taken(tmp_path / "l")
    release, wait = os.pipe()
    tried, tell = os.pipe()

    def child() -> None:
        os.close(wait)
        assert not lock.held
        lock.close()
        assert LifeLock.acquire(tmp_path / "l") is None
        os.write(tell, b"x")
        os.read(release, 1)

    pid = run_child(child)
    os.close(tell)
    os.read(tried, 1)
    os.close(tried)
    assert LifeLock.acquire(tmp_path / "l") is None
    lock.close()
    # The child lives and waits; the lock is free all the same.
    taken(tmp_path / "l").close()
    os.close(wait)
    os.close(release)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@needs_fork
def test_a_child_that_outlives_a_killed_parent_does_not_keep_its_lock(tmp_path: Path) -> None:
    ready, tell = os.pipe()
    stay, leave = os.pipe()

    def child() -> None:
        os.write(tell, b"x")
        os.close(leave)
        os.read(stay, 1)

    def parent() -> None:
        lock = taken(tmp_path / "l")
        run_child(child)
        os.read(ready, 1)
        os.write(tell, b"y")
        assert lock.held
        os.kill(os.getpid(), signal.SIGKILL)

    pid = run_child(parent)
    os.waitpid(pid, 0)
    taken(tmp_path / "l").close()
    for fd in (ready, tell, stay, leave):
        os.close(fd)


@needs_fork
def test_of_many_processes_exactly_one_gets_the_lock(tmp_path: Path) -> None:
    """Each winner keeps it until all have tried: they meet by files, so nothing is timed."""

    def act(number: int) -> None:
        for turn in range(20):
            lock = LifeLock.acquire(tmp_path / f"lock{turn}")
            (tmp_path / f"{turn}-{number}-{'won' if lock else 'lost'}").touch()
            while len(list(tmp_path.glob(f"{turn}-*"))) < 6:
                os.sched_yield()
            if lock:
                lock.close()

    together(6, act)
    assert [len(list(tmp_path.glob(f"{turn}-*-won"))) for turn in range(20)] == [1] * 20


@needs_fork
def test_looking_at_a_lock_never_keeps_anybody_from_taking_it(tmp_path: Path) -> None:
    def act(number: int) -> None:
        for _ in range(300):
            if number:
                live_holder(tmp_path / "l")
            else:
                taken(tmp_path / "l").close()

    together(3, act)


def test_somebody_who_looks_in_the_very_moment_is_waited_for(tmp_path: Path) -> None:
    import fcntl

    (tmp_path / "l").touch()
    with open(tmp_path / "l") as looker:
        tries = 0

        def look(name: str, _: int) -> None:
            """Has the shared lock during the first try and lets go behind it."""
            nonlocal tries
            tries += name == "lock.flock"
            fcntl.flock(looker, fcntl.LOCK_SH if tries == 1 else fcntl.LOCK_UN)

        with crash.watched(look):
            taken(tmp_path / "l").close()
        assert tries == 3


def test_a_lock_file_that_is_replaced_while_it_is_locked_does_not_count(tmp_path: Path) -> None:
    """Somebody unlinks the file between our open and our lock: a lock on the old inode would exclude nobody."""
    (tmp_path / "l").touch()
    swapped = False

    def swap(name: str, _: int) -> None:
        nonlocal swapped
        if name == "lock.flock" and not swapped:
            swapped = True
            (tmp_path / "l").unlink()
            (tmp_path / "l").touch()

    with crash.watched(swap):
        lock = taken(tmp_path / "l")
    assert swapped
    assert LifeLock.acquire(tmp_path / "l") is None
    lock.close()


def test_a_planted_link_is_neither_followed_nor_truncated(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "soft").symlink_to(tmp_path / "victim")
    os.link(tmp_path / "victim", tmp_path / "hard")
    for name in ("soft", "hard"):
        with pytest.raises(PathRefused):
            LifeLock.acquire(tmp_path / name)
        with pytest.raises(PathRefused), guard(tmp_path / name):
            pass
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_a_guard_waits_for_another_thread_and_no_longer_than_it_was_told(tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with guard(tmp_path / "g"):
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    with pytest.raises(LockHeld), guard(tmp_path / "g", timeout=0.01):
        pass
    leave.set()
    with guard(tmp_path / "g", timeout=60):
        thread.join()


@needs_fork
def test_a_child_forked_inside_a_guard_does_not_hold_it(tmp_path: Path) -> None:
    stay, leave = os.pipe()

    def child() -> None:
        os.close(leave)
        os.read(stay, 1)

    with guard(tmp_path / "g"):
        pid = run_child(child)
    with guard(tmp_path / "g", timeout=0):
        os.close(leave)
    os.close(stay)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_lock_file_is_private_and_stays(tmp_path: Path) -> None:
    taken(tmp_path / "d" / "l").close()
    assert (tmp_path / "d" / "l").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o700
