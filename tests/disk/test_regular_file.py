"""Opening a file that anyone may have written (disk/regular_file)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from lamina.disk.regular_file import IrregularFile, open_regular, read_start, stamp_of


def test_a_link_is_followed_unless_the_caller_refuses_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"text"
    with pytest.raises(IrregularFile, match="is a symbolic link"):
        open_regular(tmp_path / "link", follow=False)


def test_a_path_that_cannot_exist_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "none", tmp_path / "file" / "below", f"{tmp_path}/\0"):
        with pytest.raises(FileNotFoundError):
            open_regular(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_the_start_of_anything_but_a_readable_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    os.mkfifo(tmp_path / "pipe")
    assert read_start(tmp_path / "file", 4) == b"0123"
    assert [read_start(tmp_path / name, 4) for name in ("pipe", ".", "none")] == [b"", b"", b""]


def test_a_stamp_tells_whether_a_file_changed_and_whether_it_only_grew(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"one")
    other.write_bytes(b"another")
    before = stamp_of(path)
    assert before is not None
    assert stamp_of(path) == before
    with path.open("ab") as file:
        file.write(b" two")
    grown = stamp_of(path)
    assert grown is not None
    assert grown != before
    assert grown.continues(before)
    assert not before.continues(grown)
    other.replace(path)
    replaced = stamp_of(path)
    assert replaced is not None
    assert not replaced.continues(grown)


def test_only_a_regular_file_has_a_stamp(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert stamp_of(tmp_path / "link") == stamp_of(tmp_path / "file")
    assert stamp_of(tmp_path / "link", follow=False) is None
    assert [stamp_of(path) for path in (tmp_path, tmp_path / "none", f"{tmp_path}/\0")] == [None] * 3


def test_every_file_that_others_may_have_written_has_one_opener(root: Path) -> None:
    """Whoever opens a path in another way blocks on a pipe in its place."""
    package = root / "src" / "lamina"
    # A descriptor that is open already, a marker of ours, files of the kernel, and the null device.
    others = {"disk/session_files/spills.py", "disk/locks/kernel_lock.py", "disk/locks/dream_lock_owner.py", "cli/console.py"}
    openers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"(?<![\w.])(?<!def )open\(", path.read_text("utf-8"))
    }
    assert openers == {"disk/regular_file.py", *others}
