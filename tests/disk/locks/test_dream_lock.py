"""The consolidation lock: one dream at a time, a time that only a finished dream moves, and a replaced holder that can't write."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from lamina.core.errors import DiskError, Fenced, LockHeld, PathRefused
from lamina.disk import crash_points as crash
from lamina.disk.files import DREAM_LOCK as LOCK
from lamina.disk.locks import kernel_lock
from lamina.disk.locks.dream_lock import GUARD, INFO, DreamLock, HeldDreamLock, NotWon
from lamina.disk.locks.dream_lock_owner import DreamLockHolder, HolderRecord
from lamina.disk.locks.lock_file import guard
from lamina.disk.trees.rootdir import RootDir

from ..processes import needs_fork, run_child

pytestmark = pytest.mark.spec("D2")

MINUTE = 60 * 1_000_000_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOW = 1_790_000_000_000_000_123
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")
# Larger than any process id of Linux and macOS.
NOBODY = 4_194_999


class Place:
    """A memory directory, and a machine whose two clocks a test sets."""

    def __init__(self, root: RootDir) -> None:
        self.root = root
        self.path = root.path
        self.wall = NOW
        self.boot = 10 * HOUR

    def lock(self) -> DreamLock:
        return DreamLock(self.root, clock=lambda: self.wall, boottime=lambda: self.boot)

    def won(self, expected: int | None = None) -> HeldDreamLock:
        got = self.lock().acquire(expected)
        assert isinstance(got, HeldDreamLock), got
        return got

    def lost(self, expected: int | None) -> str:
        got = self.lock().acquire(expected)
        assert isinstance(got, NotWon)
        assert got.why.endswith(".")
        return got.reason

    def later(self, ns: int) -> None:
        self.wall += ns
        self.boot += ns

    def mtime(self) -> int | None:
        return (self.path / LOCK).stat().st_mtime_ns if (self.path / LOCK).exists() else None

    def leave(self, body: bytes, mtime_ns: int) -> None:
        """The state that another program leaves: the lock alone."""
        (self.path / LOCK).write_bytes(body)
        os.utime(self.path / LOCK, ns=(mtime_ns, mtime_ns))

    def leave_record(self, **changed: object) -> None:
        """Rewrites the record of the present holder, as another machine would have written it."""
        info = msgspec.json.decode((self.path / INFO).read_bytes(), type=HolderRecord)
        (self.path / INFO).write_bytes(msgspec.json.encode(msgspec.structs.replace(info, **changed)))

    def names(self) -> set[str]:
        return set(os.listdir(self.path))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with RootDir.open(tmp_path / "memory") as root:
        yield Place(root)


def die(hold: HeldDreamLock) -> None:
    """The state after a process was killed: the kernel released its lock on the record, and the files stay."""
    hold.leave()


# Taking, finishing, giving up


def test_the_first_dream_takes_the_lock_and_leaves_the_time_it_began(place: Place) -> None:
    assert place.lock().last_ns() is None
    hold = place.won(None)
    assert (place.path / LOCK).read_text().split() == [str(os.getpid())]
    assert (hold.acquired_ns, hold.prior_ns) == (place.mtime(), None) == (NOW, None)
    place.later(20 * MINUTE)
    assert hold.commit()
    assert place.lock().last_ns() == NOW
    assert (place.path / LOCK).read_bytes() == b""
    assert place.names() == {LOCK, GUARD}


def test_a_rollback_puts_the_time_before_back_and_never_is_no_file(place: Place) -> None:
    assert place.won(None).rollback()
    assert place.lock().last_ns() is None
    assert place.names() == {GUARD}
    place.won(None).commit()
    place.later(DAY)
    assert place.won(NOW).rollback()
    assert place.lock().last_ns() == NOW


def test_what_is_resolved_once_stays_so(place: Place) -> None:
    hold = place.won(None)
    assert hold.commit()
    assert not hold.rollback()
    assert not hold.commit()
    with pytest.raises(Fenced), hold.fence():
        pass
    assert place.lock().last_ns() == NOW


def test_leaving_the_block_unresolved_rolls_back(place: Place) -> None:
    with place.won(None):
        pass
    assert place.mtime() is None
    with pytest.raises(ZeroDivisionError), place.won(None):
        raise ZeroDivisionError
    assert place.mtime() is None
    with place.won(None) as hold:
        hold.commit()
    assert place.mtime() == NOW


@pytest.mark.spec("D2", "Z5")
def test_while_one_dreams_no_other_does(place: Place) -> None:
    hold = place.won(None)
    assert place.lost(None) == place.lost(NOW) == "held"
    assert place.lock().holder() == DreamLockHolder(os.getpid(), NOW / 1e9, True)
    assert not place.lock().recover()
    hold.commit()
    assert place.lock().holder() is None


@pytest.mark.spec("D2", "Z5")
def test_two_that_passed_the_same_gate_do_not_dream_one_after_the_other(place: Place) -> None:
    seen = place.lock().last_ns()
    place.won(seen).commit()
    assert place.lost(seen) == "since"
    place.later(DAY)
    seen = place.lock().last_ns()
    place.won(seen).rollback()
    # The first gave up: the value stands again, and the other may try.
    place.won(seen)


def test_nobody_gets_in_while_a_dream_writes_inside_its_fence(place: Place) -> None:
    hold = place.won(None)
    with hold.fence(), pytest.raises(LockHeld), guard(place.path / GUARD, timeout=0):
        pass
    with guard(place.path / GUARD, timeout=0):
        pass


def test_a_holder_is_told_to_end_five_minutes_before_it_can_be_replaced(place: Place) -> None:
    hold = place.won(None)
    place.later(55 * MINUTE - 1)
    assert not hold.overdue()
    place.boot += 1
    assert hold.overdue()
    assert place.lost(NOW) == "held"


def test_asking_makes_no_file(place: Place) -> None:
    lock = place.lock()
    assert (lock.last_ns(), lock.holder(), lock.recover()) == (None, None, False)
    assert place.names() == set()


def test_a_listing_of_the_directory_does_not_show_the_lock(place: Place) -> None:
    (place.path / "topic.md").touch()
    place.won(None)
    assert [entry.name for entry in place.root.listdir()] == ["topic.md"]


# A holder that died


@pytest.mark.spec("D2", "Z5")
@pytest.mark.parametrize("prior", [None, NOW - 3 * DAY])
def test_a_crash_does_not_count_as_a_dream(place: Place, prior: int | None) -> None:
    if prior is not None:
        place.leave(b"", prior)
    die(place.won(prior))
    assert place.lock().holder() == DreamLockHolder(os.getpid(), NOW / 1e9, False)
    assert place.lock().recover()
    assert place.lock().last_ns() == prior
    assert not place.lock().recover()
    assert place.names() == ({GUARD} if prior is None else {GUARD, LOCK})


@pytest.mark.spec("D2", "Z12")
def test_a_hold_that_is_left_is_that_of_a_dead_one(place: Place) -> None:
    """Whoever leaves something to put right: the next session sees it by the lock."""
    place.leave(b"", NOW - DAY)
    with place.won(NOW - DAY) as hold:
        hold.leave()
    assert place.lock().holder() == DreamLockHolder(os.getpid(), NOW / 1e9, False)
    assert not hold.commit()
    assert place.lock().recover()
    assert place.lock().last_ns() == NOW - DAY


def test_a_process_id_that_lives_again_is_no_holder(place: Place) -> None:
    """Its record names this very process, which lives: only the kernel knows that the holder does not."""
    die(place.won(None))
    assert place.won(NOW).prior_ns is None


def test_any_number_of_crashes_keeps_the_time_before(place: Place) -> None:
    place.leave(b"", NOW - DAY)
    expected = NOW - DAY
    for _ in range(3):
        hold = place.won(expected)
        assert hold.prior_ns == NOW - DAY
        expected = hold.acquired_ns
        die(hold)
        place.later(MINUTE)
    place.won(expected).rollback()
    assert place.mtime() == NOW - DAY


def test_a_machine_that_was_restarted_has_no_holder(place: Place) -> None:
    die(place.won(None))
    place.leave_record(boot="another")
    place.boot = MINUTE
    assert place.lock().recover()


def test_a_holder_on_another_machine_has_its_hour(place: Place) -> None:
    die(place.won(None))
    place.leave_record(boot="another", host="elsewhere")
    place.wall += HOUR - 1
    assert not place.lock().recover()
    assert place.lost(NOW) == "held"
    place.wall += 1
    assert place.lock().holder() == DreamLockHolder(os.getpid(), NOW / 1e9, False)
    assert place.lock().recover()
    assert place.mtime() is None


def test_without_a_name_for_the_boot_the_host_decides(place: Place) -> None:
    die(place.won(None))
    place.leave_record(boot="", host="elsewhere")
    assert place.lost(NOW) == "held"
    place.leave_record(host=os.uname().nodename)
    assert place.won(NOW).prior_ns is None


@pytest.mark.parametrize("record", [b"", b"{", b'{"pid": 1}', b"[]", b"\xff" * 9_000])
def test_a_damaged_record_says_nothing(place: Place, record: bytes) -> None:
    place.leave(b"%d\n" % NOBODY, NOW - MINUTE)
    (place.path / INFO).write_bytes(record)
    assert not place.lock().recover()
    assert place.won(NOW - MINUTE).prior_ns == NOW - MINUTE


@pytest.mark.parametrize("prior", [None, NOW - DAY])
def test_an_error_behind_the_rename_that_cannot_be_put_right_leaves_a_dead_holder(place: Place, prior: int | None) -> None:
    """The disk fails when the lock is named already, and takes no file and no removal of the lock after that."""
    if prior is not None:
        place.leave(b"", prior)
    renames = 0

    def fail(name: str, _: int) -> None:
        nonlocal renames
        renames += name == "temp.rename"
        if renames == 2 and name in ("dir.fsync", "temp.create", "remove.unlink"):
            renames += name in ("temp.create", "remove.unlink")
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with crash.watched(fail), pytest.raises(DiskError):
        place.lock().acquire(prior)
    assert place.mtime() == NOW
    assert place.lock().recover()
    assert place.mtime() == prior


# A holder that was replaced


@pytest.mark.spec("D2", "Z5")
def test_a_holder_of_an_hour_is_replaced_and_can_change_nothing_any_more(place: Place) -> None:
    place.leave(b"", NOW - DAY)
    old = place.won(NOW - DAY)
    place.later(HOUR - 1)
    assert place.lost(NOW) == "held"
    place.later(1)
    new = place.won(NOW)
    assert new.prior_ns == NOW - DAY
    with pytest.raises(Fenced, match="lost its lock"), old.fence():
        pass
    assert not old.rollback()
    assert place.mtime() == new.acquired_ns == NOW + HOUR
    assert place.lost(NOW - DAY) == place.lost(new.acquired_ns) == "held"
    with new.fence():
        pass
    assert new.commit()
    assert not old.commit()
    assert place.lock().last_ns() == NOW + HOUR


def test_a_replaced_holder_that_leaves_its_block_changes_nothing(place: Place) -> None:
    with place.won(None):
        place.later(HOUR)
        new = place.won(NOW)
    assert place.mtime() == new.acquired_ns
    with new.fence():
        pass


@pytest.mark.parametrize(
    "change", [lambda lock: os.utime(lock, ns=(NOW + 1, NOW + 1)), Path.unlink, lambda lock: lock.write_text("1")]
)
def test_a_lock_that_somebody_else_changed_is_not_ours_any_more(place: Place, change: Callable[[Path], object]) -> None:
    hold = place.won(None)
    change(place.path / LOCK)
    with pytest.raises(Fenced), hold.fence():
        pass
    assert not hold.commit()


# Clocks


@LINUX
@pytest.mark.parametrize("jump", [-3 * DAY, 3_650 * DAY], ids=["three days back", "ten years ahead"])
def test_a_wall_clock_that_is_set_neither_frees_nor_keeps_the_lock(place: Place, jump: int) -> None:
    place.won(None)
    place.wall += jump
    place.boot += HOUR - 1
    assert place.lost(place.lock().last_ns()) == "held"
    place.boot += 1
    assert place.won(place.lock().last_ns()).prior_ns is None


def test_a_time_more_than_an_hour_ahead_is_unknown_and_becomes_now(place: Place) -> None:
    place.leave(b"", NOW + HOUR)
    assert place.lock().last_ns() == NOW + HOUR
    place.leave(b"", NOW + HOUR + 1)
    assert place.lock().last_ns() is None
    hold = place.won(None)
    assert hold.prior_ns == NOW
    hold.rollback()
    assert place.lock().last_ns() == NOW


def test_a_clock_set_back_three_days_delays_dreams_by_no_more_than_the_gate(place: Place) -> None:
    place.won(None).commit()
    place.wall -= 3 * DAY
    hold = place.won(place.lock().last_ns())
    hold.commit()
    assert place.lock().last_ns() == NOW - 3 * DAY


def test_a_file_system_that_keeps_whole_seconds_is_believed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = os.utime
    second = 1_000_000_000

    def rounded(path: int, *, ns: tuple[int, int]) -> None:
        exact(path, ns=(ns[0] // second * second, ns[1] // second * second))

    monkeypatch.setattr(os, "utime", rounded)
    hold = place.won(None)
    assert hold.acquired_ns == NOW // second * second
    with hold.fence():
        pass
    assert hold.commit()
    assert place.lock().last_ns() == hold.acquired_ns


# Other programs


@pytest.mark.parametrize("body", [b"%d", b"%d\n"])
def test_the_lock_of_another_program_is_honoured_for_an_hour(place: Place, body: bytes) -> None:
    place.leave(body % os.getppid(), NOW - HOUR + 1)
    assert place.lock().holder() == DreamLockHolder(os.getppid(), (NOW - HOUR + 1) / 1e9, True)
    assert place.lost(NOW - HOUR + 1) == "held"
    assert not place.lock().recover()
    place.wall += 1
    assert place.lock().holder() is None
    hold = place.won(NOW - HOUR + 1)
    hold.rollback()
    assert place.mtime() == NOW - HOUR + 1


@pytest.mark.parametrize("body", [b"", b"%d" % NOBODY, b"no number", b"-1", b"0", b"9" * 60, b"1\n2", "٣".encode()])
def test_a_body_that_names_no_living_process_is_nobody(place: Place, body: bytes) -> None:
    place.leave(body, NOW - MINUTE)
    assert place.lock().holder() is None
    assert place.won(NOW - MINUTE).prior_ns == NOW - MINUTE


def test_a_living_process_with_a_time_far_ahead_does_not_wedge_the_lock(place: Place) -> None:
    place.leave(b"%d" % os.getppid(), NOW + 2 * HOUR)
    assert place.won(None).prior_ns == NOW


@LINUX
def test_a_zombie_is_no_holder(place: Place) -> None:
    pid = run_child(lambda: None)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    place.leave(b"%d" % pid, NOW)
    assert place.lock().holder() is None
    os.waitpid(pid, 0)


# What stands where our files should be


def link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def second_name(path: Path, victim: Path) -> None:
    os.link(victim, path)


def fifo(path: Path, victim: Path) -> None:
    os.mkfifo(path)


def directory(path: Path, victim: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("name", [LOCK, GUARD, INFO])
@pytest.mark.parametrize("plant", [link, second_name, fifo, directory])
def test_what_is_planted_is_refused_in_one_sentence(place: Place, name: str, plant: Callable[[Path, Path], None]) -> None:
    victim = place.path.parent / "victim"
    victim.write_bytes(b"precious")
    plant(place.path / name, victim)
    with pytest.raises(PathRefused) as refused:
        place.lock().acquire(None)
    assert str(place.path / name) in str(refused.value)
    assert "\n" not in str(refused.value)
    if name == LOCK:
        with pytest.raises(PathRefused):
            place.lock().last_ns()
    if name == INFO:
        place.leave(b"%d" % NOBODY, NOW)
        with pytest.raises(PathRefused):
            place.lock().acquire(NOW)
    assert victim.read_bytes() == b"precious"


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_all_three_files_are_private_whatever_the_umask(place: Place, mask: int) -> None:
    before = os.umask(mask)
    try:
        hold = place.won(None)
        modes = {name: (place.path / name).stat().st_mode & 0o777 for name in place.names()}
        hold.commit()
    finally:
        os.umask(before)
    assert modes == {LOCK: 0o600, GUARD: 0o600, INFO: 0o600}
    assert (place.path / LOCK).stat().st_mode & 0o777 == 0o600


# No locks, and forks


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP], ids=errno.errorcode.get)
@pytest.mark.parametrize("first", [1, 2, 3], ids=["none at all", "not for a temporary file", "not for the record"])
def test_where_there_are_no_locks_there_is_no_dream(place: Place, code: int, first: int) -> None:
    asked = 0

    def refuse(name: str, _: int) -> None:
        nonlocal asked
        asked += name == "lock.flock"
        if name == "lock.flock" and asked >= first:
            raise OSError(code, os.strerror(code))

    with crash.watched(refuse):
        assert place.lost(None) == "unsupported"
    assert place.names() <= {GUARD}


def test_where_python_has_no_locks_there_is_no_dream(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_lock, "fcntl", None)
    monkeypatch.setattr(kernel_lock, "msvcrt", None)
    assert place.lost(None) == "unsupported"
    assert place.names() == set()


@needs_fork
def test_a_forked_child_holds_nothing_and_can_end_nothing(place: Place) -> None:
    hold = place.won(None)

    def child() -> None:
        with pytest.raises(Fenced), hold.fence():
            pass
        assert not hold.commit()
        assert not hold.rollback()
        with hold:
            assert place.lost(NOW) == "held"

    assert os.waitstatus_to_exitcode(os.waitpid(run_child(child), 0)[1]) == 0
    with hold.fence():
        pass
    assert hold.commit()


@needs_fork
def test_a_child_that_outlives_a_killed_holder_does_not_keep_the_lock(place: Place) -> None:
    ready, tell = os.pipe()
    stay, leave = os.pipe()

    def child() -> None:
        os.close(leave)
        os.write(tell, b"x")
        os.read(stay, 1)

    def parent() -> None:
        place.won(None)
        run_child(child)
        os.read(ready, 1)
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(run_child(parent), 0)
    assert place.lock().recover()
    for fd in (ready, tell, stay, leave):
        os.close(fd)
