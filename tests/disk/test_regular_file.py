"""Opening a file that anyone may have written (disk/regular_file)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.disk.regular_file import IrregularFile, open_regular, read_start


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
