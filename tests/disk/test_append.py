"""append: whole lines, one write each, whatever stub stands before them and however full the disk is."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.errors import DiskError, DiskFull, InputError, PathRefused
from lamina.disk import crash_points as crash
from lamina.disk.append import Appender

from .processes import needs_fork, run_child, together

line = st.binary(max_size=200).map(lambda data: data.replace(b"\n", b" "))


@given(before=st.binary(max_size=50), batches=st.lists(st.lists(line, max_size=4), max_size=6))
def test_every_record_stands_on_a_line_of_its_own_at_the_place_it_was_said_to(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, batches: list[list[bytes]]
) -> None:
    path = tmp_path_factory.mktemp("d") / "log"
    path.write_bytes(before)
    with Appender.open(path) as log:
        places = [(log.append(batch), batch) for batch in batches]
        assert log.end == path.stat().st_size
    data = path.read_bytes()
    assert data.startswith(before)
    for place, batch in places:
        assert data[place:].startswith(b"".join(record + b"\n" for record in batch))
        assert not batch or place == 0 or data[place - 1 : place] == b"\n"


def test_all_records_of_a_call_leave_in_one_write(tmp_path: Path) -> None:
    writes = list[tuple[str, int]]()

    def watch(name: str, size: int) -> None:
        if size:
            writes.append((name, size))

    (tmp_path / "log").write_bytes(b"stub")
    with crash.watched(watch), Appender.open(tmp_path / "log") as log:
        assert log.append([b"one", b"two"]) == 5
        assert log.append([b"three"]) == 13
    assert writes == [("append.write", 9), ("append.write", 6)]
    assert (tmp_path / "log").read_bytes() == b"stub\none\ntwo\nthree\n"


def test_a_record_with_a_line_break_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with Appender.open(tmp_path / "log") as log, pytest.raises(InputError, match="line break"):
        log.append([b"good", b"bad\nline"])
    assert (tmp_path / "log").read_bytes() == b""


@pytest.mark.parametrize("umask", [0o000, 0o077, 0o377])
def test_a_new_log_is_0600_in_directories_of_0700(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        Appender.open(tmp_path / "a" / "log").close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "log").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_links_and_fifos_are_refused(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"precious\n")
    (tmp_path / "soft").symlink_to(tmp_path / "victim")
    os.link(tmp_path / "victim", tmp_path / "hard")
    os.mkfifo(tmp_path / "fifo")
    for name in ("soft", "hard", "fifo"):
        with pytest.raises(PathRefused):
            Appender.open(tmp_path / name)
    assert (tmp_path / "victim").read_bytes() == b"precious\n"


@needs_fork
def test_sixteen_writers_of_sixty_kilobyte_lines_stay_intact(tmp_path: Path) -> None:
    path = tmp_path / "log"

    def act(number: int) -> None:
        with Appender.open(path) as log:
            for turn in range(20):
                place = log.append([b"%02d-%02d" % (number, turn) + bytes([65 + number]) * 60_000])
                with open(path, "rb") as file:
                    file.seek(place)
                    assert file.read(5) == b"%02d-%02d" % (number, turn)

    together(16, act)
    # A writer that opens the log in the middle of another's write takes it for a stub and begins with an empty line.
    lines = [found for found in path.read_bytes().split(b"\n") if found]
    assert sorted(lines) == sorted(
        b"%02d-%02d" % (number, turn) + bytes([65 + number]) * 60_000 for number in range(16) for turn in range(20)
    )


def test_another_writers_stub_does_not_swallow_our_record(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Appender.open(path) as log, open(path, "ab", buffering=0) as other:
        log.append([b"first"])
        other.write(b"a stub of a writer that was killed")
        place = log.append([b"second", b"third"])
        assert path.read_bytes()[place:] == b"second\nthird\n"
    assert path.read_bytes().split(b"\n")[-3:] == [b"second", b"third", b""]


@needs_fork
def test_a_file_size_limit_ends_in_a_typed_error_and_whole_lines(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "log"

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with Appender.open(path) as log:
            log.append([b"a" * 600])
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))
            with pytest.raises(DiskError):
                log.append([b"b" * 600])
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            log.append([b"b" * 600, b"c"])

    assert os.waitstatus_to_exitcode(os.waitpid(run_child(limited), 0)[1]) == 0
    assert path.read_bytes() == b"a" * 600 + b"\n" + b"b" * 399 + b"\n" + b"b" * 600 + b"\nc\n"


def full_after(limit: int) -> crash.Watcher:
    """A disk with room for `limit` more bytes."""

    def watch(_: str, size: int) -> int | None:
        nonlocal limit
        if not size:
            return None
        if limit == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = min(size, limit)
        limit -= taken
        return taken

    return watch


@pytest.mark.parametrize("room", range(20))
def test_a_full_disk_is_reported_and_the_log_goes_on_once_there_is_space(tmp_path: Path, room: int) -> None:
    path = tmp_path / "log"
    with Appender.open(path) as log:
        log.append([b"zero"])
        with crash.watched(full_after(room)), pytest.raises(DiskFull):
            log.append([b"first record", b"second record"])
        place = log.append([b"first record", b"second record"])
        assert path.read_bytes()[place:] == b"first record\nsecond record\n"
        assert log.end == path.stat().st_size
    assert path.read_bytes().startswith(b"zero\n")


def test_a_stub_is_closed_at_once_when_there_is_room_for_a_newline(tmp_path: Path) -> None:
    writes = 0

    def no_second_write(name: str, size: int) -> int | None:
        nonlocal writes
        writes += name == "append.write"
        if name == "append.write" and writes == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return 5 if name == "append.write" and size else None

    with crash.watched(no_second_write), Appender.open(tmp_path / "log") as log, pytest.raises(DiskFull):
        log.append([b"first record"])
    assert (tmp_path / "log").read_bytes() == b"first\n"


@pytest.mark.parametrize("cuts", [[1], [5, 5], [13, 3], [20], [26], [13], [0, 4, 0]])
def test_a_short_count_is_closed_and_its_record_written_again_whole(tmp_path: Path, cuts: list[int]) -> None:
    rest = list(cuts)

    def watch(_: str, size: int) -> int | None:
        return rest.pop(0) if size and rest else None

    with crash.watched(watch), Appender.open(tmp_path / "log") as log:
        place = log.append([b"first record", b"second record"])
    data = (tmp_path / "log").read_bytes()
    assert data[place:].startswith(b"first record\n")
    whole = [found for found in data.split(b"\n") if found in (b"first record", b"second record")]
    assert list(dict.fromkeys(whole)) == [b"first record", b"second record"]


def test_a_disk_that_takes_nothing_is_given_up(tmp_path: Path) -> None:
    with crash.watched(lambda _, size: 0 if size else None), Appender.open(tmp_path / "log") as log, pytest.raises(DiskError):
        log.append([b"x"])


def test_a_failed_sync_gives_the_descriptor_up_and_the_next_append_opens_a_new_one(tmp_path: Path) -> None:
    opened = list[str]()

    def watch(name: str, _: int) -> None:
        opened.append(name)
        if name == "append.fsync" and opened.count(name) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with crash.watched(watch), Appender.open(tmp_path / "log") as log:
        log.append([b"one"])
        with pytest.raises(DiskError):
            log.sync()
        log.sync()
        assert opened.count("append.fsync") == 1
        log.append([b"two"])
        log.sync()
    assert opened.count("file.open") == 2
    assert opened.count("append.fsync") == 2
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"


def test_the_first_sync_of_a_new_log_makes_its_name_durable_too(tmp_path: Path) -> None:
    seen = list[str]()
    with crash.watched(lambda name, _: seen.append(name)), Appender.open(tmp_path / "log") as log:
        for record in (b"one", b"two"):
            log.append([record])
            log.sync()
    assert [name for name in seen if name.endswith("fsync")] == ["append.fsync", "dir.fsync", "append.fsync"]


def test_a_log_that_was_removed_under_its_writer_is_reported_and_begun_again(tmp_path: Path) -> None:
    with Appender.open(tmp_path / "log") as log:
        log.append([b"lost"])
        (tmp_path / "log").unlink()
        with pytest.raises(DiskError, match="removed"):
            log.sync()
        assert log.append([b"found"]) == 0
    assert (tmp_path / "log").read_bytes() == b"found\n"


def test_a_closed_log_takes_nothing(tmp_path: Path) -> None:
    log = Appender.open(tmp_path / "log")
    log.close()
    log.close()
    with pytest.raises(DiskError, match="closed"):
        log.append([b"x"])


def test_the_descriptor_is_not_inherited_by_a_program_we_start(tmp_path: Path) -> None:
    with Appender.open(tmp_path / "log"):
        shown = subprocess.run(["ls", "-l", "/dev/fd/"], capture_output=True, text=True, check=False, close_fds=False).stdout
    assert str(tmp_path / "log") not in shown
