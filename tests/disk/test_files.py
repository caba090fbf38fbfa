"""replace: whole or not at all, private, and nothing but a plain file of ours is ever replaced."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TextIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.errors import DiskError, DiskFull, PathRefused, ReadOnly
from lamina.disk import crash_points as crash
from lamina.disk import temp_files as temps
from lamina.disk.dirfd import private_dir, sync_fd
from lamina.disk.files import is_bookkeeping, read, remove, replace
from lamina.disk.locks import kernel_lock
from lamina.disk.temp_files import sweep_temps

from .processes import needs_fork, run_child, together
from .staging import staged

PIECE = 64 << 10


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@given(data=st.binary(max_size=5_000))
def test_what_was_replaced_is_read_back(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("d") / "f"
    replace(path, b"before", durability="process")
    replace(path, data, durability="process")
    assert path.read_bytes() == data
    assert read(path, 1 << 20) == data
    assert os.listdir(path.parent) == ["f"]


@pytest.mark.spec("Z9")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o377])
def test_files_are_0600_and_directories_0700_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        replace(tmp_path / "a" / "b" / "f", b"x")
        private_dir(tmp_path / "c" / "d")
    finally:
        os.umask(before)
    assert mode(tmp_path / "a" / "b" / "f") == 0o600
    assert [mode(tmp_path / name) for name in ("a", "a/b", "c", "c/d")] == [0o700] * 4


def test_a_file_that_was_open_to_others_is_private_after_it_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    path.chmod(0o666)
    replace(path, b"y")
    assert mode(path) == 0o600


def test_a_directory_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(0o755)
    assert private_dir(tmp_path / "d") == tmp_path / "d"
    assert mode(tmp_path / "d") == 0o755


def test_a_file_in_the_place_of_a_directory_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "d").write_bytes(b"")
    with pytest.raises(DiskError):
        replace(tmp_path / "d" / "f", b"x")
    with pytest.raises(DiskError):
        private_dir(tmp_path / "d")


def test_a_symbolic_link_is_neither_followed_nor_replaced(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "f").symlink_to(tmp_path / "victim")
    with pytest.raises(PathRefused, match="symbolic link"):
        replace(tmp_path / "f", b"x")
    with pytest.raises(PathRefused, match="symbolic link"):
        read(tmp_path / "f", 100)
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_a_hard_link_a_fifo_and_a_directory_are_refused_without_blocking(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious")
    os.link(tmp_path / "victim", tmp_path / "linked")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "x.md").mkdir()
    for name in ("linked", "fifo", "x.md"):
        with pytest.raises(PathRefused):
            replace(tmp_path / name, b"x")
        with pytest.raises(PathRefused):
            read(tmp_path / name, 100)
    assert (tmp_path / "victim").read_bytes() == b"precious"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
def test_another_users_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"theirs")
    os.chown(path, 12_345, 12_345)
    with pytest.raises(PathRefused, match="another user"):
        replace(path, b"x")
    assert path.read_bytes() == b"theirs"


@needs_fork
def test_a_file_size_limit_is_met_by_a_typed_error_and_the_old_content(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "f"
    replace(path, b"old")

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (PIECE, PIECE))
        with pytest.raises(DiskError):
            replace(path, b"x" * (2 * PIECE))

    assert os.waitstatus_to_exitcode(os.waitpid(run_child(limited), 0)[1]) == 0
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.fixture
def readable_by_all() -> Iterator[Path]:
    """The runner's own directories are closed to other users."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


@needs_fork
def test_a_read_only_directory_is_a_typed_error(readable_by_all: Path) -> None:
    directory = readable_by_all / "d"
    directory.mkdir()
    directory.chmod(0o555)

    def as_nobody() -> None:
        # Permissions do not stop root.
        if os.geteuid() == 0:
            os.setuid(65_534)
        with pytest.raises(ReadOnly):
            replace(directory / "f", b"x")
        with pytest.raises(ReadOnly):
            replace(directory / "e" / "f", b"x")

    assert os.waitstatus_to_exitcode(os.waitpid(run_child(as_nobody), 0)[1]) == 0
    assert os.listdir(directory) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a file system that takes no files")
