"""ENOSPC, EIO and short writes at every system call of every writer: a typed error, the old content intact, no litter."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from lamina.disk.append import Appender
from lamina.disk.files import update
from lamina.disk.temp_files import is_temp, sweep_temps

from ..processes import needs_fork
from .harness import Act, Fail, Say, Short, every
from .test_killed_everywhere import NEW, OLD, content, do_replace, do_update, lines_of, names, nothing, write_old

pytestmark = needs_fork

ERRORS = {
    errno.ENOSPC: "DiskFull",
    errno.EDQUOT: "DiskFull",
    errno.EIO: "DiskError",
    errno.EROFS: "ReadOnly",
    errno.ELOOP: "PathRefused",
}
WRITERS = pytest.mark.parametrize("act", [do_replace, do_update])


@WRITERS
@pytest.mark.parametrize("code", ERRORS, ids=errno.errorcode.get)
@pytest.mark.usefixtures("crash_points")
def test_one_failing_call_leaves_the_old_content_and_no_litter(tmp_path: Path, act: Act, code: int) -> None:
    raised = 0
    for run in every(tmp_path, write_old, act, Fail(code)):
        published = run.point in ("", "dir.fsync", "lock.unlock")
        assert content(run.directory / "f") == (NEW if published else OLD), run
        assert run.error in ("", ERRORS[code]), run
        assert (run.ended == "finished") == (run.point in ("", "lock.unlock")), run
        assert not any(map(is_temp, names(run.directory))), run
        raised += run.ended == "raised"
    assert raised >= 6


@WRITERS
@pytest.mark.usefixtures("crash_points")
def test_a_disk_that_stays_broken_leaves_the_old_content_and_a_sweepable_file_at_most(tmp_path: Path, act: Act) -> None:
    for run in every(tmp_path, write_old, act, Fail(errno.EIO, forever=True)):
        assert content(run.directory / "f") in (OLD, NEW), run
        assert content(run.directory / "f") == NEW or not run.said, run
        sweep_temps(run.directory)
        assert not any(map(is_temp, names(run.directory))), run
        assert update(run.directory / "f", lambda _: b"mended")


@WRITERS
@pytest.mark.usefixtures("crash_points")
def test_a_short_write_is_carried_on(tmp_path: Path, act: Act) -> None:
    for run in every(tmp_path, write_old, act, Short()):
        assert run.ended == "finished", run
        assert content(run.directory / "f") == NEW, run


@pytest.mark.usefixtures("crash_points")
def test_a_failed_fsync_is_not_tried_again(tmp_path: Path) -> None:
    for run in every(tmp_path, write_old, do_replace, Fail(errno.EIO)):
        if run.point == "temp.fsync":
            assert run.error == "DiskError"
            assert content(run.directory / "f") == OLD
            return
    pytest.fail("no fsync was seen")


def append_and_retry(directory: Path, say: Say) -> None:
    """Each batch is tried until it is taken, as a session does that keeps its lines while the disk is full."""
    from lamina.core.errors import DiskError

    log = None
    for number in range(3):
        for _ in range(3):
            try:
                log = log or Appender.open(directory / "log")
                log.append(lines_of(number))
                log.sync()
            except DiskError as error:
                say(type(error).__name__)
            else:
                break
        else:
            raise AssertionError("never taken")


@pytest.mark.parametrize("fault", [Fail(errno.ENOSPC), Fail(errno.EIO), Short()], ids=["full", "broken", "short"])
@pytest.mark.usefixtures("crash_points")
def test_an_append_works_again_after_any_fault_and_every_good_line_is_whole(tmp_path: Path, fault: Fail | Short) -> None:
    reported = 0
    for run in every(tmp_path, nothing, append_and_retry, fault):
        assert run.ended == "finished", run
        lines = (run.directory / "log").read_bytes().split(b"\n")
        wanted = [line for number in range(3) for line in lines_of(number)]
        assert [line for line in dict.fromkeys(lines) if line in wanted] == wanted, run
        assert len([line for line in lines if line and line not in wanted]) <= 1, run
        reported += bool(run.said)
    assert (reported > 0) == isinstance(fault, Fail)
