"""Write: a whole file, new or known."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lamina.disk import crash_points as crash
from lamina.tools.tool import Context

from .doing import call, context, done, refused


@pytest.fixture
def here(tmp_path: Path) -> Context:
    return context(tmp_path)


def test_a_new_file_and_its_directories_are_made_as_by_any_program(here: Context) -> None:
    before = os.umask(0o027)
    try:
        output = call("Write", here, file_path="a/b/f.txt", content="é\r\nx")
    finally:
        os.umask(before)
    path = here.cwd / "a" / "b" / "f.txt"
    assert path.read_bytes() == "é\r\nx".encode()
    assert [stat.S_IMODE(made.stat().st_mode) for made in (path, path.parent, path.parent.parent)] == [0o640, 0o750, 0o750]
    assert output.content == f"Created {path}: 2 lines, 5 bytes."
    assert output.facts == {"path": str(path), "bytes": 5, "lines": 2, "created": True}


@pytest.mark.spec("X8")
def test_an_existing_file_that_was_not_read_is_not_overwritten(here: Context) -> None:
    (here.cwd / "f").write_text("precious")
    assert "exists but has not been read in this conversation. Read it first" in refused(
        "Write", here, file_path="f", content="x"
    )
    assert (here.cwd / "f").read_text() == "precious"


@pytest.mark.spec("X8")
def test_an_existing_file_that_changed_since_is_not_overwritten(here: Context) -> None:
    (here.cwd / "f").write_text("one")
    done("Read", here, file_path="f")
    (here.cwd / "f").write_text("two")
    assert "Read it again" in refused("Write", here, file_path="f", content="x")
    assert (here.cwd / "f").read_text() == "two"
    done("Read", here, file_path="f")
    assert done("Write", here, file_path="f", content="x").startswith("Replaced")


@pytest.mark.spec("X8")
def test_a_file_made_by_another_program_in_the_meantime_wins(here: Context) -> None:
    def make(name: str, _: int) -> None:
        if name == "user.fsync":
            (here.cwd / "f").write_text("theirs")

    with crash.watched(make):
        assert "was created by another program in the meantime" in refused("Write", here, file_path="f", content="ours")
    assert (here.cwd / "f").read_text() == "theirs"
    assert os.listdir(here.cwd) == ["f"]


def test_what_was_written_can_be_edited_and_overwritten_without_a_read(here: Context) -> None:
    done("Write", here, file_path="f", content="one\n")
    done("Edit", here, file_path="f", old_string="one", new_string="two")
    done("Write", here, file_path="f", content="three\n")
    assert (here.cwd / "f").read_text() == "three\n"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\ny\n", b"x\ny\n"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\r\ny\r\n"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        (b"\xff\xfea\x00", "é", b"\xff\xfe\xe9\x00"),
        (b"", "x\n", b"x\n"),
    ],
)
def test_an_existing_file_keeps_its_form(here: Context, before: bytes, content: str, after: bytes) -> None:
    (here.cwd / "f").write_bytes(before)
    done("Read", here, file_path="f")
    done("Write", here, file_path="f", content=content)
    assert (here.cwd / "f").read_bytes() == after


def test_an_image_that_was_read_can_be_replaced_by_text(here: Context) -> None:
    (here.cwd / "x.svg").write_bytes(b"GIF89a")
    assert not call("Read", here, file_path="x.svg").is_error
    done("Write", here, file_path="x.svg", content="<svg/>")
    assert (here.cwd / "x.svg").read_text() == "<svg/>"


def test_a_directory_a_pipe_and_a_file_in_the_way_are_refused(here: Context) -> None:
    (here.cwd / "d").mkdir()
    os.mkfifo(here.cwd / "p")
    (here.cwd / "f").touch()
    assert "is a directory" in refused("Write", here, file_path="d", content="x")
    assert "is a named pipe" in refused("Write", here, file_path="p", content="x")
    assert "not a directory" in refused("Write", here, file_path="f/g", content="x")


def test_a_link_is_written_through_only_inside_the_roots(here: Context, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "victim"
    outside.write_text("precious")
    (here.cwd / "target").write_text("old")
    (here.cwd / "in").symlink_to("target")
    (here.cwd / "out").symlink_to(outside)
    for name in ("in", "out"):
        done("Read", here, file_path=name)
    done("Write", here, file_path="in", content="new")
    assert (here.cwd / "in").is_symlink()
    assert (here.cwd / "target").read_text() == "new"
    assert "leads out of the working directories" in refused("Write", here, file_path="out", content="x")
    assert outside.read_text() == "precious"


def test_a_stopped_call_writes_nothing(here: Context) -> None:
    here.abort.set()
    refused("Write", here, file_path="f", content="x")
    assert os.listdir(here.cwd) == []