def test_a_file_system_that_takes_no_files_is_a_typed_error() -> None:
    with pytest.raises(DiskError):
        replace("/proc/self/f", b"x")


def test_a_temporary_file_of_the_wrong_size_is_never_published(tmp_path: Path) -> None:
    """As on a file system that takes bytes and does not keep them: here somebody else changes the file before it is checked."""
    (tmp_path / "f").write_bytes(b"old")

    def lengthen(name: str, _: int) -> None:
        if name == "temp.write":
            left = next(path for path in tmp_path.iterdir() if path.name != "f")
            os.truncate(left, 100)

    with crash.watched(lengthen), pytest.raises(DiskError):
        replace(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize(("code", "kind"), [(errno.ENOSPC, DiskFull), (errno.EACCES, ReadOnly), (errno.EBADF, DiskError)])
def test_the_error_names_the_file_that_was_meant(tmp_path: Path, code: int, kind: type[DiskError]) -> None:
    def fail(name: str, _: int) -> None:
        if name == "temp.write":
            raise OSError(code, os.strerror(code))

    with crash.watched(fail), pytest.raises(kind, match=str(tmp_path / "f")) as caught:
        replace(tmp_path / "f", b"x")
    assert caught.value.path == str(tmp_path / "f")


def test_a_reader_that_delays_the_rename_on_windows_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temps, "_RENAME_WAIT", 1.0)
    tries = 0

    def busy_twice(name: str, _: int) -> None:
        nonlocal tries
        if name == "temp.rename":
            tries += 1
            if tries <= 2:
                raise PermissionError(errno.EACCES, "a reader has it open")

    with crash.watched(busy_twice):
        replace(tmp_path / "f", b"x")
    assert tries == 3
    assert (tmp_path / "f").read_bytes() == b"x"


@pytest.mark.parametrize(("known", "fsyncs"), [(True, 0), (False, 1)])
def test_the_drives_own_cache_is_flushed_where_the_system_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool, fsyncs: int
) -> None:
    flushed = list[int]()

    def flush(_: int, command: int) -> None:
        flushed.append(command)
        if not known:
            raise OSError(errno.ENOTSUP, "not on this file system")

    monkeypatch.setattr(kernel_lock, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=flush))
    seen = list[str]()
    with open(tmp_path / "f", "wb") as file, crash.watched(lambda name, _: seen.append(name)):
        sync_fd(file.fileno(), "x")
    assert flushed == [51]
    assert len(seen) == 1 + fsyncs


@pytest.mark.spec("Z2")
@needs_fork
def test_readers_see_the_old_content_or_the_new_one_and_never_a_part(tmp_path: Path) -> None:
    path = tmp_path / "f"
    versions = [bytes([65 + number]) * (100_000 + number) for number in range(4)]
    replace(path, versions[0])

    def act(number: int) -> None:
        for turn in range(60):
            if number < 2:
                replace(path, versions[(turn + number) % 4], durability="process")
            else:
                assert path.read_bytes() in versions

    together(4, act)
    assert os.listdir(tmp_path) == ["f"]


def test_a_staged_file_appears_when_it_is_published_and_not_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with staged(path, b"dropped"):
        assert not path.exists()
    assert os.listdir(tmp_path) == []
    with staged(path, b"kept", mtime_ns=1_700_000_000_000_000_000) as temp:
        temp.publish()
    assert path.read_bytes() == b"kept"
    assert path.stat().st_mtime_ns == 1_700_000_000_000_000_000


