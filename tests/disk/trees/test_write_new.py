"""Many new files at once."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lamina.core.errors import DiskError, DiskFull
from lamina.disk import crash_points as crash
from lamina.disk.trees.rootdir import RootDir


@pytest.mark.spec("Z9")
def test_files_are_made_private_wherever_they_lie(tmp_path: Path) -> None:
    with RootDir.open(tmp_path / "copy") as root:
        root.write_new({"a.md": b"one", "sub/deep/b.md": b"two", "empty.md": b""})
    assert (tmp_path / "copy" / "sub" / "deep" / "b.md").read_bytes() == b"two"
    for path in (tmp_path / "copy").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.spec("Z8")
@pytest.mark.parametrize("planted", ["file", "link"])
def test_nothing_that_stands_there_is_changed(tmp_path: Path, planted: str) -> None:
    with RootDir.open(tmp_path / "copy") as root:
        (tmp_path / "victim").write_bytes(b"mine")
        there = tmp_path / "copy" / "a.md"
        there.symlink_to(tmp_path / "victim") if planted == "link" else there.write_bytes(b"mine")
        with pytest.raises(DiskError):
            root.write_new({"a.md": b"one"})
        assert there.read_bytes() == b"mine"


def test_a_short_write_is_gone_on_with_and_a_full_disk_is_said(tmp_path: Path) -> None:
    with RootDir.open(tmp_path / "copy") as root:
        with crash.watched(lambda name, size: 1 if size > 1 else None):
            root.write_new({"a.md": b"whole"})
        assert (tmp_path / "copy" / "a.md").read_bytes() == b"whole"

        def full(name: str, size: int) -> None:
            if size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with crash.watched(full), pytest.raises(DiskFull):
            root.write_new({"b.md": b"x"})
