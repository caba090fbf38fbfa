"""SIGKILL before every system call of every writer: old content or new, acknowledged data present, the next start works."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.disk.append import Appender
from lamina.disk.files import replace, update
from lamina.disk.locks.lock_file import LifeLock, guard, live_holder
from lamina.disk.temp_files import is_temp, sweep_temps
from lamina.disk.trees.rootdir import RootDir

from ..processes import needs_fork
from ..staging import staged
from .harness import Act, Fail, Kill, Say, every, points

pytestmark = needs_fork

OLD = b"old " * 2_000
NEW = b"new! " * 3_000
TORN = pytest.mark.parametrize("torn", [False, True], ids=["between calls", "in the middle of a write"])


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.rglob("*") if path.is_file()}


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def write_old(directory: Path) -> None:
    (directory / "f").write_bytes(OLD)


def nothing(directory: Path) -> None:
    assert directory.is_dir()


def do_replace(directory: Path, say: Say) -> None:
    replace(directory / "f", NEW)
    say("done")


def do_update(directory: Path, say: Say) -> None:
    update(directory / "f", lambda _: NEW)
    say("done")


def do_root_replace(directory: Path, say: Say) -> None:
    with RootDir.open(directory) as root:
        root.replace("a/b/f", NEW)
        say("done")


def do_staged(directory: Path, say: Say) -> None:
    with staged(directory / "f", NEW, mtime_ns=10**18) as temp:
        temp.publish()
        say("done")


@pytest.mark.spec("Z1", "Z2")
@TORN
@pytest.mark.parametrize("prepare", [write_old, nothing])
@pytest.mark.parametrize("act", [do_replace, do_update, do_staged])
@pytest.mark.usefixtures("crash_points")
def test_a_killed_writer_leaves_old_or_new_and_the_next_one_works(
    tmp_path: Path, prepare: Callable[[Path], None], act: Act, torn: bool
) -> None:
    before = OLD if prepare is write_old else None
    seen = set()
    for run in every(tmp_path, prepare, act, Kill(torn)):
        file = run.directory / "f"
        seen.add(content(file))
        assert content(file) in (before, NEW), run
        assert content(file) == NEW or not run.said, run
        sweep_temps(run.directory)
        assert names(run.directory) <= {"f", ".f.lock"}, run
        update(file, lambda found: (found or b"") + b"more")
        assert file.read_bytes().endswith(b"more")
    assert seen == {before, NEW}


@TORN
@pytest.mark.usefixtures("crash_points")
def test_a_killed_write_inside_a_root_leaves_directories_and_files_whole(tmp_path: Path, torn: bool) -> None:
    for run in every(tmp_path, nothing, do_root_replace, Kill(torn)):
        file = run.directory / "a" / "b" / "f"
        assert content(file) in (None, NEW), run
        assert content(file) == NEW or not run.said, run
        with RootDir.open(run.directory) as root:
            root.sweep()
            assert not any(map(is_temp, names(run.directory))), run
            root.replace("a/b/f", OLD)
            assert root.read_bytes("a/b/f", 1 << 20) == OLD


def do_append(directory: Path, say: Say) -> None:
    with Appender.open(directory / "deep" / "log") as log:
        for number in range(3):
            log.append([b"%d" % number * 50_000, b"second of %d" % number])
            say(str(number))
            log.sync()


def lines_of(number: int) -> list[bytes]:
    return [b"%d" % number * 50_000, b"second of %d" % number]


@TORN
@pytest.mark.usefixtures("crash_points")
def test_a_killed_append_loses_at_most_its_own_records(tmp_path: Path, torn: bool) -> None:
    for run in every(tmp_path, nothing, do_append, Kill(torn)):
        with Appender.open(run.directory / "deep" / "log") as log:
            log.append([b"after the crash"])
        lines = (run.directory / "deep" / "log").read_bytes().split(b"\n")
        good = [line for number in range(3) for line in lines_of(number) if line in lines]
        acknowledged = [line for number in map(int, run.said) for line in lines_of(number)]
        assert good[: len(acknowledged)] == acknowledged, run
        assert lines[-2:] == [b"after the crash", b""], run
        stubs = [line for line in lines[:-2] if line not in good]
        assert len(stubs) <= 1, run
        assert not stubs or torn, run


def do_life_lock(directory: Path, say: Say) -> None:
    lock = LifeLock.acquire(directory / "session.lock")
    assert lock is not None
    say("held")
    lock.close()


@pytest.mark.usefixtures("crash_points")
def test_a_killed_holder_frees_its_life_lock(tmp_path: Path) -> None:
    for run in every(tmp_path, nothing, do_life_lock, Kill()):
        path = run.directory / "session.lock"
        assert live_holder(path) is None, run
        with LifeLock.acquire(path) or pytest.fail(str(run)):
            assert live_holder(path) == f"process {os.getpid()} on {os.uname().nodename}", run


def leave_a_temp(directory: Path) -> None:
    """The file that a writer leaves if it is killed before its rename."""
    for run in every(directory, write_old, do_replace, Kill()):
        if run.point == "temp.rename":
            run.directory.rename(directory / "left")
            break
    assert any(map(is_temp, names(directory / "left")))


def do_sweep(directory: Path, say: Say) -> None:
    say(str(sweep_temps(directory / "left")))


@pytest.mark.usefixtures("crash_points")
def test_a_killed_sweep_is_finished_by_the_next(tmp_path: Path) -> None:
    for run in every(tmp_path, leave_a_temp, do_sweep, Kill()):
        assert run.said in ((), ("1",)), run
        sweep_temps(run.directory / "left")
        assert names(run.directory / "left") == {"f"}, run
        assert (run.directory / "left" / "f").read_bytes() == OLD, run


def hold_the_guard(directory: Path, say: Say) -> None:
    with guard(directory / "g"):
        say("held")


@pytest.mark.usefixtures("crash_points")
def test_a_killed_holder_frees_its_guard(tmp_path: Path) -> None:
    for run in every(tmp_path, nothing, hold_the_guard, Kill()):
        with guard(run.directory / "g", timeout=0):
            assert (run.directory / "g").exists(), run


def test_data_is_durable_before_its_name_and_the_name_before_the_answer(tmp_path: Path) -> None:
    seen = points(tmp_path, do_replace)
    order = ["temp.create", "lock.flock", "temp.write", "temp.fsync", "temp.rename", "dir.fsync"]
    assert [name for name in seen if name in order] == order


def test_a_new_directory_is_durable_before_a_file_is_made_in_it(tmp_path: Path) -> None:
    seen = points(tmp_path, do_root_replace)
    assert seen.count("dir.make") == 3  # the root itself is tried too, and stands already
    made = [place for place, name in enumerate(seen) if name == "dir.make"][1:]
    assert all(seen[place + 1] == "dir.fsync" for place in made)
    assert max(made) < seen.index("temp.create")


def test_without_full_durability_nothing_waits_for_the_disk(tmp_path: Path) -> None:
    seen = points(tmp_path, lambda directory, _: replace(directory / "f", NEW, durability="process"))
    assert "temp.rename" in seen
    assert not [name for name in seen if name.endswith("fsync")]


@pytest.mark.usefixtures("crash_points")
def test_the_harness_meets_each_point_once_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    expected = points(tmp_path / "plain", do_replace)
    assert len(expected) > 6
    assert [run.point for run in every(tmp_path, nothing, do_replace, Kill())] == [*expected, ""]


@pytest.mark.usefixtures("crash_points")
def test_the_harness_shows_a_bug_of_the_action(tmp_path: Path) -> None:
    def act(directory: Path, say: Say) -> None:
        raise ZeroDivisionError("a bug")

    with pytest.raises(AssertionError, match="a bug"):
        list(every(tmp_path, nothing, act, Fail(5)))
