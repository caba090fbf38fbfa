"""The user's own files are replaced whole or not at all, only in the state the caller has seen, and keep their mode."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamina.core.errors import DiskError, DiskFull, PathRefused
from lamina.disk import crash_points as crash
from lamina.disk import user_files
from lamina.disk.regular_file import FileStamp, stamp
from lamina.disk.temp_files import is_temp, sweep_temps
from lamina.disk.user_files import read_whole, replace

from .crash.harness import Fail, Kill, Say, Short, every, points
from .processes import needs_fork, run_child, together

OLD = b"old " * 2_000
NEW = b"new! " * 3_000


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def state(path: Path) -> FileStamp:
    return stamp(path.stat())


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_file_and_its_directories_get_what_the_umask_leaves(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        replace(tmp_path / "a" / "b" / "f", b"x", expect=None)
    finally:
        os.umask(before)
    assert mode(tmp_path / "a" / "b" / "f") == 0o666 & ~umask
    assert [mode(tmp_path / name) for name in ("a", "a/b")] == [0o777 & ~umask] * 2
    assert os.listdir(tmp_path / "a" / "b") == ["f"]


@pytest.mark.parametrize("bits", [0o600, 0o644, 0o755, 0o666, 0o4755])
def test_a_file_that_exists_keeps_its_mode(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    path.chmod(bits)
    saved = replace(path, b"y", expect=state(path))
    assert mode(path) == bits
    assert path.read_bytes() == b"y"
    assert saved == state(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_keeps_its_owner_where_that_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    os.chown(path, 12_345, 23_456)
    replace(path, b"y", expect=state(path))
    found = path.stat()
    assert (found.st_uid, found.st_gid) == (12_345, 23_456)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
def test_an_owner_that_can_not_be_kept_takes_the_set_id_bits_with_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    os.chown(path, 12_345, 23_456)
    path.chmod(0o6755)

    def refuse(name: str, _: int) -> None:
        if name == "user.chown":
            raise PermissionError(errno.EPERM, "not yours to give")

    with crash.watched(refuse):
        replace(path, b"y", expect=state(path))
    assert mode(path) == 0o755


def test_a_read_only_file_is_refused_also_for_root(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x")
    path.chmod(0o444)
    with pytest.raises(PathRefused, match=r"f: is read-only; check its permissions[.]$"):
        replace(path, b"y", expect=state(path))
    assert path.read_bytes() == b"x"


def test_a_file_in_another_state_than_expected_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with pytest.raises(DiskError, match="was removed"):
        replace(path, b"y", expect=FileStamp(0, 0, 0))
    path.write_bytes(b"x")
    seen = state(path)
    with pytest.raises(DiskError, match="was created by another program"):
        replace(path, b"y", expect=None)
    path.write_bytes(b"other")
    with pytest.raises(DiskError, match="was changed by another program"):
        replace(path, b"y", expect=seen)
    assert path.read_bytes() == b"other"
    assert os.listdir(tmp_path) == ["f"]


@needs_fork
def test_a_fork_in_the_middle_of_another_threads_write_can_write(tmp_path: Path) -> None:
    with user_files._publishing:
        pid = run_child(lambda: replace(tmp_path / "f", b"x", expect=None))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (tmp_path / "f").read_bytes() == b"x"


def test_of_two_threads_that_saw_the_same_state_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0")
    for _ in range(20):
        seen = state(path)

        def act(number: int, seen: FileStamp = seen) -> bool:
            try:
                replace(path, b"%d" % number, expect=seen)
            except DiskError:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(act, range(4))) == 1


@needs_fork
def test_readers_see_the_old_content_or_the_new_one_and_never_a_part(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(OLD)

    def act(number: int) -> None:
        for turn in range(20):
            if number == 0:
                replace(path, NEW if turn % 2 else OLD, expect=state(path))
            else:
                assert path.read_bytes() in (OLD, NEW)

    together(3, act)
    assert os.listdir(tmp_path) == ["f"]


class TestLinks:
    def test_a_link_to_a_file_inside_a_root_is_written_through(self, tmp_path: Path) -> None:
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "target").write_bytes(b"x")
        (tmp_path / "link").symlink_to("d/target")
        replace(tmp_path / "link", b"y", expect=state(tmp_path / "d" / "target"), roots=[tmp_path])
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "d" / "target").read_bytes() == b"y"

    def test_a_link_that_leads_out_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "root").mkdir()
        (tmp_path / "rooted").write_bytes(b"precious")
        (tmp_path / "root" / "link").symlink_to("../rooted")
        for roots in ([], [tmp_path / "root"]):
            with pytest.raises(PathRefused, match="leads out of the working directories"):
                replace(tmp_path / "root" / "link", b"y", expect=state(tmp_path / "rooted"), roots=roots)
        assert (tmp_path / "rooted").read_bytes() == b"precious"

    def test_a_link_to_nothing_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("gone")
        with pytest.raises(PathRefused, match="is a broken symbolic link"):
            replace(tmp_path / "link", b"y", expect=None, roots=[tmp_path])
        assert not (tmp_path / "gone").exists()

    def test_a_directory_swapped_for_a_link_on_the_way_to_the_target_is_refused(self, tmp_path: Path) -> None:
        root, outside = tmp_path / "root", tmp_path / "outside"
        for directory in (root / "d", outside):
            directory.mkdir(parents=True)
            (directory / "f").write_bytes(b"x")
        (root / "link").symlink_to("d/f")
        seen = state(outside / "f")

        def swap(name: str, _: int) -> None:
            if name == "dir.child" and not (root / "d").is_symlink():
                (root / "d").rename(root / "was")
                (root / "d").symlink_to(outside)

        with crash.watched(swap), pytest.raises(PathRefused):
            replace(root / "link", b"y", expect=seen, roots=[root])
        assert (outside / "f").read_bytes() == b"x"

    def test_a_linked_directory_is_where_the_person_keeps_it(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "dir").symlink_to("real")
        replace(tmp_path / "dir" / "f", b"x", expect=None)
        assert (tmp_path / "real" / "f").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: os.mkfifo(path), "is a named pipe"),
    ],
)
def test_what_is_no_regular_file_is_refused_without_blocking(tmp_path: Path, make: Callable[[Path], None], kind: str) -> None:
    path = tmp_path / "x"
    make(path)
    with pytest.raises(PathRefused, match=kind):
        replace(path, b"y", expect=state(path))
    with pytest.raises(PathRefused, match=kind):
        read_whole(path, 100)


def test_a_device_is_not_even_opened() -> None:
    with pytest.raises(PathRefused, match="is a device"):
        read_whole("/dev/null", 1)


def test_a_hard_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    os.link(tmp_path / "f", tmp_path / "g")
    with pytest.raises(PathRefused, match="hard link"):
        replace(tmp_path / "f", b"y", expect=state(tmp_path / "f"))


def test_reading_is_bounded_and_says_what_it_has_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    assert read_whole(path, 10) is None
    assert read_whole(path / "below", 10) is None
    path.write_bytes(b"x" * 10)
    content = read_whole(path, 10)
    assert content == (b"x" * 10, state(path))
    with pytest.raises(DiskError, match="is larger than"):
        read_whole(path, 9)


def write_old(directory: Path) -> None:
    (directory / "f").write_bytes(OLD)
    (directory / "f").chmod(0o640)


def nothing(directory: Path) -> None:
    assert directory.is_dir()


def do_replace(directory: Path, say: Say) -> None:
    replace(directory / "f", NEW, expect=state(directory / "f"))
    say("done")


def do_create(directory: Path, say: Say) -> None:
    replace(directory / "a" / "b" / "f", NEW, expect=None)
    say("done")


@needs_fork
class TestFaultsEverywhere:
    @pytest.mark.parametrize("torn", [False, True], ids=["between calls", "in the middle of a write"])
    @pytest.mark.usefixtures("crash_points")
    def test_a_killed_writer_leaves_old_or_new_with_its_mode(self, tmp_path: Path, torn: bool) -> None:
        seen = set()
        for run in every(tmp_path, write_old, do_replace, Kill(torn)):
            file = run.directory / "f"
            seen.add(file.read_bytes())
            assert file.read_bytes() in (OLD, NEW), run
            assert file.read_bytes() == NEW or not run.said, run
            assert mode(file) == 0o640, run
            sweep_temps(run.directory)
            assert os.listdir(run.directory) == ["f"], run
            replace(file, b"more", expect=state(file))
        assert seen == {OLD, NEW}

    @pytest.mark.usefixtures("crash_points")
    def test_a_killed_writer_of_a_new_file_leaves_it_whole_or_absent(self, tmp_path: Path) -> None:
        for run in every(tmp_path, nothing, do_create, Kill()):
            file = run.directory / "a" / "b" / "f"
            assert not file.exists() or file.read_bytes() == NEW, run
            assert file.exists() or not run.said, run
            if file.parent.exists():
                sweep_temps(file.parent)
                assert os.listdir(file.parent) == (["f"] if file.exists() else []), run
            if not file.exists():
                replace(file, NEW, expect=None)

    @pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
    @pytest.mark.usefixtures("crash_points")
    def test_one_failing_call_leaves_the_old_content_and_no_litter(self, tmp_path: Path, code: int) -> None:
        for run in every(tmp_path, write_old, do_replace, Fail(code)):
            published = run.point in ("", "dir.fsync", "lock.unlock")
            assert (run.directory / "f").read_bytes() == (NEW if published else OLD), run
            assert (run.ended == "finished") == (run.point in ("", "lock.unlock")), run
            assert not any(map(is_temp, os.listdir(run.directory))), run

    @pytest.mark.usefixtures("crash_points")
    def test_a_short_write_is_carried_on(self, tmp_path: Path) -> None:
        for run in every(tmp_path, write_old, do_replace, Short()):
            assert run.ended == "finished", run
            assert (run.directory / "f").read_bytes() == NEW, run

    def test_data_and_mode_are_durable_before_the_name_and_that_before_the_answer(self, tmp_path: Path) -> None:
        write_old(tmp_path)
        order = ["temp.create", "temp.write", "user.chmod", "user.fsync", "temp.rename", "dir.fsync"]
        assert [name for name in points(tmp_path, do_replace) if name in order] == order

    def test_a_new_directory_is_durable_before_a_file_is_made_in_it(self, tmp_path: Path) -> None:
        seen = points(tmp_path, do_create)
        made = [place for place, name in enumerate(seen) if name == "user.mkdir"]
        assert len(made) == 2
        assert all(seen[place + 1] == "dir.fsync" for place in made)
        assert max(made) < seen.index("user.probe") < seen.index("temp.create")


def test_a_full_disk_is_a_typed_error_that_names_the_file(tmp_path: Path) -> None:
    def full(name: str, _: int) -> None:
        if name == "temp.write":
            raise OSError(errno.ENOSPC, "full")

    with crash.watched(full), pytest.raises(DiskFull, match=str(tmp_path / "f")):
        replace(tmp_path / "f", b"x", expect=None)


WITHOUT = """
import os, sys
from pathlib import Path
os.supports_dir_fd.clear()
del os.O_NOFOLLOW, os.fchown, os.fchmod
sys.modules["fcntl"] = None
from lamina.disk import dirfd
from lamina.disk.session_files.spool import Spool
from lamina.disk.user_files import read_whole, replace
assert not dirfd.HAS_DIR_FD
base = Path(sys.argv[1])
replace(base / "a" / "f", b"one", expect=None)
content = read_whole(base / "a" / "f", 100)
replace(base / "a" / "f", b"two", expect=content.stamp)
os.symlink("f", base / "a" / "link")
replace(base / "a" / "link", b"three", expect=read_whole(base / "a" / "f", 100).stamp, roots=[base])
assert (base / "a" / "f").read_bytes() == b"three"
with Spool.create(base / "spool", limit=5) as spool:
    assert not spool.write(b"too long")
    assert spool.keep().read_bytes() == b"too l"
print("all of it")
"""


def test_it_works_where_the_system_has_less_to_offer(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout == "all of it\n", done.stderr
