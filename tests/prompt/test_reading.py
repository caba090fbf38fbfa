from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.prompt.safe_read import MOST_BYTES, FileText, UnusableFile, read_text


def test_a_text_comes_back_with_plain_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthr\xc3\xa9e\n")
    found = read_text(path)
    assert isinstance(found, FileText)
    assert found.text == "one\ntwo\nthrée\n"
    assert found.owner == path.stat().st_uid


@pytest.mark.parametrize("name", ["missing.md", "a.md/b.md", "x" * 5_000, "\0"])
def test_what_is_not_there_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.md").write_text("a")
    assert read_text(tmp_path / name) is None


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("text".encode("utf-16"), "UTF-16"),
        (b"\xfe\xff\x00t", "UTF-16"),
        ("text".encode("utf-16-le"), "binary"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "binary"),
        (b"ok \xff\xff", "not UTF-8 text (byte 4)"),
        (b"\xed\xa0\x80", "not UTF-8 text (byte 1)"),
    ],
)
def test_the_content_decides_what_is_text_not_the_suffix(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(data)
    found = read_text(path)
    assert isinstance(found, UnusableFile)
    assert problem in found.problem


@pytest.mark.spec("I2")
def test_a_huge_file_is_refused_by_its_size_alone(tmp_path: Path) -> None:
    path = tmp_path / "huge.md"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    assert read_text(path) == UnusableFile(f"is larger than {MOST_BYTES:,} bytes")
    path.write_bytes(b"x" * MOST_BYTES)
    assert isinstance(read_text(path), FileText)


def test_a_directory_is_no_text(tmp_path: Path) -> None:
    assert read_text(tmp_path) == UnusableFile("is a directory")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_that_nobody_writes_to_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    assert read_text(tmp_path / "pipe.md") == UnusableFile("is not a regular file")


def test_a_device_is_not_opened() -> None:
    assert isinstance(read_text(Path(os.path.realpath(os.devnull))), UnusableFile)


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed here")
def test_a_link_in_place_of_a_resolved_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "a.md").symlink_to(tmp_path / "secret")
    assert isinstance(read_text(tmp_path / "a.md"), UnusableFile)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_a_file_that_says_it_is_empty_is_read_no_further_than_the_limit() -> None:
    assert read_text(Path(os.path.realpath("/proc/self/status")), most=10) == UnusableFile("is larger than 10 bytes")
