"""Spools are bounded and private, and are removed unless kept."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

import pytest

from lamina.core.errors import DiskError, DiskFull
from lamina.disk import crash_points as crash
from lamina.disk.session_files.spool import Spool

from ..crash.harness import Kill, Say, Short, every
from ..processes import needs_fork


def test_what_is_written_is_there_privately_and_under_a_plain_name(tmp_path: Path) -> None:
    with Spool.create(tmp_path / "made", limit=100) as spool:
        assert spool.write(b"one ")
        assert spool.write(b"two")
        path = spool.keep()
    assert path.read_bytes() == b"one two"
    assert re.fullmatch(r"b[0-9a-f]{8}\.txt", path.name)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_it_is_never_larger_than_its_limit(tmp_path: Path) -> None:
    with Spool.create(tmp_path, limit=5) as spool:
        assert spool.write(b"1234")
        assert not spool.write(b"5678")
        assert not spool.write(b"9")
        assert spool.keep().read_bytes() == b"12345"


def test_it_is_gone_unless_it_is_kept(tmp_path: Path) -> None:
    with Spool.create(tmp_path, limit=5) as spool:
        spool.write(b"x")
    assert os.listdir(tmp_path) == []
    with Spool.create(tmp_path, limit=5) as spool:
        spool.path.unlink()
    spool.close()


def test_a_directory_that_can_not_be_made_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with pytest.raises(DiskError):
        Spool.create(tmp_path / "f", limit=5)


def test_a_full_disk_is_a_typed_error(tmp_path: Path) -> None:
    def full(name: str, _: int) -> None:
        if name == "spool.write":
            raise OSError(errno.ENOSPC, "full")

    with Spool.create(tmp_path, limit=5) as spool, crash.watched(full), pytest.raises(DiskFull):
        spool.write(b"x")
    assert os.listdir(tmp_path) == []


def nothing(directory: Path) -> None:
    assert directory.is_dir()


def do_spool(directory: Path, say: Say) -> None:
    with Spool.create(directory, limit=10_000) as spool:
        spool.write(b"x" * 20_000)
        say(str(spool.keep().stat().st_size))


@needs_fork
@pytest.mark.usefixtures("crash_points")
def test_a_killed_writer_leaves_at_most_one_bounded_file(tmp_path: Path) -> None:
    for run in every(tmp_path, nothing, do_spool, Kill(torn=True)):
        left = list(run.directory.iterdir())
        assert len(left) <= 1, run
        assert all(path.stat().st_size <= 10_000 for path in left), run


@needs_fork
@pytest.mark.usefixtures("crash_points")
def test_a_short_write_is_carried_on(tmp_path: Path) -> None:
    for run in every(tmp_path, nothing, do_spool, Short()):
        assert run.said == ("10000",), run