def test_a_published_file_can_stay_locked_by_its_writer(tmp_path: Path) -> None:
    import fcntl

    with staged(tmp_path / "f", b"x") as temp:
        temp.publish()
        held = temp.keep()
    with open(tmp_path / "f") as other:
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        held.release()
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_removing_says_whether_there_was_something(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    assert remove(tmp_path / "f")
    assert not remove(tmp_path / "f")
    assert not remove(tmp_path / "no" / "such" / "f")
    assert read(tmp_path / "no" / "such" / "f", 10) is None


class TestSweep:
    def test_a_living_writers_file_stays(self, tmp_path: Path) -> None:
        with staged(tmp_path / "f", b"x") as temp:
            assert sweep_temps(tmp_path) == 0
            temp.publish()
        assert (tmp_path / "f").read_bytes() == b"x"

    def test_only_our_own_abandoned_files_go(self, tmp_path: Path) -> None:
        for name in (".lamina-0123456789abcdef.tmp", "x.tmp", ".lamina-notes", "f"):
            (tmp_path / name).write_bytes(b"x")
        (tmp_path / ".lamina-1.tmp").symlink_to(tmp_path / "f")
        (tmp_path / ".lamina-2.tmp").mkdir()
        assert sweep_temps(tmp_path) == 1
        assert not (tmp_path / ".lamina-0123456789abcdef.tmp").exists()
        assert len(os.listdir(tmp_path)) == 5

    @needs_fork
    def test_sweeps_and_writers_at_the_same_time_lose_nothing(self, tmp_path: Path) -> None:
        def act(number: int) -> None:
            for turn in range(80):
                if number < 2:
                    replace(tmp_path / f"{number}-{turn}", b"x", durability="process")
                else:
                    assert sweep_temps(tmp_path) >= 0

        together(4, act)
        assert len(os.listdir(tmp_path)) == 160

    def test_a_sweep_between_making_and_locking_costs_a_second_try(self, tmp_path: Path) -> None:
        swept = 0

        def sweep_once(name: str, _: int) -> None:
            nonlocal swept
            if name == "lock.flock" and not swept:
                swept = 1
                swept = sweep_temps(tmp_path)

        with crash.watched(sweep_once):
            replace(tmp_path / "f", b"x")
        assert swept == 1
        assert os.listdir(tmp_path) == ["f"]

    def test_a_sweep_that_has_the_lock_costs_a_second_try(self, tmp_path: Path) -> None:
        import fcntl

        with contextlib.ExitStack() as sweeps:

            def lock_once(name: str, _: int) -> None:
                if name == "lock.flock" and not held:
                    held.append(sweeps.enter_context(open(tmp_path / os.listdir(tmp_path)[0])))
                    fcntl.flock(held[0], fcntl.LOCK_EX)

            held = list[TextIO]()
            with crash.watched(lock_once):
                replace(tmp_path / "f", b"x")
            assert len(held) == 1
        assert os.listdir(tmp_path) == ["f"]

    def test_a_name_that_is_gone_when_the_sweep_comes_to_it_does_not_count(self, tmp_path: Path) -> None:
        left = tmp_path / ".lamina-0123456789abcdef.tmp"
        left.touch()

        def go_first(name: str, _: int) -> None:
            if name == "sweep.unlink":
                left.unlink()

        with crash.watched(go_first):
            assert sweep_temps(tmp_path) == 0

    def test_a_file_published_while_it_is_looked_at_stays(self, tmp_path: Path) -> None:
        """The sweep has opened the temporary file when its writer renames it: the content must not go."""
        with staged(tmp_path / "f", b"x") as temp:
            done = False

            def publish(name: str, _: int) -> None:
                nonlocal done
                if name == "lock.flock" and not done:
                    done = True
                    temp.publish()
                    temp.drop()

            with crash.watched(publish):
                assert sweep_temps(tmp_path) == 0
            assert done
        assert (tmp_path / "f").read_bytes() == b"x"


def test_bookkeeping_names_are_known(tmp_path: Path) -> None:
    assert [name for name in (".f.lock", ".lamina-00.tmp", "f", ".gitignore", "x.lock") if is_bookkeeping(name)] == [
        ".f.lock",
        ".lamina-00.tmp",
    ]
